"""Every way to log in that brokers may demand: with it the whole job is done, and what is wrong with it is told."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING

import pytest

from streams.kafka import KafkaSettings
from tests.doors.kit import Job
from tests.doors.token_server import SECRET
from tests.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.doors.conftest import Doors
    from tests.processes import TractionProcess

JOBS = {
    "encrypted": ("encrypted",) * 3,
    "certificates": ("certificate",) * 3,
    "passwords": ("PLAIN", "SCRAM-SHA-512", "SCRAM-SHA-256"),
    "tokens": ("token-file", "token-server", "token-file"),
}
"""How the worker, the escalation consumer and the clients come in."""


def way_in(doors: Doors, way: str, path: Path) -> KafkaSettings:
    """Give settings that let somebody in who may do everything."""
    if way in {"encrypted", "certificate"}:
        listener = doors.cluster.listener("ENCRYPTED" if way == "encrypted" else "MUTUAL")
        settings = KafkaSettings(bootstrap=listener, security_protocol="SSL", cafile=doors.certificates.ca)
        if way == "encrypted":
            return settings
        certificate, key = doors.certificates.client("root")
        return replace(settings, certfile=certificate, keyfile=key)
    if way == "token-file":
        file = path / "token"
        file.write_text(doors.issuer.token())
        return doors.settings(mechanism="OAUTHBEARER", username=None, password=None, token_file=file)
    if way == "token-server":
        return doors.settings(mechanism="OAUTHBEARER", password=SECRET, token_url=doors.tokens.url)
    return doors.settings(mechanism=way)


@pytest.mark.parametrize("ways", JOBS)
async def test_the_whole_job_is_done_by_every_way_in(doors: Doors, tmp_path: Path, ways: str) -> None:
    """A loop is detected, ended and told of; every client of every process comes in."""
    worker, escalation, client = (way_in(doors, way, tmp_path) for way in JOBS[ways])
    async with Job(doors.settings(), tmp_path, ways) as job:
        await job.done(worker=worker, escalation=escalation, harness=client, orchestrator=client)


async def test_work_goes_on_when_brokers_end_connections_whose_login_has_expired(doors: Doors, tmp_path: Path) -> None:
    """Clients connect anew, with a new token; without one a worker is not ready, and it goes on when there is one."""
    listener, token = doors.cluster.listener("EXPIRING"), tmp_path / "token"
    token.write_text(doors.issuer.token())
    from_file = replace(way_in(doors, "token-file", tmp_path), bootstrap=listener)
    from_server = replace(way_in(doors, "token-server", tmp_path), bootstrap=listener)
    doors.tokens.seconds, asked = 3.0, doors.tokens.asked[200]
    try:
        async with Job(doors.settings(), tmp_path, "expiring") as job:
            working, escalating = job.worker(from_file), job.escalate(from_server)
            page, _ = await asyncio.gather(working.ready(1), escalating.ready(1))

            async def loops(*sessions: str) -> None:
                for session in sessions:
                    await asyncio.sleep(2.0)  # the listener's limit, shorter than the tokens' time
                    await job.send_loop(doors.settings(), session)
                    await job.obey(doors.settings(), session)

            await loops("one", "two")
            token.write_text(doors.issuer.token(seconds=-90))
            await until(lambda: is_ready(page, wanted=False))
            await until(lambda: told(working))
            token.write_text(doors.issuer.token())
            await until(lambda: is_ready(page, wanted=True))
            await loops("three")
            for process in (working, escalating):
                assert await process.end() == 0, process.log
                assert "closed" in process.log, "no connection was ended"
    finally:
        doors.tokens.seconds = 600.0
    assert doors.tokens.asked[200] >= asked + 3


async def told(worker: TractionProcess) -> bool:
    """Tell whether it logged that a login failed, which is not done at each try."""
    return "SaslAuthenticationFailed" in worker.log


async def is_ready(page: str, *, wanted: bool) -> bool:
    """Ask a process's page whether it is ready, and tell whether that is what is wanted."""

    def ask() -> int:
        try:
            with urllib.request.urlopen(f"{page}/readyz") as answer:  # noqa: S310 - our own page
                status: int = answer.status
        except urllib.error.HTTPError as problem:
            return problem.code
        return status

    return (await asyncio.to_thread(ask) == HTTPStatus.OK) == wanted
