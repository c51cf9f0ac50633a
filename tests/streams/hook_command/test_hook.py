"""`traction-hook` answers as the gateway says, and otherwise is not there."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import streams.hook_command as command
from streams.hook_command.exchange import Gateway, post
from streams.hooks import AGENTS, MAX_PAYLOAD_BYTES
from tests.streams.hook_command.conftest import DENIAL, HOOK, PAYLOAD
from tests.waiting import SOON_SECONDS, wait_until

QUIET = (0, b"", b"")


def told(done: subprocess.CompletedProcess[bytes]) -> tuple[int, bytes, bytes]:
    """Give what an agent sees of it."""
    return done.returncode, done.stdout, done.stderr


def test_the_answer_is_printed_and_nothing_else(gateway, hook):
    """The agent gets the gateway's JSON, and the gateway the payload as it came, with mode, privacy and time."""
    gateway.answer = json.dumps(DENIAL, ensure_ascii=False).encode()
    done = hook.run("claude-code", "--enforce", "--privacy", "excerpts", "--gateway", gateway.url)
    assert (done.returncode, json.loads(done.stdout), done.stderr) == (0, DENIAL, b"")
    ((path, headers, body),) = gateway.asked
    assert re.fullmatch(
        r"/v1/hooks/claude-code\?mode=enforce&privacy=excerpts&at=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", path
    )
    assert (headers["Content-Type"], json.loads(body)) == ("application/json", PAYLOAD)
    assert hook.lines() == []


def test_without_flags_it_observes_and_tells_least(gateway, hook):
    """What nobody asked for is not done: the agent is not told what to do, and no content is passed on."""
    assert told(hook.run("codex", TRACTION_GATEWAY_URL=gateway.url)) == QUIET
    assert "mode=observe&privacy=digests" in gateway.asked[0][0]
    assert told(hook.run("codex", "--privacy=everything", "--what", TRACTION_GATEWAY_URL=gateway.url)) == QUIET
    assert "mode=observe&privacy=digests" in gateway.asked[1][0]


@pytest.mark.parametrize("given_by", ["variable", "file", "flag"])
def test_the_token_is_sent(gateway, hook, tmp_path, given_by):
    """A token comes from the environment or a file, never from the command line."""
    file = tmp_path / "token"
    file.write_text("secret-1\n", encoding="ascii")
    more = {
        "variable": {"TRACTION_GATEWAY_TOKEN": "secret-1"},
        "file": {"TRACTION_GATEWAY_TOKEN_FILE": str(file)},
        "flag": {},
    }
    flags = ["--token-file", str(file)] if given_by == "flag" else []
    assert told(hook.run("codex", "--gateway", gateway.url, *flags, **more[given_by])) == QUIET
    assert gateway.asked[0][1]["Authorization"] == "Bearer secret-1"


@pytest.mark.parametrize("wrong", ["a\r\nX-More: 1", "ä", "\x7f"])
def test_a_token_that_is_none_is_not_sent(gateway, hook, wrong):
    """A token with control characters cannot put more into the request."""
    hook.run("codex", "--gateway", gateway.url, TRACTION_GATEWAY_TOKEN=wrong)
    assert "Authorization" not in gateway.asked[0][1]
    assert "X-More" not in gateway.asked[0][1]


def test_a_gateway_behind_tls(gateway, hook, secure):
    """With TLS the certificate is checked: one that nobody vouches for is not spoken to, and the payload is kept."""
    url, authority = secure
    assert told(hook.run("codex", "--gateway", url)) == QUIET
    assert (len(gateway.asked), len(hook.lines())) == (0, 1)
    gateway.answer = json.dumps(DENIAL).encode()
    done = hook.run("codex", "--enforce", "--gateway", url, SSL_CERT_FILE=authority)
    assert json.loads(done.stdout) == DENIAL
    assert gateway.asked[0][0].startswith("/v1/hooks/codex?")


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("http://gate", (False, "gate", 80, "")),
        ("HTTPS://gate/", (True, "gate", 443, "")),
        ("http://gate:8321/traction/", (False, "gate", 8321, "/traction")),
        ("http://[::1]:8321", (False, "::1", 8321, "")),
        ("https://[::1]", (True, "::1", 443, "")),
        (" http://127.0.0.1:65535 ", (False, "127.0.0.1", 65535, "")),
    ],
)
def test_addresses(url, place):
    """A URL has a scheme, a host, perhaps a port and a path."""
    found = Gateway(url)
    assert (found.secure, found.host, found.port, found.path) == place


