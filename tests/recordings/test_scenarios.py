"""The runner of the scenarios, on small ones of our own: a run that passes by mistake would hide every other fault."""

import re

import msgspec
import pytest
from msgspec import UNSET

from schemas.common import ErrorInfo
from schemas.events import SessionEvent
from schemas.testing import at
from tests.recordings import scenario_limits, scenarios
from tests.recordings.scenario_events import Entry, call_of, records
from tests.recordings.scenario_limits import Missing, To, limits_for
from tests.recordings.scenarios import Scenario, check, fault_of, why_not


def entry(tool="bash", result="out", **fields):
    """One line of a scenario's play."""
    return {"tool": tool, "args": {"command": "ls"}, "result": result, "error": False, "repeat": 1, **fields}


def scenario(*events, wanted="none", at_step=None, most=None, name="own-1", words=("identical",), config=None):
    """A scenario of ours; positive when a level is wanted, played under its own numbers when it has any."""
    return msgspec.convert(
        {
            "id": name,
            "kind": "negative" if wanted == "none" else "positive",
            "events": list(events),
            "expect": {
                "detector": words[0],
                "level": wanted,
                "at_step": at_step,
                "max_level": most or ("none" if wanted == "none" else "terminate"),
                "any_of": list(words),
            },
            "replay_config": config or {},
            "threshold_sensitive": config is not None,
        },
        Scenario,
    )


@pytest.fixture(autouse=True)
def _no_exceptions(monkeypatch):
    """Exceptions are for the scenarios of others."""
    monkeypatch.setattr(scenarios, "EXCEPTIONS", {})


@pytest.fixture
def written(tmp_path):
    """Write scenarios to a file and give its path."""

    def write(*made):
        path = tmp_path / "scenarios.jsonl"
        path.write_bytes(b"\n".join(map(msgspec.json.encode, made)))
        return path

    return write


@pytest.mark.parametrize(
    ("count", "wanted", "at_step", "most", "fault"),
    [
        (3, "warn", 3, None, None),
        (3, "warn", None, None, None),
        (3, "warn", 2, None, "wanted warn by step 2"),
        (2, "warn", None, None, "got nothing"),
        (5, "terminate", 5, None, None),
        (4, "terminate", None, None, "wanted terminate by step 4"),
        (5, "warn", 3, "warn", "wanted warn at most"),
        (2, "none", None, None, None),
        (3, "none", None, None, "wanted none at most"),
        (3, "none", None, "notice", "wanted notice at most"),
        (3, "none", None, "warn", None),
        (5, "none", None, "warn", "wanted warn at most"),
    ],
)
def test_an_expectation_holds_only_when_level_step_and_bound_are_met(count, wanted, at_step, most, fault):
    """Too little, too late and too much are each a fault, and the fault says which."""
    found = fault_of(scenario(entry(repeat=count), wanted=wanted, at_step=at_step, most=most))
    assert found is None if fault is None else fault in (found or "")


def test_a_fault_names_level_detector_step_and_limit_of_what_came():
    """Whoever reads a fault knows where to look without playing it again."""
    found = fault_of(scenario(entry(repeat=3)))
    assert found == "wanted none at most, got warn by identical at step 3 (3; identical.warn = 3)"


def test_an_alert_of_another_kind_does_not_meet_an_expectation():
    """A loop that is taken for something else was not understood."""
    assert "got warn by identical" in (fault_of(scenario(entry(repeat=3), wanted="warn", words=("budget",))) or "")


def test_a_word_for_a_detector_that_nobody_translated_is_a_fault():
    """A scenario with a new word is neither dropped nor passed."""
    assert "no entry for the detector sorcery" in (fault_of(scenario(entry(), wanted="warn", words=("sorcery",))) or "")


def test_steps_are_counted_over_repeats_and_over_what_is_no_call():
    """Expected steps are positions in the expanded list, talk and messages included."""
    events = (entry("user_message"), entry("assistant_message", repeat=2), entry(repeat=3))
    assert fault_of(scenario(*events, wanted="warn", at_step=6)) is None
    assert fault_of(scenario(*events, wanted="warn", at_step=5)) is not None


def test_repeats_of_one_event_are_redeliveries():
    """Equal calls are many events unless they carry one id, then they are one that came often."""
    assert fault_of(scenario(entry(repeat=6, event_id="e"))) is None
    assert fault_of(scenario(entry(repeat=6))) is not None


