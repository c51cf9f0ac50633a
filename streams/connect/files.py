"""Reads and writes settings files of agents, and keeps what they were before.

A file is replaced as a whole or not at all, where a link points to, with its permissions. What was there before is kept
in the user's directory for state, readable for the user only.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_BYTES: Final = 4 * 1024 * 1024
"""Largest settings file; real ones have some kilobytes."""

_DIGEST_CHARS: Final = 16
_PRIVATE: Final = 0o600


class CannotUse(Exception):
    """A file cannot be read or written; the text says which, why and what to do."""


class Before(msgspec.Struct, frozen=True):
    """What a settings file was before hooks were put in.

    Attributes:
        path: the file.
        existed: whether there was one.
        had: names of the hooks that were there, and `hooks` itself.
        after: digest of the file as we wrote it; when it still is so, it gets back what it was.
        made: directories that were made for it, from the inside out.
    """

    path: str
    existed: bool
    had: list[str]
    after: str
    made: list[str] = []


def read(path: Path) -> str | None:
    """Read a settings file; None where there is none.

    Raises:
        CannotUse: it cannot be read, or is no text.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise CannotUse(f"{path}: larger than {MAX_BYTES} bytes, which no settings are")
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as problem:
        raise CannotUse(f"{path}: not UTF-8 at byte {problem.start}; save it as UTF-8") from None
    except OSError as problem:
        raise CannotUse(f"{path}: cannot be read: {problem.strerror}") from None


def write(path: Path, text: str, *, was: str | None) -> None:
    """Replace a settings file.

    Args:
        path: the file; where it is a link, the file that it points to is replaced.
        text: what it is to be.
        was: what was read from it: when it is something else by now, nothing is written.

    Raises:
        CannotUse: it cannot be written, or was changed.
    """
    try:
        target = path.resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = stat.S_IMODE(target.stat().st_mode) if was is not None else _PRIVATE
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(text.encode("utf-8"))
                os.fchmod(file.fileno(), mode)
                file.flush()
                os.fsync(file.fileno())
            _check_unchanged(target, was)
            Path(name).replace(target)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                Path(name).unlink()
            raise
    except (OSError, RuntimeError) as problem:  # RuntimeError: links that point to each other
        raise CannotUse(f"{path}: cannot be written: {getattr(problem, 'strerror', None) or problem}") from None


def delete(path: Path, *, was: str) -> None:
    """Delete a settings file that was not there before; a link to it stays, as it was there.

    Raises:
        CannotUse: it cannot be deleted, or was changed.
    """
    try:
        _check_unchanged(path, was)
        path.resolve().unlink()
    except (OSError, RuntimeError) as problem:  # RuntimeError: links that point to each other
        raise CannotUse(f"{path}: cannot be deleted: {getattr(problem, 'strerror', None) or problem}") from None


def _missing_folders(path: Path) -> list[str]:
    """Name the directories that a file needs and that are not there, from the inside out."""
    found = []
    for folder in path.resolve().parents:
        if folder.exists():
            break
        found.append(str(folder))
    return found


def _check_unchanged(path: Path, was: str | None) -> None:
    if read(path) != was:
        raise CannotUse(f"{path}: was changed in the meantime; run the command again")


class Backups:
    """What settings files were before.

    Args:
        environ: the environment, which may name the directory for state (XDG Base Directory).
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        state = environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        self._directory = Path(state) / "traction" / "connect"

    def copy_of(self, path: Path) -> Path:
        """Say where the copy of a settings file is kept."""
        return self._directory / f"{_name(path)}.backup"

    def find(self, path: Path) -> Before | None:
        """Give what is known of a settings file; None where nothing is, or it cannot be read."""
        try:
            return msgspec.json.decode((self._directory / f"{_name(path)}.json").read_bytes(), type=Before)
        except (OSError, msgspec.DecodeError):
            return None

    def text_before(self, path: Path, before: Before) -> str | None:
        """Give what a settings file was; None where there was none, or it is lost."""
        return read(self.copy_of(path)) if before.existed else None

    def keep(self, path: Path, text: str | None, had: list[str], after: str) -> None:
        """Keep what a settings file was.

        Args:
            path: the file.
            text: what it was; None for no file.
            had: see `Before`.
            after: what it becomes.

        Raises:
            CannotUse: the directory cannot be written.
        """
        known = self.find(path)
        made = list(dict.fromkeys((*_missing_folders(path), *(known.made if known is not None else ()))))
        record = Before(str(path), text is not None, had, digest(after), made)
        entry = self._directory / f"{_name(path)}.json"
        self._make()
        if text is not None:
            write(self.copy_of(path), text, was=read(self.copy_of(path)))
        write(entry, msgspec.json.encode(record).decode(), was=read(entry))

    def forget(self, path: Path) -> None:
        """Forget a settings file, since its hooks were taken out, and take away the directories made for it.

        A directory stays if there is anything in it, as it does where the agent has put its own there since.
        """
        known = self.find(path)
        for file in (self._directory / f"{_name(path)}.json", self.copy_of(path)):
            with contextlib.suppress(OSError):
                file.unlink()
        made = [Path(folder) for folder in known.made] if known is not None else []
        for folder in (*made, self._directory, self._directory.parent):
            with contextlib.suppress(OSError):
                folder.rmdir()

    def _make(self) -> None:
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as problem:
            raise CannotUse(f"{self._directory}: cannot be made: {problem.strerror}") from None


def digest(text: str) -> str:
    """Give the digest of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def _name(path: Path) -> str:
    whole = str(path.resolve())
    return f"{path.name}-{hashlib.sha256(whole.encode('utf-8', 'replace')).hexdigest()[:_DIGEST_CHARS]}"