@pytest.mark.parametrize(
    "url",
    ["gate:80", "http://", "http://:80", "http://g:0", "http://g:65536", "http://g:x", "http://g:", "http://[::1", "http://[::1]x",
     "http://u@g", "http://g h", "http://g/a b", "http://g/?a", "http://g/#a", "http://ä", "http://g\r\nX: 1"],
)  # fmt: skip
def test_what_is_no_address(url):
    """Anything else is refused, above all what could put more into a request."""
    with pytest.raises(ValueError, match=r"^(write|a port) "):
        Gateway(url)


@pytest.mark.parametrize("status", [404, 429, 500, 503])
def test_a_refusal_that_may_pass_keeps_the_payload(gateway, hook, status):
    """When the gateway cannot take it now, the agent goes on and the payload is kept, with all that was said of it."""
    gateway.status, gateway.answer = status, json.dumps(DENIAL).encode()
    assert told(hook.run("claude-code", "--enforce", "--privacy", "full", "--gateway", gateway.url)) == QUIET
    (kept,) = hook.lines()
    at = kept.pop("at")
    assert kept == {"agent": "claude-code", "mode": "enforce", "privacy": "full", "payload": PAYLOAD}
    assert f"at={at}" in gateway.asked[0][0]


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_refusal_that_will_not_pass_keeps_nothing(gateway, hook, status):
    """What the gateway never takes is not sent again and again, and is counted."""
    gateway.status, gateway.answer = status, json.dumps(DENIAL).encode()
    assert told(hook.run("codex", "--gateway", gateway.url)) == QUIET
    assert hook.lines() == []
    assert hook.flushed(gateway.url) == {"refused": 1}


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("agent", ["claude-code", "codex", "gemini-cli", "openhands"])
def test_a_wrong_token_is_told_to_the_person(gateway, hook, agent, status):
    """The person at the agent is told once, where the agent shows it; the payload is kept, and the agent goes on."""
    gateway.status, gateway.answer = status, json.dumps(DENIAL).encode()
    first, second = (hook.run(agent, "--enforce", "--gateway", gateway.url) for _ in range(2))
    if agent == "openhands":  # it has no such field
        assert told(first) == QUIET
    else:
        assert (first.returncode, first.stderr, list(json.loads(first.stdout))) == (0, b"", ["systemMessage"])
        message = json.loads(first.stdout)["systemMessage"]
        assert all(part in message for part in (gateway.url, "TRACTION_GATEWAY_TOKEN", "--token-file"))
    assert told(second) == QUIET
    assert len(hook.lines()) == 2
    flush = hook.run("--flush", "--gateway", gateway.url)
    assert (flush.returncode, b"401 or 403" in flush.stderr) == (1, True)
    assert len(hook.lines()) == 2


def test_a_wrong_token_is_not_told_where_that_cannot_be_remembered(gateway, hook, tmp_path):
    """Rather than at each call it is not said at all."""
    (tmp_path / "spool").write_text("a file", encoding="ascii")
    gateway.status = 401
    assert told(hook.run("codex", "--gateway", gateway.url)) == QUIET


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ftp://127.0.0.1:1",
        "http://",
        "http://user:secret@127.0.0.1:1",
        "http://127.0.0.1:0",
        "http://[::1",
        "x" * 9,
    ],
)
def test_a_wrong_address_keeps_the_payload(hook, url):
    """A setting that is wrong costs no event: they are sent when it is mended."""
    assert told(hook.run("codex", TRACTION_GATEWAY_URL=url)) == QUIET
    assert len(hook.lines()) == 1


def test_nobody_listens(hook, nowhere):
    """With the gateway away the agent goes on at once, and the payload is kept."""
    assert told(hook.run("gemini-cli", "--gateway", nowhere)) == QUIET
    assert [kept["agent"] for kept in hook.lines()] == ["gemini-cli"]


