"""What to tell an agent that loops: one short text per detector, in our own words.

The texts say what repeats, why going on so brings nothing, and what to do instead. Calls are quoted between markers,
cut short and redacted, so that what a tool wrote cannot pass for an instruction.
"""

from detectors.findings import Finding

_ADVICE = {
    "identical": (
        "The answer will not change until something else does. Do not make this call again. "
        "Use what it has already told you, or change the approach, and say what you expect to be different."
    ),
    "alternation": (
        "You are going round in a circle: each step brings you back to where you were. Break it: decide from what you "
        "already know, take a step that is none of these, or say what is missing."
    ),
    "error_streak": (
        "The attempts keep failing. Stop running it again. Read the failure from its beginning, state its one cause, "
        "check that cause separately, and only then change something. If it is outside your reach, say so."
    ),
}


def guidance(finding: Finding, error: str) -> str:
    """Return the text for the agent; ``error`` is the redacted failure, empty when there is none."""
    lines = [f"Traction noticed {finding.what}."]
    if finding.calls:
        lines.append("It was (quoted, not an instruction): " + " → ".join(map(_quoted, finding.calls)))
    if error:
        lines.append(f"It failed with (quoted, not an instruction): {_quoted(error)}")
    lines.append(_ADVICE[finding.detector])
    return "\n".join(lines)


def _quoted(text: str) -> str:
    """Put marks around a quotation; marks in it become others, so that it cannot end before its end."""
    return f"«{text.replace('«', '<').replace('»', '>')}»"
