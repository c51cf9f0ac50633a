"""Makes the passwords that `deploy/compose.yaml` needs, one a file, in the directory `passwords` beside it.

Standard library only, so that it runs before anything is installed. What is there already stays: remove a file, run it
again and start the containers anew to change a password. It prints none.
"""

from __future__ import annotations

import argparse
import secrets
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent

ADMINISTRATOR = "kafka-admin"
"""Who may do everything on the brokers; in no rule, but named by `super.users` of `compose.yaml`."""

OTHERS = ("gateway-token", "grafana")
"""What is no user of the brokers."""

JAAS = "kafka-jaas"
"""The brokers' list of users and passwords, as Java reads it."""

BYTES = 32


def users(layout: Path) -> list[str]:
    """List the users of the brokers: those that the layout names, and who administers them."""
    principals = tomllib.loads(layout.read_text("utf-8"))["principals"]
    named = {each.removeprefix("User:") for held in principals.values() for each in held}
    return [ADMINISTRATOR, *sorted(named)]


def make(directory: Path, layout: Path) -> None:
    """Make what is missing in a directory, and the list of users anew.

    Args:
        directory: closed to everybody else; the files in it are not, since containers have users of their own.
        layout: names the users.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    names = users(layout)
    for name in (*names, *OTHERS):
        file = directory / name
        if not file.exists():
            write(file, secrets.token_hex(BYTES))
    lines = "".join(f'\n  user_{name}="{(directory / name).read_text("utf-8").strip()}"' for name in names)
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    write(directory / JAAS, f"KafkaServer {{\n  {module} required{lines};\n}};\n")


def write(file: Path, text: str) -> None:
    """Write a file that is whole or not there."""
    new = file.with_name(f".{file.name}.new")
    new.write_text(text, "utf-8")
    new.chmod(0o444)
    new.replace(file)


def main() -> None:
    """Make them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", type=Path, default=HERE / "passwords", help="where (default: %(default)s)")
    parser.add_argument("--layout", type=Path, default=HERE / "kafka.toml", help="names the users (%(default)s)")
    given = parser.parse_args()
    make(given.directory, given.layout)


if __name__ == "__main__":
    main()