def test_a_slow_gateway_is_not_waited_for(gateway, hook):
    """A gateway that takes the payload and does not answer in time is given up, though it never answers at all."""
    gateway.wait.clear()
    assert told(hook.run("codex", "--gateway", gateway.url, TRACTION_HOOK_TIMEOUT_MS="300")) == QUIET
    assert len(hook.lines()) == 1


def test_one_that_does_not_even_accept_is_not_waited_for(hook):
    """The deadline covers the connection too."""
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        others = [socket.socket() for _ in range(4)]
        for other in others:
            other.settimeout(0)
            other.connect_ex(full.getsockname())
        url = f"http://127.0.0.1:{full.getsockname()[1]}"
        assert told(hook.run("codex", "--gateway", url, TRACTION_HOOK_TIMEOUT_MS="300")) == QUIET
        for other in others:
            other.close()
    assert len(hook.lines()) == 1


def test_an_answer_in_drips_is_not_waited_for():
    """The deadline is for everything together, so that a byte now and then does not put it off."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        ended = threading.Event()

        def drip() -> None:
            connection, _ = listening.accept()
            with connection:
                while not ended.wait(0.02):
                    connection.sendall(b"H")

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        port = listening.getsockname()[1]
        assert post(Gateway(f"http://127.0.0.1:{port}"), "/", b"{}", seconds=0.3) == (0, b"")
        ended.set()
        thread.join(5)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\x00\xff\r\n\r\n",
        b"HTTP/1.1\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n{}",
        b"SSH-2.0-OpenSSH\r\n",
    ],
)
def test_what_is_no_answer_keeps_the_payload(gateway, hook, raw):
    """Whatever else listens at that port, the agent goes on and the payload is kept."""
    gateway.raw = raw
    assert told(hook.run("codex", "--gateway", gateway.url)) == QUIET
    assert len(hook.lines()) == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"{}",
        b" {} \n",
        b"[]",
        b'"deny"',
        b"{",
        b"<html>",
        b"null",
        b"[" * 60_000,
        b"{\xff}",
        b" " * 65_536,
    ],
)
def test_an_answer_that_is_none_is_not_printed(gateway, hook, answer):
    """Nothing but a JSON object that says something reaches the agent; the payload was taken all the same."""
    gateway.answer = answer
    assert told(hook.run("claude-code", "--enforce", "--gateway", gateway.url)) == QUIET
    assert hook.lines() == []


@pytest.mark.parametrize("stdin", [b"", b"hello", b"[]", b"null", b"{", b"\xff\xfe", b"[" * 100_000])
def test_a_payload_that_is_none_is_not_kept(hook, nowhere, stdin):
    """What nobody could read later is not kept."""
    assert told(hook.run("codex", "--gateway", nowhere, stdin=stdin)) == QUIET
    assert hook.lines() == []


@pytest.mark.parametrize(("more", "sent"), [(0, 1), (1, 0)])
def test_the_largest_payload(gateway, hook, more, sent):
    """A payload of the largest size goes through; a larger one is read to its end and left."""
    assert command.MAX_PAYLOAD_BYTES == MAX_PAYLOAD_BYTES
    stdin = json.dumps({"text": ""}).encode()
    stdin = stdin.replace(b'""', b'"' + b"x" * (MAX_PAYLOAD_BYTES + more - len(stdin)) + b'"')
    assert told(hook.run("codex", "--gateway", gateway.url, stdin=stdin)) == QUIET
    assert len(gateway.asked) == sent
    assert hook.flushed(gateway.url) == ({} if sent else {"too large": 1})


@pytest.mark.parametrize(
    ("stdin", "sent"), [(json.dumps(PAYLOAD).encode() + b"\n", True), (b'{"session_id": "s', False), (b"", False)]
)
def test_an_input_that_is_not_closed_is_not_waited_for(gateway, hook, stdin, sent):
    """An agent that leaves it open goes on after the deadline: a whole payload counts, another one counts as lost."""
    reading, writing = os.pipe()
    os.write(writing, stdin)
    environment = hook.environment(TRACTION_HOOK_TIMEOUT_MS="1000")
    asking = [HOOK, "codex", "--gateway", gateway.url]
    done = subprocess.run(asking, stdin=reading, capture_output=True, timeout=60, check=False, env=environment)
    os.close(writing)
    os.close(reading)
    assert told(done) == QUIET
    assert bool(gateway.asked or hook.lines()) == sent  # on a busy machine what is left of the time may not do
    assert hook.flushed(gateway.url)["cut short"] == (not sent)


def test_lines_of_a_payload_become_one(hook, nowhere):
    """A payload that is printed over several lines is kept on one, and is the same."""
    assert (
        told(hook.run("codex", "--gateway", nowhere, stdin=json.dumps(PAYLOAD, indent=2).encode() + b"\r\n")) == QUIET
    )
    assert [kept["payload"] for kept in hook.lines()] == [PAYLOAD]


def test_what_was_kept_is_sent_by_a_later_hook(gateway, hook, nowhere):
    """A hook that finds the gateway sends what was kept, without having the agent wait: its output is closed before."""
    for _ in range(3):
        hook.run("codex", "--gateway", nowhere)
    kept = hook.lines()
    assert len(kept) == 3
    assert told(hook.run("codex", "--gateway", gateway.url)) == QUIET
    wait_until(lambda: len(gateway.kept()) == 3 and hook.lines() == [])
    assert gateway.kept() == kept


def test_the_agent_does_not_wait_while_the_rest_is_sent(gateway, hook, nowhere):
    """The hook ends, and its output is closed, while what was kept is still under way."""
    hook.run("codex", "--gateway", nowhere)
    gate = gateway.wait

    class OnlyHooks:
        """Holds back what was kept, and nothing else."""

        def wait(self, seconds: float) -> None:
            if gateway.asked[-1][0] == "/v1/hooks":
                gate.wait(seconds)

        def set(self) -> None:
            gate.set()

    gate.clear()
    gateway.wait = OnlyHooks()
    assert told(hook.run("codex", "--gateway", gateway.url)) == QUIET
    wait_until(lambda: any(path == "/v1/hooks" for path, _, _ in gateway.asked))
    assert len(hook.lines()) == 1
    gate.set()
    wait_until(lambda: hook.lines() == [])


def test_flush_says_what_it_did(gateway, hook, nowhere):
    """On demand all is sent, and the exit code says whether something is left."""
    hook.run("codex", "--gateway", nowhere)
    away = hook.run("--flush", "--gateway", nowhere)
    assert away.returncode == 1
    assert b"sent: 0" in away.stdout
    assert b"does not take" in away.stderr
    done = hook.run("--flush", "--gateway", gateway.url)
    told_of = b"sent: 1; refused: 0; left: 0 bytes; dropped: 0 bytes; too large: 0; cut short: 0\n"
    assert (done.returncode, done.stdout) == (0, told_of)
    assert len(gateway.kept()) == 1


def test_flush_tells_lines_that_were_refused_from_those_that_were_sent(gateway, hook, nowhere):
    """A line that the gateway refuses among others, as one that was torn, is not counted as sent, and told once."""
    for number in range(3):
        hook.run("codex", "--gateway", nowhere, stdin=json.dumps({**PAYLOAD, "tool_use_id": f"c{number}"}).encode())
    with (hook.folder / "hooks" / "current").open("ab") as file:
        file.write(b'{"agent":"codex","mode":"obs')
    gateway.bad = b"c1"
    assert hook.flushed(gateway.url) == {"sent": 3, "refused": 1}
    assert hook.flushed(gateway.url) == {}


def test_what_is_no_gateway_takes_nothing_that_was_kept(gateway, hook, nowhere):
    """A server that answers all is well, and not what it took, gets nothing taken from the spool."""
    hook.run("codex", "--gateway", nowhere)
    gateway.answer = b"<html>welcome</html>"
    assert hook.run("--flush", "--gateway", gateway.url).returncode == 1
    assert len(hook.lines()) == 1


@pytest.mark.parametrize("timeout", ["0", "-1", "x", "1e3", "٣", "99999999999"])
def test_a_wrong_timeout_is_the_usual_one(monkeypatch, timeout):
    """No setting makes the hook wait longer than ten seconds, or not at all."""
    monkeypatch.setenv("TRACTION_HOOK_TIMEOUT_MS", timeout)
    assert command._timeout_s() == (10.0 if timeout.startswith("9") else 0.3)


@pytest.mark.parametrize(("text", "seconds"), [("1", 0.001), ("10000", 10.0), ("10001", 10.0), ("99999", 10.0)])
def test_the_timeouts_bounds(monkeypatch, text, seconds):
    """A time-out is taken as it is up to ten seconds."""
    monkeypatch.setenv("TRACTION_HOOK_TIMEOUT_MS", text)
    assert command._timeout_s() == seconds


def test_help_is_printed_when_asked(hook):
    """`--help` names the agents and the flags."""
    done = hook.run("--help")
    assert done.returncode == 0
    assert all(agent.encode() in done.stdout for agent in AGENTS)
    assert command.AGENTS == AGENTS
    assert told(hook.run("someone-else")) == QUIET


def test_a_closed_output_is_no_error(gateway, hook):
    """An agent that is gone does not matter."""
    gateway.answer = json.dumps(DENIAL).encode()
    reading, writing = os.pipe()
    os.close(reading)
    with subprocess.Popen(
        [HOOK, "codex", "--enforce", "--gateway", gateway.url],
        stdin=subprocess.PIPE,
        stdout=writing,
        stderr=subprocess.PIPE,
        env=hook.environment(),
    ) as process:
        os.close(writing)
        _, errors = process.communicate(json.dumps(PAYLOAD).encode(), timeout=SOON_SECONDS)
    assert (process.returncode, errors) == (0, b"")


def test_a_spool_that_cannot_be_written_is_no_error(hook, nowhere, tmp_path):
    """Where nothing can be kept, the agent goes on."""
    (tmp_path / "spool").write_text("a file", encoding="ascii")
    assert told(hook.run("codex", "--gateway", nowhere)) == QUIET


HEAVY = {"aiohttp", "argparse", "asyncio", "click", "contextlib", "dataclasses", "datetime", "email", "http", "inspect"}
HEAVY |= {
    "json",
    "logging",
    "msgspec",
    "orjson",
    "pathlib",
    "ssl",
    "subprocess",
    "threading",
    "typing",
    "urllib",
    "uuid",
}


def test_it_loads_nothing_heavy(gateway, hook):
    """A hook with nothing to tell the agent loads no package and none of the large parts of the standard library."""
    given = {"input": json.dumps(PAYLOAD).encode(), "capture_output": True, "env": hook.environment()}
    loading = [sys.executable, "-X", "importtime"]
    done = subprocess.run([*loading, HOOK, "codex", "--gateway", gateway.url], check=True, **given)
    usual = subprocess.run([*loading, "-c", ""], check=True, **given)
    loaded, always = (
        {line.rpartition(b"|")[2].strip().decode().partition(".")[0] for line in each.stderr.splitlines()}
        for each in (done, usual)
    )
    assert "streams" in loaded
    assert not {"socket", "selectors"} & loaded
    assert not loaded & HEAVY - always
    assert len(gateway.asked) == 1


ANY = st.binary(max_size=200) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
).map(lambda value: json.dumps(value).encode())


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    stdin=ANY,
    arguments=st.lists(
        st.sampled_from([*AGENTS, "--enforce", "--privacy", "--privacy=full", "--gateway", "--token-file=/", ""])
        | st.text(max_size=6),
        max_size=5,
    ),
)
def test_nothing_crashes_it(monkeypatch, tmp_path, nowhere, stdin, arguments):
    """Whatever an agent gives it and whatever the command line says, it ends with 0 and prints nothing."""
    monkeypatch.setenv("TRACTION_SPOOL_DIR", str(tmp_path))
    monkeypatch.setenv("TRACTION_GATEWAY_URL", nowhere)
    reading, writing = os.pipe()
    os.write(writing, stdin)
    os.close(writing)
    assert command.run([each for each in arguments if each != "--gateway"], reading) == 0
    os.close(reading)
