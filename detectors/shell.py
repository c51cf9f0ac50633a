"""Splits a command line into the simple commands it is made of, as far as is needed to tell what it does.

It reads quotes, here-documents, redirections, subshells and separators, in one pass over at most `READ_CHARS`
characters, and never fails: what is unbalanced lasts to the end. It expands nothing and knows no programs.
"""

import re

import msgspec

READ_CHARS = 4_000
"""How much of a command line is read; what an agent does with a longer one shows at its beginning."""

_TOKEN = re.compile(
    r"""(?x)
    (?P<gap>[ \t\r]+ | \\\r?\n)
  | (?P<comment>\#[^\n]*)
  | (?P<here><<(?!<)-?[ \t]*(?P<until>'[^'\n]*' | "[^"\n]*" | \\?[\w.+-]+))
  | (?P<redirect>&>>? | \d?>[>|&]? | <<<? | \d?<&?(?!\())
  | (?P<sum>\$?\(\([^()]*\)\))
  | (?P<open>[$<>]?\()
  | (?P<close>\))
  | (?P<end>\n | ;[;&]* | && | & | \|[|&]?)
  | (?P<word>(?:
        [^\s'"\\;|&<>()$]++
      | '[^']*+(?:'|\Z)
      | "[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)
      | \\(?:.|\Z)
      | \$(?!\()
    )++)
  | (?P<stray>.)
    """,
    re.DOTALL,
)
_QUOTED = re.compile(
    r"""(?s)\$?'(?P<plain>[^']*)'? | \$?"(?P<double>[^"\\]*(?:\\.[^"\\]*)*)"? | \\(?P<one>.?)""", re.VERBOSE
)
_ESCAPED = re.compile(r"""\\(["\\$`]|\n)""")


class Part(msgspec.Struct, frozen=True):
    """One simple command: its words without their quotes, the files it is written to, and the text it is given.

    Substituted commands stand in its words as ``$``. ``piped`` says that it reads what the command before puts out.
    """

    words: tuple[str, ...]
    writes: tuple[str, ...] = ()
    given: str = ""
    piped: bool = False


def parts_of(line: str) -> list[Part]:
    """Return the simple commands of a command line, substituted ones and those in subshells included, in order."""
    return _Reader(line[:READ_CHARS]).read()


class _Reader:
    """The state of one pass."""

    __slots__ = (
        "given", "here_end", "here_line", "outer", "parts", "piped", "redirect", "text", "word_end", "words", "writes",
    )  # fmt: skip

    def __init__(self, text: str) -> None:
        self.text = text
        self.parts: list[Part] = []
        self.outer: list[tuple[list[str], list[str], str, bool, bool] | None] = []
        self.words: list[str] = []
        self.writes: list[str] = []
        self.given = ""
        self.piped = False
        self.redirect = ""
        self.word_end = -1  # where the last word ended: what follows at once belongs to it
        self.here_line = -1  # where the line ends whose here-documents are read
        self.here_end = -1  # where the last of them ends

    def read(self) -> list[Part]:
        position = 0
        while position < len(self.text):
            token = _TOKEN.match(self.text, position)
            if token is None:  # cannot be, since a stray character is a token; mypy is told so
                break
            position = self._take(token.lastgroup, token)
        self._flush()
        return self.parts

    def _take(self, kind: str | None, token: re.Match[str]) -> int:
        """Take one token in, and return where the next one begins."""
        joins = token.start() == self.word_end
        if kind in {"word", "sum"}:
            self._word(bare(token.group()) if kind == "word" else "$", joins=joins)
            self.word_end = token.end()
        elif kind == "end":
            self._flush()
            self.piped = token.group() in {"|", "|&"}
            if token.start() == self.here_line:
                return self.here_end
        elif kind == "redirect":
            self.redirect = token.group()
        elif kind == "here":
            self._here(token)
        elif kind == "open":
            self._open(token.group(), joins=joins)
        elif kind == "close":
            self._close()
            self.word_end = token.end()
        return token.end()

    def _word(self, word: str, *, joins: bool) -> None:
        if joins:
            if self.words:  # if not, it is a member of what the subshell gives, as in PowerShell
                self.words[-1] += word
            return
        if not self.redirect:
            self.words.append(word)
            return
        if ">" in self.redirect and not (self.redirect.endswith(">&") and (word.isdigit() or word == "-")):
            self.writes.append(word)
        elif self.redirect == "<<<":
            self.given = word
        self.redirect = ""

    def _here(self, token: re.Match[str]) -> None:
        """Find the here-document's text, which begins behind this line and those of others on it."""
        if self.here_line < token.start():
            self.here_line = self.text.find("\n", token.end())
            self.here_end = self.here_line
        if self.here_line < 0:
            self.here_line = self.here_end = len(self.text)
        until = re.escape(token.group("until").strip("'\"\\"))
        last = re.compile(rf"\n[ \t]*{until}(?=[ \t\r]*(?:\n|\Z))").search(self.text, self.here_end)
        self.given = self.text[self.here_end : last.start() if last else len(self.text)]
        self.here_end = last.end() if last else len(self.text)

    def _open(self, opening: str, *, joins: bool) -> None:
        """Begin a subshell, or a command whose output becomes part of a word of the one that waits outside."""
        if opening == "(":
            self.words.clear()  # the name of a function that is being defined
            self.outer.append(None)
            return
        self.outer.append((self.words, self.writes, self.redirect, self.piped, joins))
        self.words, self.writes, self.redirect, self.piped = [], [], "", False

    def _close(self) -> None:
        if not self.outer:
            self.words.clear()  # a pattern of `case`
            return
        self._flush()
        waiting = self.outer.pop()
        if waiting is not None:
            self.words, self.writes, self.redirect, self.piped, joins = waiting
            self._word("$", joins=joins)

    def _flush(self) -> None:
        if self.words or self.writes:
            self.parts.append(Part(tuple(self.words), tuple(self.writes), self.given, self.piped))
        self.words, self.writes, self.given, self.piped, self.redirect = [], [], "", False, ""


def bare(word: str) -> str:
    """Return a word without its quotes and escapes."""
    if "'" not in word and '"' not in word and ("\\" not in word or word[1:3] == ":\\"):
        return word
    return _QUOTED.sub(_unquoted, word)


def _unquoted(match: re.Match[str]) -> str:
    if match.lastgroup == "double":
        return _ESCAPED.sub(r"\1", match["double"])
    return match[match.lastgroup or 0]
