"""Finds out by a file's content in which format it was recorded, never by its name.

Reads the beginning only, unless a file is one document over several lines. Each format knows its own by `recognise`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from streams.importers import (
    antigravity,
    antigravity_stream,
    atif,
    claude_code,
    cline,
    codex,
    codex_exec,
    crush,
    cursor,
    gemini,
    inspect_ai,
    mini_swe_agent,
    neutral,
    openai_messages,
    opencode,
    openhands,
    pi,
    swe_agent,
)
from streams.importers.containers import Tables, contents
from streams.importers.files import CannotRead
from streams.importers.mend import NotJson, parse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streams.importers.build import Session
    from streams.importers.files import Recording

MAX_LINES = 2_000
"""How many lines are looked at; Claude Code begins a file with some hundred of other sessions' summaries."""


class Format(Protocol):
    """What a format's module offers; one that is written line by line has a `Reader` too, see `lines`."""

    NAME: str

    def recognise(self, value: object) -> bool:
        """Tell whether a line or document is one of this format, or what is in a database or an archive."""

    def read(self, recording: Recording, *, whole: bool) -> Iterator[Session]:
        """Read the sessions of a file."""


FORMATS: tuple[Format, ...] = (
    claude_code,
    codex,
    neutral,
    swe_agent,
    mini_swe_agent,
    openhands,
    codex_exec,
    gemini,
    cursor,
    pi,
    antigravity,
    antigravity_stream,
    opencode,
    crush,
    cline,
    atif,
    inspect_ai,
)
"""The formats. Each has marks of its own, so that no two take a value for theirs."""

REST: Format = openai_messages
"""Messages such as many write, which hold what others add: those that are of no other format."""


@dataclass(frozen=True, slots=True)
class Detected:
    """A file's format.

    Attributes:
        format: the format; None when it is none that is known.
        whole: the file is one JSON document.
        is_json: there is some JSON value in it.
        fault: line and reason when the file begins like JSON and there is no JSON value in it.
        container: what else it is, in words, where it is no text.
    """

    format: Format | None
    whole: bool = False
    is_json: bool = True
    fault: tuple[int, str] | None = None
    container: str = ""


def detect(recording: Recording) -> Detected:
    """Find a file's format.

    Raises:
        CannotRead: the file cannot be opened or unpacked, and what could be read tells no format.
    """
    held = recording.contents = contents(recording.path)
    if held is not None:
        what = "a database of SQLite" if isinstance(held, Tables) else "a zip archive"
        return Detected(format_of(held), is_json=False, container=what)
    is_json = False
    fault: tuple[int, str] | None = None
    first = True
    try:
        for number, text in islice(recording.texts(), MAX_LINES):
            try:
                value = parse(text).value
            except NotJson as problem:
                if first and text.lstrip()[:1] in {b"{", b"["}:
                    document = _document(recording)
                    if document.is_json:
                        return document
                    fault = document.fault or (number, problem.reason)
                first = False
                continue
            first = False
            is_json = is_json or isinstance(value, dict | list)
            found = format_of(value)
            if found is not None:
                return Detected(found)
    finally:
        recording.unreadable.clear()  # they are noted when the file is read
    return Detected(None, is_json=is_json, fault=None if is_json else fault)


def _document(recording: Recording) -> Detected:
    try:
        value = parse(recording.content()).value
    except NotJson as problem:
        return Detected(None, is_json=False, fault=(problem.line, problem.reason))
    except CannotRead as problem:
        return Detected(None, is_json=False, fault=(1, str(problem)))
    return Detected(format_of(value), whole=True)


def format_of(value: object) -> Format | None:
    """Tell which format a line or document is of, or what is in a database or an archive."""
    own = next((known for known in FORMATS if known.recognise(value)), None)
    if own is not None:
        return own
    if REST.recognise(value):
        return REST
    return neutral if neutral.may_be(value) else None
