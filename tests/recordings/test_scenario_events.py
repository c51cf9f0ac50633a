"""Attempts, reviews, states and turns, on small scenarios of our own: what they are to us, and what is counted."""

import pytest
from msgspec import UNSET

from detectors.tasks.observe import TASK_DETECTORS
from schemas.common import Usage
from schemas.events import FixAttempt, Review, SessionEvent, ToolCall
from schemas.testing import at
from tests.recordings.scenario_events import TASK, Entry, records
from tests.recordings.scenario_limits import ACCEPTED
from tests.recordings.scenarios import fault_of
from tests.recordings.test_scenarios import entry, scenario


def attempt(number, *, error=True, **args):
    """One attempt of a scenario, in words of its own."""
    words = ("lock", "cache", "retry", "schema", "clock", "socket")
    return entry("fix_attempt", "3 checks fail", args={"approach": words[number], **args}, error=error)


def round_of(*findings, reviewer="agent", verdict="changes_requested"):
    """One review of a scenario."""
    return entry("review", verdict, args={"reviewer": reviewer, "verdict": verdict, "findings": list(findings)})


REMARKS = ("the lock is never freed", "names differ from the page", "a test is wanted", "sorts twice", "leaks a handle")
SUBMITTED = entry("submit_change", "revision", args={"round": 1})


def made(*entries):
    """Give the records of a few entries."""
    return [record for _, found in records([Entry(**each) for each in entries]) for record in found]


def test_an_attempt_says_what_its_scenario_says_of_it():
    """Words, file, change and failure reach the detectors under the contract's names."""
    given = entry("fix_attempt", "boom", args={"file": "a.py", "approach": "guard it", "diff": "+x"}, error=True, ts=9)
    (found,) = made(given)
    assert isinstance(found, FixAttempt)
    assert (found.approach, found.files, found.diff) == ("guard it", ("a.py",), "+x")
    assert (found.outcome, found.error_message, found.occurred_at) == ("failed", "boom", at(9))


@pytest.mark.parametrize(("error", "outcome"), [(True, "failed"), (None, "failed"), (False, "success")])
def test_an_attempt_failed_unless_its_scenario_says_otherwise(error, outcome):
    """Who lists attempts lists what did not work; an answer to one that worked is no failure."""
    (found,) = made(attempt(0, error=error))
    assert found.outcome == outcome
    assert (found.error_message is None) == (outcome == "success")


def test_of_a_snapshot_only_the_state_is_known():
    """Nothing but the digest may make two snapshots alike."""
    (found,) = made(entry("state_snapshot", "S7"))
    assert (found.outcome, found.state_digest, found.error_message, found.approach) == ("failed", "S7", None, None)
    assert made(entry("state_snapshot", UNSET))[0].state_digest is None


def test_a_review_says_who_made_it_and_what_it_came_to():
    """A person's word weighs otherwise than an agent's."""
    agent, person, merged = made(round_of("a", "b"), round_of(reviewer="human"), entry("pr_merged"))
    assert isinstance(agent, Review)
    assert (agent.author, agent.verdict, [each.text for each in agent.findings]) == (
        "agent",
        "changes_requested",
        ["a", "b"],
    )
    assert (person.author, person.findings, merged.verdict) == ("person", (), "merged")
    assert agent.pull_request == merged.pull_request


@pytest.mark.parametrize("wrong", [round_of(verdict="shrugged"), round_of(reviewer="cat"), round_of(reviewer=None)])
def test_a_review_that_the_contract_has_no_form_for_is_a_fault(wrong):
    """It would count for nothing and pass by that."""
    assert "cannot be judged" in (fault_of(scenario(wrong)) or "")


def test_turns_of_the_model_are_turns_of_the_session_with_their_cost():
    """They are told by the harness, as are messages."""
    turn, step = made(entry("llm_turn", args={"cost_usd": 0.5}), entry("step", args={"i": 1}))
    assert isinstance(turn, SessionEvent)
    assert (turn.kind, turn.usage, step.kind, step.usage) == ("turn", Usage(cost_usd=0.5), "turn", None)


def test_a_run_that_names_its_revision_reports_on_an_attempt_as_well():
    """The call stays, and the checks it lists are those that fail after the revision."""
    call, found = made(entry("run_tests", "FAILED test_a test_b", args={"rev": "r1"}, error=True))
    assert isinstance(call, ToolCall)
    assert (found.failing, found.state_digest, found.outcome) == (("test_a", "test_b"), "r1", "failed")
    (_, green) = made(entry("run_tests", "all passed", args={"rev": "r2"}))
    assert (green.failing, green.outcome, green.error_message) == ((), "success", None)
    assert len(made(entry("run_tests", "FAILED test_a", args={}, error=True))) == 1
    assert len(made(entry("bash", "ok", args={"rev": "r1"}))) == 1