def test_calls_of_a_retried_stream_keep_their_ids():
    """What the model streams again is what it streamed before, since the last word of a person."""
    events = [Entry(**entry(tool)) for tool in ("bash", "user_message", "read", "grep", "stream_retry", "read", "grep")]
    ids = [record.event_id for _, made in records(events) for record in made]
    assert ids[2:4] == ids[4:6]
    assert len(set(ids)) == 4


def test_a_call_says_what_its_scenario_says_of_it():
    """Flag, class of the failure, batch, id and phase reach the detectors under the contract's names."""
    given = Entry(
        tool="run",
        args={"a": 1},
        result="no",
        error=True,
        error_class="Timeout",
        batch_id="b",
        call_id="c",
        phase="end",
    )
    call = call_of(given, 7, 12.5)
    assert (call.tool, call.arguments, call.result) == ("run", {"a": 1}, "no")
    assert (call.status, call.error) == ("error", ErrorInfo(type="Timeout"))
    assert (call.batch_id, call.call_id, call.phase, call.occurred_at) == ("b", "c", "end", at(12.5))
    assert [call_of(Entry(tool="t", error=flag), 1, 1).status for flag in (False, None)] == ["ok", None]


@pytest.mark.parametrize(("error", "result"), [(False, ""), (None, UNSET), (True, "")])
def test_an_empty_result_counts_as_recorded_only_where_the_end_of_the_call_is_known(error, result):
    """Recordings without results have empty ones and no flag; a quiet command that succeeded has an answer."""
    assert call_of(Entry(tool="t", result="", error=error), 1, 1).result == result


def test_time_passes_by_seconds_or_as_the_scenario_says():
    """Seconds given in a scenario are event times; where none are given a second passes."""
    events = [Entry(tool="t"), Entry(tool="t", ts=300), Entry(tool="user_message"), Entry(tool="t", repeat=2)]
    times = [record.occurred_at for _, made in records(events) for record in made]
    assert times == [at(second) for second in (1, 300, 301, 302, 303)]


def test_session_events_are_told_apart_from_calls():
    """A message, a start and a trim are the session's own events; what the model merely says is nothing."""
    events = [Entry(tool=tool) for tool in ("user_message", "session_start", "context_compaction", "assistant_thought")]
    found = [made for _, made in records(events)]
    assert [record.kind for made in found for record in made if isinstance(record, SessionEvent)] == [
        "user_message",
        "started",
        "context_trimmed",
    ]
    assert found[3] == ()


def test_its_own_numbers_are_applied_to_a_scenario_that_depends_on_them():
    """Four calls are quiet under a limit of six that the scenario names, and only there."""
    assert fault_of(scenario(entry(repeat=4), config={"identical_warn": 6})) is None
    assert fault_of(scenario(entry(repeat=6), config={"identical_warn": 6})) is not None
    assert fault_of(scenario(entry(repeat=4))) is not None


def test_numbers_of_a_scenario_that_does_not_depend_on_them_are_passed_over():
    """It holds under any sane limits, so it is played under the defaults, and no rule is missing for it."""
    plain = msgspec.structs.replace(
        scenario(entry(repeat=3), wanted="warn", config={"identical_warn": 6, "tool_caps": {}}),
        threshold_sensitive=False,
    )
    assert why_not(plain) == []
    assert fault_of(plain) is None


@pytest.mark.parametrize("last", [2, 4, 5, 9])
def test_a_last_word_alone_leaves_room_for_our_warning_and_for_their_silence(last):
    """Systems without a warning: silence up to their limit is held to, and so is the end at it."""
    config = {"identical_terminate": last}
    assert fault_of(scenario(entry(repeat=last - 1), config=config)) is None
    assert fault_of(scenario(entry(repeat=last), wanted="terminate", at_step=last, config=config)) is None


def test_limits_beside_those_of_a_scenario_are_moved_to_agree():
    """A warning above the default of its last word, or a window shorter than the majority in it, is no mistake."""
    assert limits_for({"error_warn": 40}, negative=False)["error_streak.terminate"] == 40
    made = limits_for({"identical_window": 4, "identical_in_window_warn": 3}, negative=False)
    assert [made[f"identical.window{part}"] for part in ("", "_warn", "_terminate")] == [4, 3, 4]


