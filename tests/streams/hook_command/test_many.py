"""Ten thousand hooks while the gateway is away block no agent, and all of them are delivered later."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor

import streams.hook_command as command
from tests.streams.hook_command.conftest import PAYLOAD

CALLS = 10_000
PROCESSES = 120


def payload(number: int) -> bytes:
    """Give the payload of one call."""
    return json.dumps({**PAYLOAD, "tool_use_id": f"call-{number}"}).encode()


def test_ten_thousand_hooks_with_the_gateway_away(gateway, hook, nowhere, monkeypatch):
    """Each ends with 0 and says nothing, none is lost or doubled, and one flush delivers all, in order."""
    for name, value in hook.environment().items():
        monkeypatch.setenv(name, value)
    for number in range(CALLS):
        reading, writing = os.pipe()
        os.write(writing, payload(number))
        os.close(writing)
        assert command.run(["codex", "--gateway", nowhere], reading) == 0
        os.close(reading)
    done = hook.run("--flush", "--gateway", gateway.url)
    assert done.stdout == b"sent: 10000; refused: 0; left: 0 bytes; dropped: 0 bytes; too large: 0; cut short: 0\n"
    assert [kept["payload"]["tool_use_id"] for kept in gateway.kept()] == [f"call-{number}" for number in range(CALLS)]
    times = [kept["at"] for kept in gateway.kept()]
    assert times == sorted(times)


def test_many_processes_at_once(gateway, hook, nowhere):
    """As agents start them, several at the same time: each ends with 0 and says nothing, and all are delivered."""
    with ThreadPoolExecutor(4) as pool:
        done = list(
            pool.map(lambda number: hook.run("codex", "--gateway", nowhere, stdin=payload(number)), range(PROCESSES))
        )
    assert {(each.returncode, each.stdout, each.stderr) for each in done} == {(0, b"", b"")}
    assert hook.run("--flush", "--gateway", gateway.url).returncode == 0
    ids = [kept["payload"]["tool_use_id"] for kept in gateway.kept()]
    assert sorted(ids) == sorted(f"call-{number}" for number in range(PROCESSES))
