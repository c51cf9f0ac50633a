"""Facts of one call: what each digest depends on and what not, and that any call is read in bounded time."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from detectors.call import read_call, words_of_query
from detectors.facts import WORD_BYTES, Mark
from detectors.layers import limits_from
from detectors.limits import Limits
from schemas.common import ErrorInfo
from schemas.events import CallUse
from schemas.testing import tool_call
from tests.detectors.reading import EDIT, GREP, READ, SHELL, json_values, read, reversed_keys

FACTS = ("action", "key", "answer", "patch", "page", "target", "start", "end", "empty", "complains", "failure")


def words(query) -> set[bytes]:
    """The prints of a query's words."""
    prints = words_of_query(query)
    return {prints[place : place + WORD_BYTES] for place in range(0, len(prints), WORD_BYTES)}


def test_what_a_call_is_for_may_be_told_instead_of_its_arguments():
    """Then it is of that kind, changes what it is said to change, and runs a program that is told apart from others."""
    told = CallUse(kind="edit", changes=True, program_digest="sha256:" + "0" * 56 + "9c56cc51")
    call = read_call(tool_call(1, "bash", None, arguments_digest="a" * 32, use=told), Mark(), Limits())
    assert (call.kind, call.changes, call.edits, call.program) == ("edit", True, True, "bash #9c56cc51")
    plain = read_call(tool_call(1, "bash", None, arguments_digest="a" * 32), Mark(), Limits())
    assert (plain.kind, plain.changes, plain.program) == ("run", False, "bash")


def test_a_call_has_its_place_and_what_was_spent_with_it():
    """Positions count from 0 and the mark includes the call."""
    mark = Mark(at_ms=7, calls=3, tokens=90, cost=0.5)
    call = read_call(tool_call(2, *SHELL), mark, Limits())
    assert call.seq == 2
    assert call.mark == mark
    assert call.event_id == "s1-2"


@pytest.mark.parametrize(
    ("tool", "arguments", "kind", "program"),
    [
        (*SHELL, "run", "deploy.sh"),
        ("Bash", {"command": "cd /srv && pytest -q"}, "check", "pytest"),
        ("execute_bash", {"command": "git status"}, "read", "git"),
        ("mcp__till__get_order", {"order_id": "A-17"}, "read", "get_order"),
        ("mcp__till__bookTable", {"guests": 4}, "edit", "book_table"),
        ("Grep", {"pattern": "fee"}, "search", "grep"),
        ("browser_click", {"element": "e42"}, "interact", "browser_click"),
        ("TodoWrite", {"todos": []}, "plan", "todo_write"),
        ("frobnicate", {"level": 3}, "other", "frobnicate"),
    ],
)
def test_use_of_the_tool_is_read_once(tool, arguments, kind, program):
    """Agents of several kinds: shells, file tools, services, browsers, and tools that nobody knows."""
    call = read((tool, arguments), "the result of it")
    assert (call.kind, call.program) == (kind, program)
    assert call.polls is (kind == "poll")
    assert call.runs is (kind in {"run", "check"} or tool in {"bash", "Bash", "execute_bash"})


def test_the_action_is_tool_and_arguments_without_their_labels():
    """What describes the call to people, the server's prefix and the order of keys make no other action."""
    one = read(("bash", {"command": "make", "description": "Build it"}), "done").action
    assert one == read(("bash", {"description": "Try again", "command": "make"}), "done").action != 0
    assert one == read(("Bash", {"command": "make"}), "broken", "error").action
    assert one == read(("mcp__box__bash", '{"command": "make"}'), "done").action
    assert one != read(("bash", {"command": "make all"}), "done").action
    assert one != read(("sh", {"command": "make"}), "done").action


def test_a_digest_of_arguments_stands_for_them():
    """Producers that may not send arguments send a digest; without either there is nothing to compare."""
    one = read(("bash", None), "done", arguments_digest="d1")
    assert one.action == read(("bash", None), "broken", arguments_digest="d1").action != 0
    assert one.action != read(("bash", None), "done", arguments_digest="d2").action
    assert one.action != read(("sh", None), "done", arguments_digest="d1").action
    unknown = read(("bash", None), "done")
    assert (unknown.action, unknown.key, unknown.target, unknown.patch, unknown.words) == (0, 0, 0, 0, b"")


