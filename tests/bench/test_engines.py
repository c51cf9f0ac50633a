"""What `make bench` compares: engines that give the same as the detectors alone, on a load of the promised sizes."""

from __future__ import annotations

import asyncio
import os
import signal
import statistics
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from streams.worker.records import SESSION, encode_stored
from tests.bench.engines.catalogue import ENGINES
from tests.bench.engines.compare import Teller, main, measure
from tests.bench.engines.expected import expected
from tests.bench.engines.figures import summary, table
from tests.bench.engines.latency import FEWEST_EVENTS, WARM_EVENTS, Paced
from tests.bench.engines.load import Load
from tests.bench.engines.once import Measured, check_alerts, check_states
from tests.bench.engines.options import available, read
from tests.bench.engines.process import BenchError
from tests.bench.engines.rounds import DETECTION, EMPTY, Asked, Results, Rounds

SMALL = Asked(engines="abc", rounds=1, events=1_200, short=1_000, load=Load(seed=3, sessions=40, looping=0.1))
SHORT_LATENCY_SECONDS = 2.0
ROOT = Path(__file__).parents[2]


async def compared(asked: Asked, bootstrap: str, directory: Path) -> Results:
    """Run a comparison, which fails where an engine gives anything else than the detectors."""
    return await Rounds(asked, bootstrap, directory, lambda _: None).run()


def check(asked: Asked, results: Results) -> None:
    """See that all was measured, and that there were alerts to compare."""
    for mode, measured in results.measured.items():
        assert "".join(measured) == asked.engines
        for letter, (run,) in measured.items():
            assert run.events == asked.of(ENGINES[letter])
            assert min(run.seconds, run.cpu_seconds, run.peak_bytes, run.changelog_bytes) > 0
            assert run.alerts > 10 if mode == DETECTION else run.alerts == 0


async def test_engines_give_what_the_detectors_give(bootstrap: str, tmp_path: Path) -> None:
    """Worker, bare loop and Faust agent write each alert once, and the states after all events; counts likewise."""
    results = await compared(replace(SMALL, latency_seconds=0.0), bootstrap, tmp_path)
    assert list(results.measured) == [DETECTION, EMPTY]
    check(SMALL, results)


@pytest.mark.tools
async def test_quix_streams_gives_what_the_detectors_give(bootstrap: str, tmp_path: Path) -> None:
    """So does Quix Streams, which is not installed with everything else."""
    asked = replace(SMALL, engines="d", latency_seconds=0.0)
    check(asked, await compared(asked, bootstrap, tmp_path))


async def test_latency_and_several_workers_are_measured(bootstrap: str, tmp_path: Path) -> None:
    """Two workers share the load and give the same; alerts are timed while events come; all of it is in the table."""
    asked = replace(
        SMALL, engines="a", modes=(DETECTION,), workers=2, latency_seconds=SHORT_LATENCY_SECONDS, cores=((), ())
    )
    results = await compared(asked, bootstrap, tmp_path)
    (several,), (delays,) = results.several[DETECTION], results.delays["a"]
    assert several.alerts == results.measured[DETECTION]["a"][0].alerts
    assert 0 < delays.p50 <= delays.p99
    told = table(summary(asked, results))
    assert results.yardsticks["decode"][0] > results.yardsticks["orjson.loads"][0] > 0
    assert "2 workers/1" in told
    assert "events/s of 300 sessions at once, 10% looping" in told
    assert "ENDED EARLY" not in told


@pytest.mark.parametrize("rate", [0.1, 10.0, 499.0])
def test_alerts_are_timed_however_slow_the_machine(rate: float) -> None:
    """A rate that a machine hardly reaches makes the run longer, not one without an alert to look at."""
    paced = Paced.make(rate, SHORT_LATENCY_SECONDS)
    assert len(paced.events) == WARM_EVENTS + FEWEST_EVENTS
    assert sum(number >= WARM_EVENTS for number, _ in paced.wanted.alerts) >= 3


def test_a_fast_machine_times_alerts_as_long_as_asked() -> None:
    """From the rate on at which the time brings more than the fewest events, the time says how many."""
    assert len(Paced.make(501.0, SHORT_LATENCY_SECONDS).events) == WARM_EVENTS + 1_002


def test_other_alerts_are_told() -> None:
    """An alert that is missing, written twice or differs in a byte fails the comparison."""
    engine, wanted = ENGINES["b"], {"1": b"one", "2": b"two"}
    check_alerts(engine, wanted, [b"two", b"one"])
    for found in ([b"one"], [b"one", b"two", b"two"], [b"one", b"tvo"]):
        with pytest.raises(BenchError, match="bare loop: the alerts differ"):
            check_alerts(engine, wanted, found)


def test_other_states_are_told() -> None:
    """A session that is not stored, or in another state, fails the comparison."""
    wanted = expected(SMALL.load.events(100), [99, 100], empty=True)
    before, after = wanted[99].sessions, wanted[100].sessions
    stored = {key: encode_stored(SESSION, {}, state) for key, state in after.items()}
    check_states(ENGINES["b"], after, stored, tasks=False)
    with pytest.raises(BenchError, match="another state"):
        check_states(ENGINES["b"], before | dict.fromkeys(after.keys() - before.keys(), b""), stored, tasks=False)
    stored.popitem()
    with pytest.raises(BenchError, match="are stored, and"):
        check_states(ENGINES["b"], after, stored, tasks=False)


