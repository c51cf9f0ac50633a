"""Finds the command behind what only runs it: keywords and assignments, ``sudo``, ``timeout 60``, ``bash -c``.

Which programs wrap others, and how many words of their own they take, is data (`catalogue.toml`).
"""

import re
from collections.abc import Collection, Iterable, Mapping

Words = tuple[str, ...]

_SUBCOMMANDS = 3
_KEYWORDS = frozenset({"!", "{", "}", "do", "done", "elif", "else", "esac", "fi", "if", "then", "until", "while"})
_CLAUSES = frozenset({"case", "for", "function", "select"})  # the words behind them are no command
_SHELLS = frozenset({"bash", "cmd", "dash", "eval", "fish", "ksh", "powershell", "pwsh", "sh", "su", "zsh"})
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_MODULE_WITHIN = 5  # words: python -u -W ignore -m pytest


class Wrappers:
    """Strips the wrappers of one catalogue; ``commands`` are the programs that ``python -m`` may stand for."""

    __slots__ = ("_commands", "_options", "_wrappers")

    def __init__(
        self, wrappers: Mapping[str, int], options: Mapping[str, Iterable[str]], commands: Collection[str]
    ) -> None:
        self._commands = commands
        self._options = {program: frozenset(valued) for program, valued in options.items()}
        self._wrappers: dict[str, dict[Words, int]] = {}
        for wrapper, own_words in wrappers.items():
            first, *rest = wrapper.split()
            self._wrappers.setdefault(first, {})[tuple(rest)] = own_words

    def __contains__(self, program: str) -> bool:
        return program in self._wrappers

    def valued(self, program: str) -> frozenset[str]:
        """Return the options of a program that take the next word as their value."""
        return self._options.get(program, frozenset())

    def unwrapped(self, words: Words) -> Words:
        """Return the command behind keywords, assignments and wrappers; empty when there is none."""
        words = _command(words)
        while words:
            program = program_of(words)
            known = self._wrappers.get(program)
            if known is not None:
                behind = _command(self._behind(program, words, known))
            elif program[:6] == "python" and "-m" in words[1:_MODULE_WITHIN]:
                behind = self._module(words[words.index("-m") + 1 :])
            else:
                break
            if not behind:
                break
            words = behind
        return words

    def _module(self, words: Words) -> Words:
        if not words:
            return ()
        for name in (words[0], words[0].partition(".")[0]):
            if name in self._commands:
                return (name, *words[1:])
        return ()

    def _behind(self, program: str, words: Words, known: Mapping[Words, int]) -> Words:
        valued = self.valued(program)
        sub: Words = ()
        own_words = known.get(sub)
        skip = False
        for at, word in enumerate(words[1:], start=1):
            if skip or (word[:1] == "-" and len(word) > 1):
                skip = not skip and word in valued
            elif own_words is None or (*sub, word) in known:
                sub = (*sub, word)
                own_words = known.get(sub)
                if len(sub) > _SUBCOMMANDS:
                    break
            elif own_words > 0:
                own_words -= 1
            else:
                return words[at:]
        return ()


def base_of(word: str) -> str:
    """Return the last part of a path."""
    return word.rstrip("/").rpartition("/")[2] if "/" in word else word


def program_of(words: Words) -> str:
    """Return the program of a command, without its folder."""
    word = words[0]
    return base_of(word.replace("\\", "/")) if "/" in word or "\\" in word else word


def inner_line(program: str, words: Words, given: str) -> str:
    """Return the command line that a shell is given to run, ``given`` its here-document; empty when there is none."""
    if len(words) == 1 and " " in words[0]:
        return words[0]  # what `ssh` was given in quotes
    if program.removesuffix(".exe") not in _SHELLS:
        return ""
    if program == "eval":
        return " ".join(words[1:])
    for at, word in enumerate(words[1:], start=1):
        if word.lower() in {"/c", "-command"}:
            return " ".join(words[at + 1 :])
        if word[:1] == "-" and word[-1:] == "c" and word[:2] != "--":
            return next((line for line in words[at + 1 :] if line[:1] != "-"), "")
    return given


def _command(words: Words) -> Words:
    """Return a simple command from its program on: past keywords of the shell and assignments."""
    for at, word in enumerate(words):
        if word in _CLAUSES:
            return ()
        if word in _KEYWORDS or ("=" in word and _ASSIGNMENT.match(word)):
            continue
        assigns = word[:1] == "$" and words[at + 1 : at + 2] == ("=",)  # of PowerShell
        behind = words[at + 2 :] if assigns else words[at:]
        return behind if at or assigns else words
    return ()