def test_the_key_is_the_action_with_its_result():
    """Polling that brings news and a call whose outcome changed are no repetition."""
    one = read(SHELL, "3 files copied in 0.31s")
    assert one.key == read(SHELL, "3 files copied in 1.07s").key != 0
    assert one.key != read(SHELL, "4 files copied in 0.31s").key
    assert one.key != read(SHELL, "3 files copied in 0.31s", "error").key
    assert one.key != read(("bash", {"command": "./deploy.sh --to live"}), "3 files copied in 0.31s").key
    assert read(SHELL, {"a": 1, "b": 2}).key == read(SHELL, {"b": 2, "a": 1}).key


def test_the_error_is_part_of_the_result():
    """Two failures that only differ in what was volatile are one; another code or type is another."""
    one = read(SHELL, "", "error", error=ErrorInfo(code=2, message="broke after 3 s"))
    same = read(SHELL, "", "error", error=ErrorInfo(code=2, message="broke after 9 s"))
    assert one.key == same.key
    for other in (ErrorInfo(code=3, message="broke after 3 s"), ErrorInfo(code=2, type="x", message="broke after 3 s")):
        assert one.key != read(SHELL, "", "error", error=other).key


def test_a_result_that_was_not_recorded_is_judged_by_its_action():
    """Absent and null are no result; an empty text is one."""
    unrecorded = read(SHELL, UNSET)
    assert not unrecorded.recorded
    assert unrecorded.key == read(SHELL, None).key != 0
    assert (unrecorded.answer, unrecorded.empty, unrecorded.complains) == (0, False, False)
    empty = read(SHELL, "")
    assert empty.recorded
    assert empty.key != unrecorded.key
    assert unrecorded.succeeded
    assert not read(SHELL, UNSET, None).succeeded


def test_the_digest_of_a_result_that_was_cut_or_kept_back_tells_results_apart():
    """Cut texts that begin alike may end otherwise; the digest of a text that is whole says nothing more."""
    kept_back = read(SHELL, UNSET, result_digest="d1")
    assert kept_back.recorded
    assert kept_back.key != read(SHELL, UNSET, result_digest="d2").key
    one = read(SHELL, "begins alike", result_digest="d1", result_length=9_000)
    other = read(SHELL, "begins alike", result_digest="d2", result_length=9_000)
    assert one.key != other.key
    assert one.answer != other.answer
    whole = read(SHELL, "begins alike", result_digest="d1", result_length=12)
    assert whole.key == read(SHELL, "begins alike").key


@pytest.mark.parametrize(
    ("call", "one", "other"),
    [
        (("current_time", {}), "2026-01-31T12:00:00Z", "2026-01-31T12:00:01Z"),
        (("bash", {"command": "date"}), "Mon Nov 30 16:03:27 UTC 2026", "Mon Nov 30 16:04:11 UTC 2026"),
        (("measure_latency", {"host": "till"}), "12 ms", "17 ms"),
        (("bash", {"command": "mktemp -d"}), "/tmp/tmp.aB3xQ9", "/tmp/tmp.Zk81mP"),  # noqa: S108 -- what it prints
        (("new_id", {}), "550e8400-e29b-41d4-a716-446655440000", "650e8400-e29b-41d4-a716-446655440000"),
        (("bash", {"command": "date"}), "<output>12:00:01</output>", "<output>12:00:02</output>"),
    ],
    ids=str,
)
def test_a_result_that_is_nothing_but_volatile_is_the_answer_itself(call, one, other):
    """A clock or a meter is read for what changes: two readings are two results."""
    assert read(call, one).key != read(call, other).key
    assert read(call, one).key == read(call, one).key


def test_tools_may_have_masks_of_their_own():
    """What is volatile in the results of one tool is a setting."""
    limits = limits_from([("test", {"tools": {"volatile": {"play": ["move \\d+ of the game"]}}})])
    keys = [
        read_call(tool_call(0, tool, {"to": "e4"}, f"move {n} of the game: pawn to e4"), Mark(calls=1), limits).key
        for tool in ("play", "watch")
        for n in (1, 2)
    ]
    assert keys[0] == keys[1]
    assert keys[2] != keys[3]


