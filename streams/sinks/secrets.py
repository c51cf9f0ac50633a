"""Reads what must not stand in a policy: tokens, keys and addresses that are secrets, from a variable or a file.

What was read is never printed: its `repr` is a mask, the log masks it, and errors name the variable or file, not the
content.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from streams.masking import MASK, hide
from streams.sinks.errors import InvalidSinks, MissingSecret

MAX_SECRET_BYTES = 65_536
"""A file with more is not a secret but a mistake, for example a device that never ends."""


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """A secret. Equal ones have equal content, so that a file that was written anew as it was changes nothing.

    Attributes:
        reveal: the content.
    """

    reveal: str

    def __repr__(self) -> str:
        return f"Secret({MASK})"

    def mask(self, text: str) -> str:
        """Take the secret, and each of its words, out of a text."""
        for part in sorted({self.reveal, *self.reveal.split()}, key=len, reverse=True):
            text = text.replace(part, MASK)
        return text


def read_secret(key: str, variable: str | None, file: str | None, place: str) -> Secret | None:
    """Read a secret from the source that the settings name.

    Args:
        key: the setting, without ``_env`` and ``_file``.
        variable: the environment variable, or None.
        file: the file, or None.
        place: file and table of the settings, for messages.

    Returns:
        The secret without blanks around it; None where neither source is named.

    Raises:
        MissingSecret: the variable is not set, or the file cannot be read.
        InvalidSinks: the file has nothing in it, or no secret.
    """
    if variable is not None:
        text = os.environ.get(variable, "").strip()
        if not text:
            raise MissingSecret(f"{place}: `{key}_env`: the variable {variable} is not set; set it to the secret")
        hide(f"{place}: {key}", text)
        return Secret(text)
    if file is None:
        return None
    try:
        with Path(file).open("rb") as opened:
            content = opened.read(MAX_SECRET_BYTES + 1)
        text = content.decode().strip()
    except OSError as problem:
        raise MissingSecret(
            f"{place}: `{key}_file`: {file} cannot be read ({problem.strerror}); write the secret into it"
        ) from None
    except UnicodeDecodeError:
        raise InvalidSinks(f"{place}: `{key}_file`: {file} is not UTF-8; write the secret into it as text") from None
    if not text or len(content) > MAX_SECRET_BYTES:
        what = "empty" if not text else f"longer than {MAX_SECRET_BYTES} bytes"
        raise InvalidSinks(f"{place}: `{key}_file`: {file} is {what}; write the secret into it, and nothing else")
    hide(f"{place}: {key}", text)
    return Secret(text)