def test_the_load_has_the_sizes_of_what_was_recorded() -> None:
    """Arguments have p50 90 B and p99 6 kB, results 230 B and 10 kB; a seed gives the same events each time."""
    load = Load()
    events = list(load.events(30_000))
    arguments = sorted(len(orjson.dumps(event.arguments)) for event in events)
    results = sorted(
        len(event.result.encode() if isinstance(event.result, str) else orjson.dumps(event.result)) for event in events
    )
    assert statistics.median(arguments) == pytest.approx(90, rel=0.1)
    assert arguments[len(arguments) * 99 // 100] == pytest.approx(6_000, rel=0.15)
    assert statistics.median(results) == pytest.approx(230, rel=0.1)
    assert results[len(results) * 99 // 100] == pytest.approx(10_000, rel=0.15)
    assert len({event.session_id for event in events[:25_000]}) == pytest.approx(load.sessions, rel=0.1)
    assert list(load.events(500)) == events[:500]
    assert list(Load(seed=2).events(500)) != events[:500]


def test_a_load_without_loops() -> None:
    """No session loops at a share of 0: none calls what only loops call; the least share there is works too."""
    tools = [{event.tool for event in Load(sessions=40, looping=share).events(1_200)} for share in (0.1, 0.0)]
    assert tools[0] - tools[1] == {"book_entry"}
    assert len(list(Load(sessions=5, looping=5e-324).events(20))) == 20


RUN = Measured(
    events=1_000, seconds=1.0, cpu_seconds=1.0, peak_bytes=1, changelog_bytes=1, changelog_records=1, alerts=1
)


def test_figures_of_what_was_measured_until_a_failure(
    bootstrap: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the run fails in a later round, what came before is printed and told to be incomplete."""
    asked = replace(SMALL, engines="ac", rounds=2)
    rounds = Rounds(asked, bootstrap, tmp_path, lambda _: None)

    async def fail() -> Results:
        rounds.results.measured = {DETECTION: {"a": [RUN, RUN], "c": [replace(RUN, seconds=2.0)]}}
        raise BenchError("Faust ended by itself")

    monkeypatch.setattr(rounds, "run", fail)
    with pytest.raises(BenchError, match="Faust ended"):
        asyncio.run(measure(rounds, asked, Teller(), as_json=False))
    told = capsys.readouterr().out
    assert "ENDED EARLY" in told
    assert "2 (2-2)  times the events a second" in told
    assert "c had the first 1,000 events" in told


@pytest.mark.parametrize(
    "options",
    [
        ["--engines", "x"],
        ["--rounds", "0"],
        ["--workers", "0"],
        ["--workers", "3"],
        ["--workers", str(available() + 1), "--partitions", str(available() + 1)],
        *(["--looping", value] for value in ("-0.01", "1.01", "nan")),
        *(["--latency", value] for value in ("-1", "-0.01", "nan", "inf")),
    ],
)
def test_wrong_options_are_refused(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """What cannot be measured is said before anything starts."""
    with pytest.raises(SystemExit) as ended:
        main(["--engines", "a", *options])
    assert ended.value.code == 2
    assert options[0] in capsys.readouterr().err.rpartition("error: ")[2]


@pytest.mark.parametrize(
    ("options", "note"),
    [
        ("--engines b --latency 1", "--latency is left out: it needs engine a"),
        ("--engines a --empty --latency 1", "--latency is left out: it needs all detectors"),
        ("--engines a --events 19999", "--events is below 20,000"),
        ("--engines c --short 19999", "--short is below 20,000"),
    ],
)
def test_what_to_know_of_a_choice_is_told(options: str, note: str) -> None:
    """What is left out, and what makes figures doubtful, is in the notes."""
    (told,) = read(options.split(), None).notes
    assert told.startswith(note)


@pytest.mark.parametrize(
    "options", ["--engines a --looping 0 --latency 1", "--engines b --latency 0 --events 20000", "--engines b --empty"]
)
def test_what_is_as_asked_is_not_commented(options: str) -> None:
    """Nothing is told where all that was asked for is done, at the very bounds of the options."""
    assert read(options.split(), None).notes == []


@pytest.mark.skipif(available() < 2, reason="several workers need several cores")
def test_workers_on_all_cores_share_them_with_the_broker() -> None:
    """When there is no core left for the broker, that is told."""
    (note,) = read(["--engines", "a", "--workers", str(available()), "--partitions", str(available())], None).notes
    assert note.endswith("with the broker")


def test_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    """Interrupted while an engine runs again, it prints the first round and ends with 130; no process is left."""
    command = [sys.executable, "-m", "tests.bench.engines", "--engines", "b", "--events", "2000", "--empty", "--json"]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        for line in running.stderr:
            if line.startswith("round 2"):
                break
        running.send_signal(signal.SIGINT)
        told = running.stderr.read()
        found = orjson.loads(running.stdout.read())
    assert running.returncode == 130
    assert told.splitlines()[-1] == "interrupted"
    assert not found["complete"]
    assert found["modes"][EMPTY]["engines"]["b"]["events_per_second"]["median"] > 0
    assert list(tmp_path.iterdir()) == []
    left = [file for file in Path("/proc").glob("[0-9]*/cmdline") if str(tmp_path).encode() in _read(file)]
    assert left == []


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:  # it has ended
        return b""
