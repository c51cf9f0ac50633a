"""The command `traction-hook`, which agents start at each of their hooks: payload in, the agent's own answer out.

It must never be in the way: whatever goes wrong, it prints nothing and ends with 0, which every agent takes for "go
on", and the payload is kept on disk and sent later. Standard library only, loaded as late and as little as can be,
since it is started for every call of a tool.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from streams.hook_command.exchange import Gateway
    from streams.spool import Spool

AGENTS = ("claude-code", "codex", "gemini-cli", "openhands")
LEVELS = ("digests", "excerpts", "full")
DEFAULT_GATEWAY = "http://127.0.0.1:8321"
DEFAULT_TIMEOUT_MS = 300
"""How long the agent waits at most for the gateway; a person notices nothing below some tenths of a second."""

MAX_TIMEOUT_MS = 10_000
MAX_PAYLOAD_BYTES = 8 * 1024 * 1024
"""Largest payload, as `streams.hooks` reads it."""

_READ_BYTES = 1 << 16
_LOST = (400, 413, 415, 422)  # such a payload is refused whenever it is sent
_BARRED = (401, 403)
_TAKEN = 200
_USAGE = """\
Usage: traction-hook AGENT [--observe | --enforce] [--privacy LEVEL] [--gateway URL] [--token-file FILE]
       traction-hook --flush [--gateway URL] [--token-file FILE]

