"""smolagents: watches an agent's tools, and the code that a `CodeAgent` writes; with the extra `smolagents`.

A stop interrupts the agent, whose run then ends with smolagents' own error. Guidance stands behind what the step
observed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from smolagents import ActionStep, CodeAgent
from smolagents.local_python_executor import CodeOutput

from streams.adapters.watch import Enforcer, beside, ends
from streams.verdicts.refusal import refusal

if TYPE_CHECKING:
    from streams.adapters.watch import Watch
    from streams.verdicts.model import Verdict

CODE: Final = "python_interpreter"
"""Name of the tool that a piece of code is a call of, as smolagents names it in its memory."""

_ANSWER: Final = "final_answer"


def watch_agent(agent: Any, watch: Watch, *, enforce: bool = True) -> None:
    """Watch an agent: its pieces of code if it writes such, else the calls of its tools.

    Args:
        agent: a `CodeAgent` or `ToolCallingAgent`; its tools are changed in place, so that they are to be its own.
        watch: a `Guard`, or an `EmitterWatch`.
        enforce: False observes only.
    """
    watching = _Watching(agent, Enforcer(watch, enforce=enforce))
    agent.step_callbacks.register(ActionStep, watching.after_step)
    if isinstance(agent, CodeAgent):
        agent.python_executor = _Executor(agent.python_executor, watching)
        return
    for name, tool in agent.tools.items():
        if name != _ANSWER:
            tool.forward = watching.forward(name, tool.forward)


class _Watching:
    """What is known of one agent."""

    def __init__(self, agent: Any, enforcer: Enforcer) -> None:
        self._agent = agent
        self._enforcer = enforcer
        self._guidance: list[Verdict] = []

    def before(self, tool: str, arguments: Any) -> str | None:
        """Ask about a call; a text stands in the place of its result when it is not to be made."""
        verdict = self._enforcer.before(tool, arguments)
        if ends(verdict):
            self._agent.interrupt()
        return refusal(verdict) if ends(verdict) or verdict.action == "deny" else None

    def after(self, tool: str, arguments: Any, result: Any = None, error: BaseException | None = None) -> None:
        """Tell of a call."""
        verdict = self._enforcer.after(tool, arguments, "" if result is None and error is None else result, error)
        if ends(verdict):
            self._agent.interrupt()
        elif verdict.action == "guide":
            self._guidance.append(verdict)

    def forward(self, name: str, given: Any) -> Any:
        """Give what is called in the place of a tool's `forward`."""

        def forward(*args: Any, **kwargs: Any) -> Any:
            arguments = kwargs or (list(args) if args else {})
            refused = self.before(name, arguments)
            if refused is not None:
                return refused
            try:
                result = given(*args, **kwargs)
            except Exception as problem:
                self.after(name, arguments, error=problem)
                raise
            self.after(name, arguments, result)
            return result

        return forward

    def after_step(self, step: Any, agent: Any = None) -> None:  # noqa: ARG002 - smolagents' signature
        """Show the model what it was told in a step."""
        while self._guidance:
            step.observations = beside(step.observations or "", self._guidance.pop(0))


class _Executor:
    """Runs pieces of code as the executor that it stands before, and asks and tells about each."""

    def __init__(self, inner: Any, watching: _Watching) -> None:
        self._inner = inner
        self._watching = watching

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __call__(self, code: str) -> Any:
        arguments = {"code": code}
        refused = self._watching.before(CODE, arguments)
        if refused is not None:
            return CodeOutput(output=None, logs=refused, is_final_answer=False)
        try:
            output = self._inner(code)
        except Exception as problem:
            self._watching.after(CODE, arguments, error=problem)
            raise
        if not output.is_final_answer:
            self._watching.after(CODE, arguments, f"{output.logs}{output.output if output.output is not None else ''}")
        return output