def test_the_answer_is_what_is_left_without_the_question():
    """One answer to several questions is recognised, whatever of each it repeats."""
    one = read(("grep", {"pattern": "needle-one"}), "No file has needle-one in it")
    other = read(("grep", {"pattern": "thimbles"}), "No file has thimbles in it")
    assert one.answer == other.answer != 0
    assert one.key != other.key
    assert one.answer != read(("grep", {"pattern": "thimbles"}), "One file has thimbles in it").answer
    assert one.answer != read(("find", {"pattern": "needle-one"}), "No file has needle-one in it").answer


@pytest.mark.parametrize("result", ["", "0", "12A", "true", "[1, 2, 3]", {"n": 3}, "1234567 8901234"], ids=str)
def test_bare_values_are_no_answer(result):
    """Equal small values are data: a dozen prices of 12 are no loop."""
    assert read(("get_price", {"item": "hat"}), result).answer == 0


def test_targets_and_lines_are_read():
    """A file is one target by whatever argument it is named; lines count from 1, both included."""
    one = read(("read_file", {"path": "src/till.py", "offset": 11, "limit": 10}), "text")
    assert (one.start, one.end) == (11, 20)
    assert one.target == read(("Read", {"file_path": "src/till.py"}), "text").target != 0
    assert one.target == read(("bash", {"command": "cat src/till.py"}), "text").target
    assert one.target != read(("read_file", {"path": "src/fees.py"}), "text").target


def test_words_of_queries_are_compared_without_case_and_signs():
    """Another way to ask for the same shares its words; short words and what stands after a dozen do not count."""
    assert words("Retry-After header") == words("header: retry after")
    assert words("retry of a header") == words("retry header")
    assert words("retry retry retry") == words("retry")
    assert words("a, an of") == set()
    long = " ".join(f"word{chr(97 + n)}" for n in range(20))
    assert len(words(long)) == 12
    assert words(f"{'x' * 1_000} retry") == words("x" * 1_000)
    assert read(GREP, "x").words == words_of_query("retry_after")
    assert read(READ, "x").words == b""


@pytest.mark.parametrize(
    ("status", "result", "outage"),
    [
        ("ok", "503 Service Unavailable", True),
        (None, "Error: too many requests", True),
        ("error", "503 Service Unavailable", False),
        ("ok", {"error": "rate limit exceeded"}, True),
        ("ok", "503 Service Unavailable. " * 17, False),
        ("ok", "The runbook for 503 Service Unavailable", False),
    ],
)
def test_an_outage_behind_a_flag_of_success_passes_by_itself(status, result, outage):
    """A short answer that is nothing but the word of one; flagged ones are failures that say so themselves."""
    assert read(("fetch", {"url": "https://shop.example"}), result, status).outage is outage


def test_what_an_accepted_edit_is():
    """Edits and commands that change something clear what they refute, but only if they worked."""
    accepted = read(EDIT, "The file has been updated.")
    assert accepted.edits
    assert accepted.applied
    refused = read(EDIT, "String to replace not found in file.")
    assert refused.edits
    assert not refused.applied
    assert read(("bash", {"command": "sed -i s/fee/sum/ till.py"}), "").applied
    assert not read(READ, "text").edits


def test_what_talks_neither_adds_nor_ends():
    """Plans and messages are no work, unless their tool failed."""
    assert read(("think", {"thought": "why"}), "noted").talks
    assert not read(("think", {"thought": "why"}), "no such tool", "error").talks
    assert not read(SHELL, "done").talks


def test_calls_of_one_response_are_known_to_be():
    """Parallel calls share a batch; without one nothing is compared."""
    assert read(SHELL, "done", batch_id="b1").batch == read(READ, "text", batch_id="b1").batch != 0
    assert read(SHELL, "done").batch == 0


names = st.sampled_from(
    [
        "bash",
        "Read",
        "edit_file",
        "grep",
        "mcp__x__click",
        "scroll",
        "get_order",
        "run_tests",
        "wait",
        "think",
        "python",
    ]
) | st.text(min_size=1, max_size=20)
arguments = json_values | st.dictionaries(
    st.sampled_from(["command", "path", "query", "url", "offset", "limit", "action", "old", "new", "city", "day"]),
    json_values,
    max_size=5,
)
errors = st.none() | st.builds(
    ErrorInfo, code=st.none() | st.integers() | st.text(), message=st.none() | st.text(), type=st.none() | st.text()
)