Hands the payload of an agent's hook from the standard input to Traction's gateway, and gives the agent the answer.
`traction connect` writes it into the agent's settings. It always ends with 0 and never says anything but the answer:
when the gateway is away or slow, the agent goes on, and the payload is kept and sent later. That the gateway refuses
the token is told to the person at the agent, once an hour.

  AGENT         claude-code, codex, gemini-cli or openhands
  --observe     only watch: alerts are written, and nothing follows (the default)
  --enforce     tell the agent what Traction decided
  --privacy     digests (the default), excerpts or full: how much of a call's content goes on to Kafka
  --gateway     where the gateway is (TRACTION_GATEWAY_URL, http://127.0.0.1:8321)
  --token-file  file with its token (TRACTION_GATEWAY_TOKEN_FILE, or the token itself in TRACTION_GATEWAY_TOKEN)
  --flush       send what was kept now, and say how much of it this command sent (not what went in the background), and
                what was lost since the last time; ends with 1 when something is left

Kept is in TRACTION_SPOOL_DIR (~/.local/state/traction/spool), 64 MiB at most; the deadline is TRACTION_HOOK_TIMEOUT_MS
(300). Example: traction-hook claude-code --enforce < payload.json
"""


class Options:
    """What the command line and the environment say.

    Attributes:
        agent: whose hook it is; empty where none is named that is known.
        mode: `observe` or `enforce`.
        privacy: the level.
        gateway: URL of the gateway.
        token_file: file with the token; empty for none.
        flush: send what was kept.
        help: say how to use it.
    """

    __slots__ = ("agent", "flush", "gateway", "help", "mode", "privacy", "token_file")

    def __init__(self, arguments: list[str]) -> None:
        self.agent = ""
        self.mode = "observe"
        self.privacy = "digests"
        self.gateway = os.environ.get("TRACTION_GATEWAY_URL") or DEFAULT_GATEWAY
        self.token_file = os.environ.get("TRACTION_GATEWAY_TOKEN_FILE", "")
        self.flush = self.help = False
        rest = iter(arguments)
        for argument in rest:
            name, joined, value = argument.partition("=")
            if argument in AGENTS:
                self.agent = argument
            elif argument in {"--observe", "--enforce"}:
                self.mode = argument[2:]
            elif argument == "--flush":
                self.flush = True
            elif argument in {"--help", "-h"}:
                self.help = True
            elif name in {"--privacy", "--gateway", "--token-file"}:
                self._take(name, value if joined else next(rest, ""))

    def _take(self, name: str, value: str) -> None:
        if name == "--privacy":
            self.privacy = value if value in LEVELS else self.privacy  # what is not understood tells least
        elif name == "--gateway":
            self.gateway = value or self.gateway
        else:
            self.token_file = value or self.token_file


def main() -> None:
    """Run the command; it does not return."""
    code = 0
    try:  # noqa: SIM105 - contextlib takes long to load
        code = run(sys.argv[1:])
    except BaseException:  # noqa: BLE001, S110 - an agent takes some exit codes for an order to stop
        pass
    os._exit(code)  # a thread that still waits for a host's name is not waited for


def run(arguments: list[str], standard_input: int = 0) -> int:
    """Do what the command line says, and give the exit code: 0, but for `--flush` when something is left.

    Args:
        arguments: the command line.
        standard_input: file descriptor of the payload.
    """
    import time  # noqa: PLC0415 - built in

    ended = time.monotonic() + _timeout_s()
    options = Options(arguments)
    if options.help or (not options.flush and not options.agent):
        if options.help or sys.stdin.isatty():
            sys.stdout.write(_USAGE)
            sys.stdout.flush()
        return 0
    if options.flush:
        from streams.hook_command.flush import flush  # noqa: PLC0415 - not needed at a hook

        return flush(options)
    payload, lost = _payload(standard_input, ended)
    if lost:
        _count(lost)
    elif payload:
        _hand_over(options, payload, ended)
    return 0


def gateway_of(options: Options) -> Gateway:
    """Say where the gateway is, with its token.

    Raises:
        ValueError: the URL is none.
    """
    from streams.hook_command.exchange import Gateway  # noqa: PLC0415

    token = os.environ.get("TRACTION_GATEWAY_TOKEN", "")
    if not token and options.token_file:
        try:
            with open(options.token_file, encoding="ascii") as file:  # noqa: PTH123 - pathlib takes long to load
                token = file.read(_READ_BYTES).strip()
        except (OSError, ValueError):
            token = ""  # the gateway then refuses, and the payload is kept
    return Gateway(options.gateway, token)


def spool() -> Spool:
    """Give the place where payloads are kept."""
    from streams.spool import Spool, default_directory  # noqa: PLC0415

    return Spool(default_directory() + "/hooks")


def _payload(standard_input: int, ended: float) -> tuple[bytes, str]:
    """Read the standard input, until its end or the deadline; what is too large is read on, so that it can be written.

    Where the agent does not close it, what has come counts as all from half the time on if it looks like that.

    Returns:
        The payload, and as what it is counted if it is lost.
    """
    import _thread  # noqa: PLC0415 - both built in
    import time  # noqa: PLC0415

    parts: list[bytes] = []
    sizes = [0]
    done = _thread.allocate_lock()
    done.acquire()

    def take() -> None:
        try:
            while part := os.read(standard_input, _READ_BYTES):
                sizes[0] += len(part)
                if sizes[0] > MAX_PAYLOAD_BYTES:
                    parts.clear()
                else:
                    parts.append(part)
        except OSError:
            pass
        finally:
            done.release()

    _thread.start_new_thread(take, ())  # reading cannot be ended; the process does not wait for it
    left = max(ended - time.monotonic(), 0.0)
    whole = done.acquire(timeout=left / 2)
    if not whole and not b"".join(parts[-2:]).rstrip().endswith(b"}"):
        whole = done.acquire(timeout=left / 2)
    payload = b"".join(parts)
    if sizes[0] > MAX_PAYLOAD_BYTES:
        return b"", "too-large"
    if not whole and not payload.rstrip().endswith(b"}"):
        return b"", "cut-short"
    return payload, ""


def _count(lost: str) -> None:
    """Note that a payload is lost, for `--flush` to tell."""
    try:  # noqa: SIM105 - contextlib takes long to load
        spool().count(lost)
    except OSError:
        pass


def _hand_over(options: Options, payload: bytes, ended: float) -> None:
    """Post a payload and print the answer, or keep it."""
    import time  # noqa: PLC0415

    at = _now()
    query = f"?mode={options.mode}&privacy={options.privacy}&at={at}"
    try:
        from streams.hook_command.exchange import post  # noqa: PLC0415

        place = f"/v1/hooks/{options.agent}{query}"
        json = {"Content-Type": "application/json"}
        status, body = post(gateway_of(options), place, payload, seconds=ended - time.monotonic(), headers=json)
    except Exception:  # noqa: BLE001 - whatever it is, the payload is kept
        status, body = 0, b""
    if status == _TAKEN:
        _print(body)
        _send_kept(options)
    elif status in _LOST:
        _count("refused")
    else:
        _keep(options, payload, at)
        if status in _BARRED:
            from streams.hook_command.barred import tell  # noqa: PLC0415 - hardly ever

            tell(options, spool())


def _print(body: bytes) -> None:
    """Print an answer that says something; one that is no JSON object could mean anything to an agent."""
    body = body.strip()
    if body in {b"", b"{}"}:
        return
    import json  # noqa: PLC0415 - most answers are empty

    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return
    if isinstance(found, dict):
        text = json.dumps(found).encode()
        while text:
            text = text[os.write(1, text) :]


def _keep(options: Options, payload: bytes, at: str) -> None:
    """Keep a payload on one line: outside of its texts, where none can stand, line ends are blanks.

    Whether it is JSON is for the gateway to say, which refuses line by line.
    """
    line = payload.replace(b"\r", b" ").replace(b"\n", b" ").strip()
    if not (line.startswith(b"{") and line.endswith(b"}")):
        _count("refused")  # nobody could read it later
        return
    head = f'{{"agent":"{options.agent}","mode":"{options.mode}","privacy":"{options.privacy}","at":"{at}","payload":'
    try:
        if not spool().append(head.encode() + line + b"}"):
            _count("too-large")
    except OSError:
        return


def _send_kept(options: Options) -> None:
    """Have a process of its own send what was kept, so that the agent does not wait for it."""
    kept = spool()
    if not hasattr(os, "fork") or not kept.size() or os.fork():
        return
    try:
        os.setsid()  # what ends the agent's hook does not end it
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):  # an agent reads until the output is closed
            os.dup2(nothing, stream)
        from streams.hook_command.flush import send  # noqa: PLC0415

        send(kept, gateway_of(options))
    finally:
        os._exit(0)


def _now() -> str:
    import time  # noqa: PLC0415

    seconds, nanos = divmod(time.time_ns(), 1_000_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{nanos // 1000:06d}Z"


def _timeout_s() -> float:
    text = os.environ.get("TRACTION_HOOK_TIMEOUT_MS", "")
    found = int(text[: len(str(MAX_TIMEOUT_MS)) + 1]) if text.isascii() and text.isdecimal() else 0
    return min(found or DEFAULT_TIMEOUT_MS, MAX_TIMEOUT_MS) / 1000
