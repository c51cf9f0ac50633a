"""Texts as agents send and get them, of any wanted size: commands, code, outputs of tests, hits of searches, answers.

All are made up here, line by line, from a seed. They say nothing of which session sends what, or how often.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

LINES = 4_096
"""Lines of each sort that texts are put together from: more than a text of 10 kB takes, so that few look alike."""


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


NOUNS = _words(
    "account amount archive basket batch booking branch budget carrier cart catalogue charge claim client column "
    "contract coupon currency customer deadline delivery deposit discount district document engine entry estimate fare "
    "folder freight gate harbour holiday index interest invoice journal label ledger license line list loan location "
    "margin market meeting member meter notice number offer order package parcel partner payment period permit person "
    "plan policy price product profile project quota rate reader receipt record refund region report request reserve "
    "result return room route sample schedule section service shelf shift signal station stock storage street "
    "supplier table tariff task tax team ticket total tour track transfer unit usage vehicle version vessel visit "
    "voucher ward warehouse window"
)
VERBS = _words(
    "add apply assign build cancel change check choose clean close collect compare compute convert copy count create "
    "divide drop estimate export fetch fill filter find format group import join keep limit list load lock mark match "
    "merge move open order parse plan print read reduce remove rename repair replace reserve round save scan select "
    "send sort split start stop store sum transfer trim update verify weigh write"
)
FOLDERS = ("src", "lib", "app", "core", "tests", "tools", "api", "jobs", "models", "views")
ENDINGS = ("py", "ts", "go", "rb", "rs", "java", "sql", "md", "yaml")


class Texts:
    """Makes texts.

    Args:
        chance: the source of all choices; two with the same state make the same texts.
    """

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        made = random.Random(4_711)  # noqa: S311 - no secret; the same lines whatever the load's seed
        self._code = [_code(made) for _ in range(LINES)]
        self._hits = [f"{_path(made)}:{made.randrange(1, 900)}: {_code(made).strip()}" for _ in range(LINES)]
        self._log = [_log(made) for _ in range(LINES)]
        self._tests = [f"{_path(made)}::test_{_name(made)} PASSED" for _ in range(LINES)]
        self._rows = [_row(made) for _ in range(LINES)]

    def path(self) -> str:
        """Give a path of a file."""
        return _path(self._chance)

    def name(self) -> str:
        """Give a name as programs have them."""
        return _name(self._chance)

    def command(self, size: int) -> str:
        """Give a command of a shell; a long one writes and runs a script."""
        chance = self._chance
        short = _COMMANDS[chance.randrange(len(_COMMANDS))](chance)
        if size < 400:
            return self._longer(short, size)
        head = f"cat > /tmp/{_name(chance)}.py <<'END'\n"
        return f"{head}{self.code(size - len(head) - 24)}\nEND\npython /tmp/run.py"

    def check(self, size: int) -> str:
        """Give a command that runs tests."""
        return self._longer(f"pytest -q {_path(self._chance)}", size)

    def code(self, size: int) -> str:
        """Give lines of a program."""
        return self._lines(self._code, size)

    def hits(self, size: int) -> str:
        """Give what a search found."""
        return self._lines(self._hits, size)

    def log(self, size: int) -> str:
        """Give what a program printed."""
        return self._lines(self._log, size)

    def passed(self, size: int) -> str:
        """Give what a run of tests printed that passed."""
        chance = self._chance
        tail = f"\n{chance.randrange(3, 400)} passed in {chance.randrange(10, 9_000) / 100:.2f}s"
        return self._lines(self._tests, size - len(tail)) + tail

    def failed(self, size: int, name: str) -> str:
        """Give what a run of tests printed in which one failed."""
        tail = f"\nFAILED tests/test_{name}.py::test_{name} - AssertionError: expected 12, got 11\n1 failed, 30 passed"
        return self._lines(self._tests, size - len(tail)) + tail

    def answer(self, size: int) -> dict[str, object]:
        """Give what an interface answered, as JSON."""
        chance = self._chance
        rows: list[object] = []
        found: dict[str, object] = {"id": chance.randrange(10**6), "status": "active", "items": rows}
        left, at = size - 45, chance.randrange(LINES)
        while left > 60:
            row = self._rows[at % LINES]
            rows.append(row)
            left -= len(str(row))
            at += 1
        return found

    def _longer(self, command: str, size: int) -> str:
        if len(command) >= size:
            return command
        words = " ".join(_name(self._chance) for _ in range(size // 8))
        return f"{command} # {words}"[:size]

    def _lines(self, lines: list[str], size: int) -> str:
        at, found, have = self._chance.randrange(LINES), list[str](), -1
        while have < size:
            line = lines[at % LINES]
            found.append(line)
            have += len(line) + 1
            at += 1
        return "\n".join(found)[: max(1, size)]


def _name(chance: random.Random) -> str:
    return f"{chance.choice(VERBS)}_{chance.choice(NOUNS)}"


def _path(chance: random.Random) -> str:
    folder, noun = chance.choice(FOLDERS), chance.choice(NOUNS)
    return f"{folder}/{noun}/{_name(chance)}.{chance.choice(ENDINGS)}"


def _code(chance: random.Random) -> str:
    one, other, name = chance.choice(NOUNS), chance.choice(NOUNS), _name(chance)
    forms = (
        f"def {name}({one}, {other}=None):",
        f"    {one} = {name}({other}, limit={chance.randrange(100)})",
        f"    if {one}.{other} is None and not {name}({one}):",
        f'        {one}["{other}"] = "{name} of {other}"',
        f"        return {name}({one}) - {other}[{chance.randrange(20)}]",
        f"    for {one} in sorted({other}s, key=lambda each: each.{one}):",
        f"    # The {one} is kept apart from the {other}, see {name}.",
        f'    logger.info("%s of %s", {one}, {other})',
        "",
    )
    return chance.choice(forms)


def _log(chance: random.Random) -> str:
    level = chance.choice(("INFO", "INFO", "INFO", "DEBUG", "WARNING"))
    clock = f"{chance.randrange(24):02}:{chance.randrange(60):02}:{chance.randrange(60):02}"
    noun = chance.choice(NOUNS)
    return (
        f"2026-01-{chance.randrange(1, 29):02} {clock} {level} {_name(chance)}: {noun} {chance.randrange(10**5)} done"
    )


def _row(chance: random.Random) -> dict[str, object]:
    return {
        "id": f"{chance.choice(NOUNS)[:3].upper()}-{chance.randrange(10**5)}",
        chance.choice(NOUNS): chance.randrange(10**4) / 100,
        "name": _name(chance).replace("_", " "),
    }


_COMMANDS: tuple[Callable[[random.Random], str], ...] = (
    lambda chance: f"ls -la {chance.choice(FOLDERS)}/{chance.choice(NOUNS)}",
    lambda chance: f"cat {_path(chance)} | head -n {chance.randrange(10, 200)}",
    lambda chance: f"git log --oneline -{chance.randrange(2, 30)} -- {_path(chance)}",
    lambda chance: f"sed -n '{chance.randrange(1, 90)},{chance.randrange(90, 400)}p' {_path(chance)}",
    lambda chance: f"grep -rn '{_name(chance)}' {chance.choice(FOLDERS)}/ --include=*.{chance.choice(ENDINGS)}",
    lambda chance: f"find . -name '*{chance.choice(NOUNS)}*' -not -path './node_modules/*'",
    lambda chance: f"python tools/{_name(chance)}.py --{chance.choice(NOUNS)} {chance.randrange(1_000)}",
    lambda chance: (
        f"curl -s localhost:{chance.randrange(3_000, 9_000)}/{chance.choice(NOUNS)}s/{chance.randrange(999)}"
    ),
)