def test_a_rule_that_we_lack_leaves_out_only_the_scenarios_that_need_it(monkeypatch):
    """The setting decides, and only where it is played under."""
    monkeypatch.setattr(scenario_limits, "TABLE", {"fancy": Missing("we have none")})
    assert why_not(scenario(entry(), config={"fancy": 1})) == ["we have none"]
    assert why_not(scenario(entry(), config={})) == []


def test_a_limit_that_does_not_exist_is_told_as_a_fault(monkeypatch):
    """A table ahead of the detectors, or a typing mistake in it, shows and stops nothing."""
    monkeypatch.setattr(scenario_limits, "TABLE", {"fancy": To(("identical.fancy",))})
    assert fault_of(scenario(entry(), config={"fancy": 1, "odd": 2})) == (
        "cannot be judged: no entry for the setting odd; no limit identical.fancy"
    )


def test_a_number_that_a_limit_cannot_have_is_told_as_a_fault():
    """Their zero may be our nonsense."""
    assert "identical.warn" in (fault_of(scenario(entry(), config={"identical_warn": 0})) or "")


def test_the_table_names_only_limits_that_exist():
    """Each translated setting reaches a limit."""
    ours = [each for each in scenario_limits.TABLE.values() if isinstance(each, To)]
    names = {name for each in ours for name in (*each.names, *each.beside)}
    assert names - scenario_limits.known_limits().keys() == set()


def test_a_run_tells_what_held_what_failed_and_what_was_left_out(written, capsys):
    """Nothing disappears: the figures add up to the scenarios of the file."""
    path = written(
        scenario(entry(repeat=3), wanted="warn", name="good"),
        scenario(entry(repeat=3), name="bad"),
        scenario(entry(repeat=3), name="own", config={"identical_warn": 4}),
        scenario(entry(), name="capped", config={"tool_caps": 3}),
    )
    assert [fault.split(":")[0] for fault in check(path)] == ["bad (identical)"]
    told = capsys.readouterr().out
    assert "1 of 2 held under the defaults, 1 of 1 under their authors' numbers; 1 left out" in told
    assert re.search(r"left out: capped: calls of one tool .*", told)


def test_an_exception_excuses_its_fault_and_is_refused_once_stale(written, monkeypatch, capsys):
    """Reasons are told, and one whose scenario holds, or is gone, has to go."""
    monkeypatch.setattr(scenarios, "EXCEPTIONS", {"bad": "so it is", "good": "no longer", "gone": "never"})
    path = written(scenario(entry(repeat=3), name="bad"), scenario(entry(), name="good"))
    assert [fault.split(":")[0] for fault in check(path)] == ["good (identical)", "gone"]
    assert "bad: so it is" in capsys.readouterr().out


def test_many_exceptions_are_a_fault(written, monkeypatch):
    """Where a whole handful of scenarios is called wrong, the detectors are."""
    names = [f"bad-{n}" for n in range(scenarios.MAX_EXCEPTIONS + 1)]
    monkeypatch.setattr(scenarios, "EXCEPTIONS", dict.fromkeys(names, "wrong"))
    assert len(check(written(*(scenario(entry(repeat=3), name=name) for name in names)))) == 1


@pytest.mark.parametrize("content", [None, b"", b'{"id": "x"}', b"{"])
def test_a_file_that_is_no_collection_is_a_fault(tmp_path, content):
    """Nothing played is not nothing wrong."""
    path = tmp_path / "scenarios.jsonl"
    if content is not None:
        path.write_bytes(content)
    assert len(faults := check(path)) == 1
    assert str(path) in faults[0]


def test_one_scenario_is_shown_step_by_step(written, monkeypatch, capsys):
    """The view that detectors are mended with: each step, its alerts, and the outcome."""
    path = written(scenario(entry(repeat=3), wanted="warn", name="one"), scenario(entry(), name="other"))
    monkeypatch.setattr("sys.argv", ["scenarios", str(path), "--id", "one"])
    assert scenarios.main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-3].startswith("   3 bash")
    assert lines[-2:] == ["     warn by identical at step 3 (3; identical.warn = 3)", "outcome: holds"]


def test_the_exit_code_says_whether_all_held(written, monkeypatch):
    """Continuous integration reads nothing else."""
    for count, code in ((2, 0), (3, 1)):
        monkeypatch.setattr("sys.argv", ["scenarios", str(written(scenario(entry(repeat=count))))])
        assert scenarios.main() == code