def test_all_records_are_of_one_task_and_have_ids_of_their_own():
    """What is spent is told to the task that a session names, and an id that came before is a redelivery."""
    found = made(entry(), attempt(0), round_of(), entry("step"), entry("run_tests", "ok", args={"rev": "r"}), SUBMITTED)
    assert {record.task for record in found} == {TASK}
    assert len({record.event_id for record in found}) == len(found) == 7


def test_alerts_of_the_task_count_like_those_of_the_session():
    """Six attempts that have nothing in common are too many, five are not."""
    attempts = [attempt(number) for number in range(6)]
    wanted = {"wanted": "warn", "words": ("fix_attempts",)}
    assert fault_of(scenario(*attempts, at_step=6, **wanted)) is None
    assert "too_many_attempts" in (fault_of(scenario(*attempts)) or "")
    assert fault_of(scenario(*attempts[:5])) is None


def test_a_submission_settles_attempts_and_not_the_rounds_of_a_review():
    """An author who submits is done with what failed before; the reviewer is not."""
    between = [attempt(0), attempt(1), attempt(2), SUBMITTED, attempt(3), attempt(4), attempt(5)]
    assert fault_of(scenario(*between)) is None
    rounds = [each for text in REMARKS[:3] for each in (SUBMITTED, round_of(text))]
    assert fault_of(scenario(*rounds, wanted="warn", at_step=6, words=("pingpong",))) is None
    assert fault_of(scenario(*rounds[:-1])) is None


def test_a_merge_ends_the_rounds():
    """Two and two are no four with a merge between."""
    first, second, third, fourth, _ = map(round_of, REMARKS)
    assert fault_of(scenario(first, second, entry("pr_merged"), third, fourth)) is None
    assert fault_of(scenario(first, second, third, fourth)) is not None


def test_rounds_of_review_follow_a_scenarios_numbers():
    """Warned and ended where its author says, a person's decision and an approval setting them back in any case."""
    config = {"review_rounds_warn": 4, "review_rounds_terminate": 5, "human_resets": True, "approval_resets": True}
    rounds = [round_of(text) for text in REMARKS]
    wanted = {"words": ("pingpong",), "config": config}
    assert fault_of(scenario(*rounds[:3], **wanted)) is None
    assert fault_of(scenario(*rounds[:4], wanted="warn", at_step=4, most="warn", **wanted)) is None
    assert fault_of(scenario(*rounds, wanted="terminate", at_step=5, **wanted)) is None
    for settled in (round_of(reviewer="human"), round_of(verdict="approved")):
        assert fault_of(scenario(*rounds[:3], settled, *rounds[3:], **wanted)) is None


def test_a_remark_made_again_follows_a_scenarios_number():
    """So many re-reviews as its author says."""
    wanted = {"wanted": "warn", "words": ("pingpong",), "config": {"same_finding_unfixed_warn": 1}}
    assert fault_of(scenario(round_of(REMARKS[0]), round_of(REMARKS[0]), **wanted)) is None
    assert fault_of(scenario(round_of(REMARKS[0]), round_of(REMARKS[1]), **wanted)) is not None


@pytest.mark.parametrize("equal", [3, 4, 5])
def test_equal_states_follow_a_scenarios_number(equal):
    """A state that is there so often is a return fewer, and each counts half."""
    config = {"equal_state_warn": equal}
    states = entry("state_snapshot", "S0", repeat=equal)
    assert fault_of(scenario(states, wanted="warn", at_step=equal, words=("fingerprint",), config=config)) is None
    assert fault_of(scenario({**states, "repeat": equal - 1}, config=config)) is None


def test_turns_are_ended_at_a_scenarios_number_and_not_before():
    """The task hears of each turn, not of every tenth."""
    config = {"turn_limit": 7}
    turns = entry("step", repeat=7)
    assert fault_of(scenario(turns, wanted="terminate", at_step=7, words=("budget",), config=config)) is None
    assert fault_of(scenario({**turns, "repeat": 6}, config=config)) is None


def test_attempts_without_progress_follow_a_scenarios_number():
    """Revisions that trade one failing check for another are attempts that lead nowhere."""
    pairs = ("test_a test_b", "test_b test_c", "test_c test_d")
    runs = [entry("run_tests", f"FAILED {names}", args={"rev": names}, error=True) for names in pairs]
    config = {"no_progress_warn": 3}
    assert fault_of(scenario(*runs, wanted="warn", at_step=3, words=("fingerprint",), config=config)) is None
    assert fault_of(scenario(*runs[:2], config=config)) is None


def test_every_detector_of_tasks_is_meant_by_some_word():
    """An alert that no word accepts could meet no expectation, however right it is."""
    ours = {detector.NAME for detector in TASK_DETECTORS}
    assert ours - set().union(*ACCEPTED.values()) == set()
    assert ACCEPTED["pingpong"] & ACCEPTED["circular_fix"] == set()
