"""Takes off what Codex and Gemini CLI put around a shell's output: what is left is the output itself and its exit code.

For hooks, transcripts and telemetry alike, which show the same call in the same form. Knows no protocol and no file; a
text in none of the forms stays as it is.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from streams.importers.mend import NotJson, parse
from streams.importers.shape import as_amount, as_dict

GEMINI_SHELLS: Final = ("run_shell_command", "ShellTool")
"""What Gemini CLI calls its shell, today and in its first versions."""

_PACKED: Final = '{"output":'
_CODEX_HEAD: Final = re.compile(
    r"(?:Exit code|Chunk ID|Wall time|Process exited with code)\b[^\n]{0,80}\n"
    r"(?:[A-Z][^\n]{0,80}\n){0,7}?Output:(?:\n|\Z)"
)
_CODEX_EXIT: Final = re.compile(r"^(?:Exit code:|Process exited with code) (-?\d{1,10})$", re.MULTILINE)
_CODEX_SECONDS: Final = re.compile(r"^Wall time: (\d{1,9}(?:\.\d{1,9})?) seconds$", re.MULTILINE)
_RUNS: Final = "Process running"

_GEMINI_HEAD: Final = "Output: "
_GEMINI_COMMAND: Final = ("Command: ", "\nDirectory: ")  # before the output, in its first versions
_GEMINI_END: Final = ("Process Group PGID: ", "Background PIDs: ", "Signal: ", "Exit Code: ", "Error: ")
"""Lines after the output, from the last one up; each may be left out."""

_PROCESSES: Final = _GEMINI_END[:2]  # numbers, others each time
_NONE: Final = "(none)"
_EMPTY: Final = "(empty)"
_GEMINI_EXIT: Final = re.compile(r"Exit Code: (-?\d{1,10})")


class ShellResult(NamedTuple):
    """What a shell's result says.

    Attributes:
        text: what the command printed.
        code: its exit code; None where that is not told.
        seconds: how long it took, likewise.
    """

    text: str
    code: int | None = None
    seconds: float | None = None


def codex_result(text: str) -> ShellResult:
    """Read a result as Codex gives it to the model: with a head of lines down to `Output:`, or packed as JSON.

    Of a command that still runs the head stays, since it says so.
    """
    if text.startswith(_PACKED):
        packed = _packed(text)
        if packed is not None:
            return packed
    found = _CODEX_HEAD.match(text)
    if found is None or _RUNS in found[0]:
        return ShellResult(text)
    code, seconds = _CODEX_EXIT.search(found[0]), _CODEX_SECONDS.search(found[0])
    return ShellResult(text[found.end() :], int(code[1]) if code else None, float(seconds[1]) if seconds else None)


def _packed(text: str) -> ShellResult | None:
    try:
        packed = as_dict(parse(text.encode("utf-8", "replace")).value)
    except (NotJson, RecursionError):
        return None
    output, metadata = packed.get("output"), as_dict(packed.get("metadata"))
    if not isinstance(output, str):
        return None
    return ShellResult(output, exit_code(metadata.get("exit_code")), as_amount(metadata.get("duration_seconds")))


def exit_code(value: object) -> int | None:
    """Give a whole number as it is; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def gemini_result(text: str) -> ShellResult:
    """Read a result as Gemini CLI gives it to the model: `Output:`, the output, and lines on how it ended.

    What these lines say beyond the exit code, as an error of the start or a signal, stays, since nothing else says it.
    """
    if not text.startswith((_GEMINI_HEAD, _GEMINI_COMMAND[0])):
        return ShellResult(text)
    kept, code = [], None
    for label in _GEMINI_END:
        above, _, line = text.rpartition("\n")
        if not line.startswith(label):
            continue
        text = above
        number = _GEMINI_EXIT.fullmatch(line)
        if number:
            code = int(number[1])
        elif label not in _PROCESSES and line != f"{label}{_NONE}":
            kept.append(line)
    if text.startswith(_GEMINI_COMMAND[0]):
        head, found, output = text.partition(f"\n{_GEMINI_HEAD}")
        text = f"{_GEMINI_HEAD}{output}" if found and _GEMINI_COMMAND[1] in head else text
    if text.startswith(_GEMINI_HEAD):
        text = text.removeprefix(_GEMINI_HEAD)
        text = "" if text == _EMPTY else text
    return ShellResult("\n".join([*filter(None, [text]), *reversed(kept)]), code)
