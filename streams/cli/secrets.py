"""The secrets of our own settings: which there are, and how they are read.

They come from the environment or a file, never from the command line, where other users of the machine could read them.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

import click

from streams.masking import hide

if TYPE_CHECKING:
    from pathlib import Path


class SecretVariable(NamedTuple):
    """A secret that has no option, since others could read it on the command line.

    Attributes:
        meaning: what it is.
        file: the option that names a file with it instead, as settings name it.
    """

    meaning: str
    file: str


SECRETS = {
    "TRACTION_GATEWAY_TOKEN": SecretVariable("Token that the gateway asks for.", "gateway_token_file"),
    "TRACTION_PAGE_TOKEN": SecretVariable(
        "Token that `/metrics` and the details of `/healthz` and `/readyz` ask for.", "page_token_file"
    ),
    "TRACTION_SASL_PASSWORD": SecretVariable("Password to log in to Kafka with.", "sasl_password_file"),
}
"""The secrets of our own settings, by the variable of the environment that has them."""


def secret(variable: str, file: Path | None, option: str) -> str | None:
    """Read a secret from its file, else from the environment. It is masked in the log from then on.

    Args:
        variable: name of the environment variable.
        file: the file, or None.
        option: the option that named the file, for the message.

    Raises:
        click.UsageError: the file cannot be read, or there is nothing in it.
    """
    if file is None:
        found = os.environ.get(variable) or None
        hide(variable, found or "")
        return found
    try:
        text = file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as problem:
        raise click.UsageError(f"{option}: {file} cannot be read: {problem}") from problem
    if not text:
        raise click.UsageError(f"{option}: {file} is empty; write the secret into it")
    hide(variable, text)
    return text
