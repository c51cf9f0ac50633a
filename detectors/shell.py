"""Splits a command line into the simple commands it is made of, as far as is needed to tell what it does.

It reads quotes, here-documents, redirections, subshells and separators, in one pass over at most `READ_CHARS`
characters, and never fails: what is unbalanced lasts to the end. It expands nothing and knows no programs.
"""

import re

import msgspec

READ_CHARS = 4_000
"""How much of a command line is read; what an agent does with a longer one shows at its beginning."""

# What is repeated at once is held by atomic groups: before 3.11.5, Python's possessive repetition of a group that has
# alternatives ends too early (CPython's issue 106052).
_TOKEN = re.compile(
    r"""(?xs)
    (?>(?: [ \t\r]+ | \\\r?\n )*)
    (?: (?P<plain>(?>(?: [^\s'"\\;|&<>()$\#] [^\s'"\\;|&<>()$]*+ (?: [ \t\r]++ | (?=[\n;|&)]) | \Z) )+)) # words at once
      | (?P<comment>\#[^\n]*)
      | (?P<here><<(?!<)-?[ \t]*(?P<until>'[^'\n]*' | "[^"\n]*" | \\?[\w.+-]+))
      | (?P<redirect>&>>? | \d?>[>|&]?(?!\() | <<< | \d?<&?(?!\())
      | (?P<word>(?>(?:
            [^\s'"\\;|&<>()$]++
          | '[^']*+(?:'|\Z)
          | "[^"\\]*+(?>(?:\\.[^"\\]*+)*)(?:"|\\?\Z)
          | \\(?:.|\Z)
          | \$(?!\()
        )+))
      | (?P<end>\n | ;[;&]* | && | & | \|[|&]?)
      | (?P<sum>\$?\(\([^()]*\)\))
      | (?P<open>[$<>]?\()
      | (?P<close>\))
      | (?P<stray>.)
    )
    """
)
_QUOTED = re.compile(r"""(?xs)\$?'(?P<plain>[^']*)'? | \$?"(?P<double>[^"\\]*(?:\\.[^"\\]*)*)"? | \\(?P<one>.?)""")
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
        position, text, match = 0, self.text, _TOKEN.match
        while (token := match(text, position)) is not None:
            kind = token.lastgroup
            if kind == "plain":
                self._plain(token["plain"].split(), joins=token.start("plain") == self.word_end)
                position = token.end()
            elif kind == "end":
                self._flush()
                end = token["end"]
                self.piped = end in {"|", "|&"}
                position = token.end()
                if end == "\n" and position - 1 == self.here_line:
                    position = self.here_end
            elif kind == "word":
                self._word(bare(token["word"]), joins=token.start("word") == self.word_end)
                self.word_end = position = token.end()
            else:
                position = self._take(kind or "", token)
        self._flush()
        return self.parts

    def _take(self, kind: str, token: re.Match[str]) -> int:
        """Take in a token that is no word, and return where the next one begins."""
        start, end = token.span(kind)
        if kind == "redirect":
            self.redirect = token["redirect"]
        elif kind == "here":
            self._here(token["until"].strip("'\"\\"), end)
        elif kind == "open":
            self._open(token["open"], joins=start == self.word_end)
        elif kind == "close":
            self._close()
            self.word_end = end
        elif kind == "sum":
            self._word("$", joins=start == self.word_end)
            self.word_end = end
        return end

    def _plain(self, words: list[str], *, joins: bool) -> None:
        """Take in words that are as they are written; the first may go on with the one before."""
        while words and (joins or self.redirect):
            self._word(words.pop(0), joins=joins)
            joins = False
        self.words += words

    def _word(self, word: str, *, joins: bool) -> None:
        if joins:
            if self.words:  # if not, it is a member of what a subshell gives, as in PowerShell
                self.words[-1] += word
        elif not self.redirect:
            self.words.append(word)
        else:
            if ">" in self.redirect and not (self.redirect[-1] == "&" and (word.isdigit() or word == "-")):
                self.writes.append(word)
            elif self.redirect == "<<<":
                self.given = word
            self.redirect = ""

    def _here(self, until: str, end: int) -> None:
        """Find the text of a here-document, which begins behind this line and the texts of others on it."""
        if self.here_line < end:
            line = self.text.find("\n", end)
            self.here_line = self.here_end = line if line >= 0 else len(self.text)
        begin = self.here_end
        line = begin + 1
        while (found := self.text.find(until, line)) >= 0:
            line = self.text.rfind("\n", line - 1, found) + 1
            following = self.text.find("\n", found)
            following = following if following >= 0 else len(self.text)
            if self.text[line:following].strip(" \t\r") == until:
                self.given, self.here_end = self.text[begin : line - 1], following
                return
            line = following + 1
        self.given, self.here_end = self.text[begin:], len(self.text)

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
    """Return a word without its quotes and escapes; the backslashes of a Windows path are none."""
    if "'" not in word and '"' not in word and ("\\" not in word or word[1:3] == ":\\"):
        return word
    quote = word[0]
    if quote in "'\"" and word[-1] == quote and word.count(quote) == 2 and (quote == "'" or "\\" not in word):  # noqa: PLR2004
        return word[1:-1]
    return _QUOTED.sub(_unquoted, word)


def _unquoted(match: re.Match[str]) -> str:
    if match.lastgroup == "double":
        return _ESCAPED.sub(r"\1", match["double"])
    return match[match.lastgroup or 0]
