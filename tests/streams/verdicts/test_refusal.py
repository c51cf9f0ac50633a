"""What stands in the place of a result that was not brought about says why, until when, and is known again."""

from __future__ import annotations

import pytest

from streams.verdicts.model import CallKey, Verdict
from streams.verdicts.refusal import NOT_MADE, REPEATS, denial_in, denial_of, not_made, recorded_denial, refusal
from tests.streams.verdicts.kit import at

REPEAT = Verdict(action="deny", text="Look.", calls=(CallKey("0f"),))
PAUSE = Verdict(action="deny", text="Look.", expires_at=at(300))
OTHERS = [PAUSE, *(Verdict(action=action, text="Look.") for action in ("deny", "stop", "ask", "guide"))]


@pytest.mark.parametrize("verdict", [REPEAT, *OTHERS])
@pytest.mark.parametrize("before", ["", "Hook PreToolUse:Bash denied this tool: "])
def test_a_denial_is_known_by_its_text(verdict: Verdict, before: str) -> None:
    """What we said is told from what anybody else says, also behind a harness's words, and why we said it."""
    text = refusal(verdict)
    assert text.startswith(NOT_MADE)
    assert text.endswith("Look.")
    assert denial_in(f"{before}{text}") == denial_of(verdict) == ("repeat" if verdict is REPEAT else "other")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"{'x' * 200}{NOT_MADE}{REPEATS}", "repeat"),
        (f"{'x' * 201}{NOT_MADE}{REPEATS}", None),
        (f"Exit code 1\n{NOT_MADE}{REPEATS}", None),
        ("This call was not made: it repeats the one before", None),
        ("", None),
    ],
)
def test_what_a_command_printed_is_no_denial(text: str, found: str | None) -> None:
    """Only the first line counts, and of it only the beginning."""
    assert denial_in(text) == found


def test_a_pause_says_until_when_it_lasts() -> None:
    """By the clock of the world, to the second."""
    assert f"until {at(300):%Y-%m-%d %H:%M:%S} UTC" in refusal(PAUSE)


@pytest.mark.parametrize("verdict", [REPEAT, *OTHERS])
@pytest.mark.parametrize("before", ["", "Action rejected: "])
@pytest.mark.parametrize("status", ["error", "denied", None, "ok", "timeout"])
def test_a_recorded_denial_is_told_as_whoever_denied_it_tells_of_it(
    verdict: Verdict, before: str, status: str | None
) -> None:
    """What succeeded is a result, whatever it says; and without a status our text stands alone."""
    known = status in {"error", "denied"} or (status is None and not before)
    assert recorded_denial(status, f"{before}{refusal(verdict)}") == (not_made(verdict) if known else None)
    assert recorded_denial(status, [refusal(verdict)]) is None
