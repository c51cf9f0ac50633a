"""Reads the facts of a fix attempt and of a review, each once; their texts are not kept.

What is said of an attempt may be little: every fact may be absent, and who compares abstains then.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath
from typing import Final

from detectors.canonical import digest
from detectors.excerpt import excerpt
from detectors.failure import Failure, failure_of
from detectors.limits import Limits
from detectors.loops import milliseconds
from detectors.masks import mask_result
from detectors.tasks.diffs import change_of_texts, read_diff
from detectors.tasks.edits import plain_path
from detectors.tasks.facts import Attempt, Change, Round
from detectors.tasks.words import DEFAULT_STOPWORDS, each, prints, tokens
from schemas.events import FixAttempt, Review, ReviewFinding

MAX_FILES: Final = 32  # of whose paths prints are kept
MAX_NAMES: Final = 3  # files, checks and remarks that are kept for people, cut short
_NAME_CHARS = 60
_ID_CHARS = 64
_READ_CHARS = 4_000
_MOST_CHECKS = 1_000  # names that are looked at, of which `words.MAX_PRINTS` are kept
_MOST_STEMS = 256  # names of files that are looked for in each check

_CLASS = re.compile(r"[A-Z](?<=\b[A-Z])\w*(?:Error|Exception|Fault)\b")  # begun with a set: the rest is passed over
_CODE = re.compile(r"[A-Z](?<=\b[A-Z])(?<!H(?=TTP))[A-Z]{0,3}\d{3,5}\b")
_COMPILER_CODE = re.compile(r"error\[(?<=\berror\[)\w+\]")
_KINDS = (
    "no module named", "cannot find module", "cannot find package", "undefined reference", "undefined symbol",
    "undefined name", "syntax error", "no such file or directory", "segmentation fault", "command not found",
    "permission denied",
)  # fmt: skip
_MISSING = re.compile(
    r"(?i)(?:no module named|cannot find module|can't resolve|cannot find package|no required module provides package"
    r"|could not find (?:crate|gem)|unresolved import|there is no package called)[\s:]*"
    r"(?:['\"`\u2018\u201c]([^'\"`\u2019\u201d\n]{1,80})|([@\w./-]{1,80}))?"
)
_MISSING_SAID = (
    "no module named", "cannot find module", "can't resolve", "cannot find package",
    "no required module provides package", "could not find crate", "could not find gem", "unresolved import",
    "there is no package called",
)  # fmt: skip
_ALIKE = str.maketrans("\u0130\u0131\u017f", "iis")  # what patterns without case take for the same letter
_MODULE = re.compile(r"@?\w[\w@-]*(?:[./:]{1,2}[\w@-]+)*")  # what can be installed: no path from here, no sentence
_MISSING_CLASS = re.compile(r"\bModuleNotFoundError\b")
UNNAMED: Final = "?"
"""The name of a missing module that the failure does not name."""


def read_attempt(event: FixAttempt, limits: Limits) -> Attempt:
    """Return the facts of an attempt that was sent."""
    change, changed = read_diff(event.diff) if event.diff else (Change(), ())
    if not change.digest and event.replacements:
        change = change_of_texts((each.path, each.old, each.new) for each in event.replacements)
        changed = tuple(each.path for each in event.replacements)
    paths = dict.fromkeys(filter(None, map(plain_path, (*event.files, *changed))))
    said = _said(event.approach or "", limits)
    attempt = Attempt(
        attempt_id=cut_id(event.attempt_id),
        session=session_digest(event.session_id),
        event_id=cut_id(event.event_id),
        at_ms=milliseconds(event.occurred_at),
        outcome=event.outcome,
        approach=excerpt(event.approach or "", limits.decision.excerpt_chars),
        words=prints(said),
        wording=digest("wording", *sorted(said)) if said else 0,
        change=change,
        state=digest("state", event.state_digest) if event.state_digest else 0,
    )
    note_files(attempt, paths, limits)
    note_failing(attempt, event.failing, paths, limits)
    if event.error_message:
        note_failure(attempt, failure_of(event.error_message), event.error_message, limits)
    return attempt


def _said(approach: str, limits: Limits) -> frozenset[str]:
    """Return what the words of an attempt are compared by: the whole where no token is left, as of "fix it"."""
    found = tokens(approach, limits.circular_fix.stopwords or DEFAULT_STOPWORDS)
    return found or frozenset(filter(None, [" ".join(approach[:_READ_CHARS].lower().split())]))


def cut_id(name: str) -> str:
    """Return an identifier as it is kept for people; one that is longer is a digest."""
    return name if len(name.encode()) <= _ID_CHARS else f"{digest(name):016x}"


def session_digest(session_id: str) -> int:
    """Return what an attempt remembers of its session."""
    return digest("session", session_id)


def note_files(attempt: Attempt, paths: Iterable[str], limits: Limits) -> None:
    """Give an attempt the files it touched, in their canonical form."""
    touched = list(paths)
    attempt.files = prints(touched, MAX_FILES)
    attempt.names = _names(touched, limits)


def note_failing(attempt: Attempt, failing: Sequence[str], paths: Iterable[str], limits: Limits) -> None:
    """Give an attempt the names of the checks that fail after it, and note which of them its files are about.

    A change of very many files is about every check.
    """
    checks = {check: prints([check]) for check in dict.fromkeys(map(mask_result, failing[:_MOST_CHECKS]))}
    if not checks:
        return
    attempt.failing = prints(checks)
    attempt.failing_names = _names(checks, limits)
    attempt.failing_count = max(len(checks), len(failing) if len(failing) > _MOST_CHECKS else 0)
    stems = {stem for path in paths if (stem := _stem(path))}
    kept = set(each(attempt.failing))
    about = (name for name, mark in checks.items() if mark in kept and any(map(name.lower().__contains__, stems)))
    attempt.concerned = attempt.failing if len(stems) > _MOST_STEMS else prints(about)


def note_failure(attempt: Attempt, failure: Failure, message: str, limits: Limits) -> None:
    """Give an attempt what its failure says."""
    attempt.error = digest("error", failure.kind, failure.about) if failure.kind else 0
    attempt.error_text = excerpt(failure.template, limits.decision.excerpt_chars)
    attempt.transient = failure.transient
    message = message[:_READ_CHARS]
    plain = _lowered(message)
    attempt.specific = _is_specific(message, plain)
    if attempt.failing_count is None:
        attempt.failing_count = failure.failing
    elif attempt.derived:  # the output may show the names of some only
        attempt.failing_count = max(attempt.failing_count, failure.failing or 0)
    attempt.passing_count = failure.passing
    attempt.missing = _missing(message, plain, limits)


def _lowered(text: str) -> str:
    return text.lower() if text.isascii() else text.translate(_ALIKE).lower()


def _is_specific(message: str, plain: str) -> bool:
    """Tell whether a message, which is ``plain`` in lower case, names a class of error, its code or its kind."""
    if any(kind in plain for kind in _KINDS):
        return True
    if ("Error" in message or "Exception" in message or "Fault" in message) and _CLASS.search(message):
        return True
    return _CODE.search(message) is not None or _COMPILER_CODE.search(message) is not None


def _missing(message: str, plain: str, limits: Limits) -> str:
    """Return the module that is not there, by a name that can be installed; empty when none is missing."""
    found = _MISSING.search(message) if any(said in plain for said in _MISSING_SAID) else None
    if found is None:
        return UNNAMED if _MISSING_CLASS.search(message) else ""
    name = found.group(1) or found.group(2) or ""
    if name[:1] in {".", "/", "~"}:
        return ""  # a file of one's own, which an edit brings
    short = excerpt(name, min(_NAME_CHARS, limits.decision.excerpt_chars))
    return short if short == name and _MODULE.fullmatch(name) else UNNAMED


def read_review(event: Review, limits: Limits) -> Round:
    """Return the facts of a round of review."""
    marked = {_remark(each): each for each in event.findings}
    shown = list(marked.items())[:MAX_NAMES]
    return Round(
        event_id=cut_id(event.event_id),
        at_ms=milliseconds(event.occurred_at),
        pull_request=digest("pull request", event.pull_request),
        name=excerpt(event.pull_request, min(_NAME_CHARS, limits.decision.excerpt_chars)),
        by_person=event.author == "person",
        verdict=event.verdict,
        findings=prints(marked),
        remarks=tuple((prints([mark]), excerpt(each.text, limits.decision.excerpt_chars)) for mark, each in shown),
        comments=event.comments_total,
        number=event.round,
    )


def _names(names: Iterable[str], limits: Limits) -> tuple[str, ...]:
    most = min(_NAME_CHARS, limits.decision.excerpt_chars)
    return tuple(short for name in list(names)[:MAX_NAMES] if (short := excerpt(name, most)))


def _stem(path: str) -> str:
    """Return what the name of a check has in common with that of the file it is about: the bare name of the file."""
    stem = PurePosixPath(path).name.split(".")[0].lower().removeprefix("test_")
    stem = stem.removesuffix("_test").removesuffix("test").strip("_-")
    return stem if len(stem) > 2 else ""  # noqa: PLR2004 - shorter ones are in every name


def _remark(finding: ReviewFinding) -> str:
    """Return what makes a remark the same one: its own id, else where it is and its wording but for case and blanks.

    Numbers and short words count: three unused imports are three remarks.
    """
    if finding.id is not None:
        return f"id\0{finding.id}"
    wording = " ".join(mask_result(finding.text[:_READ_CHARS]).lower().split())
    return f"{plain_path(finding.path or '')}\0{wording}"