outcomes = st.fixed_dictionaries(
    {"status": st.sampled_from(["ok", "error", "timeout", "denied", None]), "error": errors},
    optional={"result_length": st.integers(0, 99), "result_digest": st.text(min_size=1), "batch_id": st.just("b1")},
)


@settings(max_examples=300, deadline=None)
@given(names, arguments, json_values, outcomes)
def test_any_call_is_read_and_kept_in_few_bytes(tool, given_arguments, result, outcome):
    """Whatever comes, there are facts; digests have 64 bits and texts are cut, since the state keeps them."""
    call = read((tool, given_arguments), result, **outcome)
    for digest in (call.action, call.key, call.answer, call.patch, call.page, call.target, call.batch):
        assert 0 <= digest < 2**64
    assert len(call.words) <= 24
    assert max(len(call.tool.encode()), len(call.program.encode())) <= 64
    assert len(call.text) <= 64 + 2 + Limits().decision.excerpt_chars


@settings(max_examples=300, deadline=None)
@given(names, arguments, json_values)
def test_the_order_of_keys_never_matters(tool, given_arguments, result):
    """No producer promises an order: the same call has the same facts."""
    one = read((tool, given_arguments), result)
    other = read((tool, reversed_keys(given_arguments)), reversed_keys(result))
    assert {fact: getattr(one, fact) for fact in FACTS} == {fact: getattr(other, fact) for fact in FACTS}


@pytest.mark.parametrize(
    ("tool", "given_arguments"),
    [
        ("get_weather", {"city": "Lisbon", "day": "Monday"}),
        ("search_trips", {"origin": "Lisbon", "destination": "Bergen"}),
        ("book_trip", {"origin": "Lisbon", "destination": "Bergen"}),
    ],
)
def test_arguments_that_together_name_an_object_name_it_in_any_order(tool, given_arguments):
    """Where no argument is the path, all of them say which record it is."""
    answer = "On Monday from Lisbon to Bergen there is rain"
    one, other = read((tool, given_arguments), answer), read((tool, reversed_keys(given_arguments)), answer)
    assert one.target == other.target
    assert one.answer == other.answer


HOSTILE = {
    "letters": "a",
    "digits": "1",
    "newlines": "\n",
    "blank lines": " \n",
    "tags": "<a>",
    "a tag and blanks": ("<a>", " ", "x"),
    "comments that never end": "/*",
    "markup comments": "<!--",
    "hashes": " #",
    "quotes": "'",
    "paths": "a/",
    "dots": "a.",
    "errors": "Error.",
    "clock parts": "12:",
    "month names": "Mon Jan 1 ",
    "sessions": "session id a-",
    "requests": "request_id=",
    "tags with ids": '<a id="',
    "links": "[a](https://",
    "addresses": "url: https://",
    "refusals": "not a ",
    "assignments": "x=",
    "failures": "1 a-b failed ",
    "credentials": "--password",
    "handles": "[ref=",
    "fences": "### Ran Playwright code\n```",
}


def seconds(text: str) -> float:
    """How long the readings of calls take that have this text wherever texts can stand: the better of two."""
    calls = [
        ("edit_file", {"path": "till.py", "new": text}, "ok"),
        ("bash", {"command": "pytest -q"}, None),
        ("bash", {"command": text}, "error"),
        ("browser_click", {"element": "e42"}, "ok"),
        ("grep", {"pattern": text}, "ok"),
        ("read_file", {"path": text}, None),
    ]
    best = float("inf")
    for _ in range(2):
        begun = time.process_time()
        for tool, given_arguments, status in calls:
            read((tool, given_arguments), text, status)
        best = min(best, time.process_time() - begun)
    return best


@pytest.fixture(scope="module")
def ordinary_seconds() -> float:
    """How long an ordinary text of the same length takes."""
    return seconds(('Said she: see src/till.py, line 3 (and 12 more), it\'s "done" & paid.\n' * 750)[:50_000])


@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE)
def test_no_text_takes_much_longer_than_another(piece, ordinary_seconds):
    """Results are foreign: none may stall the worker that reads it."""
    if isinstance(piece, tuple):
        first, middle, last = piece
        text = first + middle * 50_000 + last
    else:
        text = (piece * 50_000)[:50_000]
    assert seconds(text) <= 6 * ordinary_seconds
