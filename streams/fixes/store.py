"""Keeps the attempts of circular-fix detection: in a SQLite file that many processes write to, or in memory.

Every use is one transaction, so that numbers have no gaps whoever else writes. Of a diff only digests of its lines are
kept, of texts what `detector` made fit for keeping. Nothing in here judges anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import msgspec

from detectors.tasks.facts import Attempt
from streams.fixes.database import Database
from streams.fixes.records import FixAttempt, FixOutcome, StoreError, Summary

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

MAX_KEPT: Final = 200  # latest attempts of one subtask; a runaway agent must not fill the disk

_COLUMNS = "number, at_ms, outcome, approach, files, files_total, error, facts"
_SUBTASKS: Final = "subtasks"
_CIRCULAR: Final = "circular"

_FILES = msgspec.json.Decoder(tuple[str, ...])
_FACTS = msgspec.msgpack.Decoder(Attempt)


@dataclass(frozen=True, slots=True)
class Kept:
    """An attempt that is remembered: as people see it, and what it is compared by."""

    record: FixAttempt
    facts: Attempt


@dataclass(frozen=True, slots=True)
class Recording:
    """An attempt that is to be remembered. Its number is given by the store.

    Attributes:
        subtask_id: what it was to solve.
        at_ms: when, in milliseconds since 1970.
        outcome: what became of it.
        approach: its words, fit for keeping.
        files: the paths that are kept.
        files_total: how many files it touched.
        error_message: its failure, fit for keeping.
        facts: what it is compared by.
    """

    subtask_id: str
    at_ms: int
    outcome: FixOutcome
    approach: str
    files: tuple[str, ...]
    files_total: int
    error_message: str | None
    facts: Attempt

    def numbered(self, number: int) -> Kept:
        """Give the attempt with its number."""
        record = FixAttempt(
            _named(self.subtask_id),
            number,
            self.approach,
            self.files,
            self.files_total,
            self.outcome,
            self.error_message,
            datetime.fromtimestamp(self.at_ms / 1_000, UTC),
        )
        return Kept(record, msgspec.structs.replace(self.facts, number=number, attempt_id=str(number)))


class Store:
    """The attempts of all subtasks, and figures over them.

    Every method may raise StoreError.

    Args:
        path: the file, made when something is written; None keeps everything in this object.
        retention_ms: attempts that are older count no more, and go with the next one that is written.
    """

    def __init__(self, path: Path | None, retention_ms: int) -> None:
        self._database = Database(path)
        self._retention_ms = retention_ms

    def close(self) -> None:
        """Let go of it; what is in memory only is gone."""
        self._database.close()

    def add(self, new: Recording, *, clear: bool) -> FixAttempt:
        """Remember an attempt and count it; then forget its subtask's history, itself included, if ``clear``."""
        subtask = _named(new.subtask_id)
        with self._database.transaction() as database:
            database.execute("DELETE FROM attempts WHERE at_ms < ?", (new.at_ms - self._retention_ms,))
            (last,) = database.execute(
                "SELECT coalesce(max(number), 0) FROM attempts WHERE subtask = ?", (subtask,)
            ).fetchone()
            kept = new.numbered(last + 1)
            _count(database, new.outcome)
            if not last:
                _count(database, _SUBTASKS)
            if clear:
                database.execute("DELETE FROM attempts WHERE subtask = ?", (subtask,))
            else:
                database.execute(
                    f"INSERT INTO attempts (subtask, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
                    (
                        subtask,
                        last + 1,
                        new.at_ms,
                        new.outcome,
                        new.approach,
                        msgspec.json.encode(new.files),
                        new.files_total,
                        new.error_message,
                        msgspec.msgpack.encode(kept.facts),
                    ),
                )
                database.execute(
                    "DELETE FROM attempts WHERE subtask = ? AND number <= ?", (subtask, last + 1 - MAX_KEPT)
                )
        return kept.record

    def history(self, subtask_id: str, now_ms: int) -> list[Kept]:
        """Give the attempts of a subtask that are remembered, the oldest first."""
        subtask_id = _named(subtask_id)
        with self._database.transaction(creates=False) as database:
            rows = database.execute(
                f"SELECT {_COLUMNS} FROM attempts WHERE subtask = ? AND at_ms >= ? ORDER BY number",  # noqa: S608
                (subtask_id, now_ms - self._retention_ms),
            ).fetchall()
        try:
            return [
                Recording(
                    subtask_id,
                    at_ms,
                    FixOutcome(outcome),
                    text,
                    _FILES.decode(files),
                    total,
                    error,
                    _FACTS.decode(facts),
                ).numbered(number)
                for number, at_ms, outcome, text, files, total, error, facts in rows
            ]
        except (msgspec.MsgspecError, ValueError, TypeError) as problem:
            raise StoreError(self._database.damaged(str(problem))) from problem

    def count_circular(self) -> None:
        """Count an approach that was found circular."""
        with self._database.transaction() as database:
            _count(database, _CIRCULAR)

    def summary(self, now_ms: int) -> Summary:
        """Give the figures over all subtasks, what was forgotten since included."""
        with self._database.transaction(creates=False) as database:
            totals: dict[str, int] = dict(database.execute("SELECT name, value FROM totals").fetchall())
            attempts, subtasks = database.execute(
                "SELECT count(*), count(DISTINCT subtask) FROM attempts WHERE at_ms >= ?",
                (now_ms - self._retention_ms,),
            ).fetchone()
        outcomes = {outcome.value: totals.get(outcome, 0) for outcome in FixOutcome}
        total = sum(outcomes.values())
        return Summary(
            total_attempts=total,
            subtasks=totals.get(_SUBTASKS, 0),
            outcomes=outcomes,
            circular_count=totals.get(_CIRCULAR, 0),
            average_attempts_per_subtask=total / totals[_SUBTASKS] if total else 0.0,
            kept_attempts=attempts,
            kept_subtasks=subtasks,
        )

    def forget(self, subtask_id: str) -> int:
        """Forget the attempts of a subtask, and give how many there were. The figures stay."""
        with self._database.transaction(creates=False) as database:
            return database.execute("DELETE FROM attempts WHERE subtask = ?", (_named(subtask_id),)).rowcount

    def forget_all(self) -> int:
        """Forget all attempts and the figures over them, and give how many attempts there were."""
        with self._database.transaction(creates=False) as database:
            database.execute("DELETE FROM totals")
            return database.execute("DELETE FROM attempts").rowcount


def _count(database: sqlite3.Connection, name: str) -> None:
    database.execute("INSERT INTO totals VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET value = value + 1", (name,))


def _named(subtask_id: str) -> str:
    """Return a subtask's name as SQLite takes it: a command line may hold what is no Unicode."""
    return subtask_id.encode("utf-8", "replace").decode()
