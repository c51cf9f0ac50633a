"""Command lines are split as a shell would, in one pass, and nothing makes that fail."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detectors import shell
from detectors.shell import READ_CHARS, Part, bare, parts_of

HOSTILE = (
    "'", '"', "\\", "$(", "(", ")", "((", "((a", "<<a ", "<<'", "`", "| ", "> ", ";", "&", "\n", "'\"", "a ", "a'b\"",
    "bash -c '", "<<EOF\n", "\x00", "\udcff", "é", "{", "$", "# ", "2>&1 ", "'\\''", "if ", "\\\n", "case x in a) ",
)  # fmt: skip


@pytest.mark.parametrize(
    ("line", "commands"),
    [
        ("ls -la", [("ls", "-la")]),
        ("ls;pwd", [("ls",), ("pwd",)]),
        ("ls && pwd || id", [("ls",), ("pwd",), ("id",)]),
        ("a | b |& c", [("a",), ("b",), ("c",)]),
        ("a & b", [("a",), ("b",)]),
        ("a\nb", [("a",), ("b",)]),
        ("a \\\n b", [("a", "b")]),
        ("echo 'a; b' \"c | d\"", [("echo", "a; b", "c | d")]),
        (r"echo a\;b 'it'\''s'", [("echo", "a;b", "it's")]),
        (r'echo "say \"hi\" \n"', [("echo", r'say "hi" \n')]),
        ("echo $'a b' $\"c d\"", [("echo", "a b", "c d")]),
        ("ls # and ; more\npwd", [("ls",), ("pwd",)]),
        ("echo a#b", [("echo", "a#b")]),
        ("(cd x; ls)", [("cd", "x"), ("ls",)]),
        ("echo $(git log) end", [("git", "log"), ("echo", "$", "end")]),
        ("x=$(cat a) y", [("cat", "a"), ("x=$", "y")]),
        ("a$(b)c", [("b",), ("a$c",)]),
        ("x=$((1+2)) y", [("x=$", "y")]),
        ("((i++)); ls", [("$",), ("ls",)]),
        ("diff <(a) <(b)", [("a",), ("b",), ("diff", "$", "$")]),
        ("f() { ls; }", [("{", "ls"), ("}",)]),
        ("case x in a) ls;; esac", [("ls",), ("esac",)]),
        ("(Get-Acl x).Owner", [("Get-Acl", "x")]),
        (r"C:\py\python.exe 'C:\a b'", [(r"C:\py\python.exe", r"C:\a b")]),
        ("'unbalanced ; rest", [("unbalanced ; rest",)]),
        ('echo "unbalanced', [("echo", "unbalanced")]),
        ("   ", []),
        ("", []),
    ],
)
def test_simple_commands(line, commands):
    """Quotes, comments, subshells and separators are those of a shell."""
    assert [part.words for part in parts_of(line)] == commands


@pytest.mark.parametrize(
    ("line", "writes"),
    [
        ("a > b", ("b",)),
        ("a >> 'b c'", ("b c",)),
        ("a >b 2>c", ("b", "c")),
        ("a &> b", ("b",)),
        ("a >| b", ("b",)),
        ("a > b 2>&1", ("b",)),
        ("a 2>&1 >&2 2>&-", ()),
        ("a < b", ()),
        ("a <<< b", ()),
        ("echo 'a > b' a\\>b", ()),
        ("x2>b", ("b",)),
    ],
)
def test_redirections(line, writes):
    """Files that are written to are told from descriptors and from what is read."""
    assert parts_of(line)[0].writes == writes


def test_texts_of_here_documents_are_no_commands():
    """Each begins behind the line that announces it and ends at its own word; the lines behind are commands again."""
    line = "cat <<A >x; b <<-'B B' | c\nrm 1\nA\nrm 2\n\tB B\nls <<< word"
    assert parts_of(line) == [
        Part(("cat",), ("x",), "\nrm 1"),
        Part(("b",), (), "\nrm 2"),
        Part(("c",), piped=True),
        Part(("ls",), (), "word"),
    ]
    assert parts_of("cat <<E\nrm a\nEE\n E F\n")[0].given == "\nrm a\nEE\n E F\n"


def test_pipes_are_told_from_other_chains():
    """Only what stands behind a pipe reads what came before."""
    assert [part.piped for part in parts_of("a | b && c || d |& e; f")] == [False, True, False, False, True, False]


def test_a_long_line_is_read_in_part():
    """What shows what a line does stands at its beginning."""
    assert parts_of("a" * 10_000) == [Part(("a" * 4_000,))]


@given(st.text())
def test_no_text_makes_it_fail(text):
    """Whatever is sent to a shell is split into something."""
    for part in parts_of(text):
        assert part.words or part.writes


@given(st.lists(st.sampled_from(HOSTILE), max_size=60).map("".join))
def test_no_syntax_makes_it_fail(text):
    """Nor do pieces of syntax in any order."""
    for part in parts_of(text):
        assert part.words or part.writes


@given(st.text(min_size=1))
def test_quotes_are_taken_off(text):
    """A word in quotes is the word, and a word without any is itself."""
    assert bare("'" + text.replace("'", "") + "'") == text.replace("'", "")
    plain = re.sub(r"""['"\\]""", "", text)
    assert bare(plain) == plain


@pytest.mark.parametrize("piece", HOSTILE)
def test_each_character_is_read_once(piece, monkeypatch):
    """However a line is built, the work grows as its length: tokens do not overlap, and end where reading ends."""

    class Spy:
        def __init__(self, pattern):
            self.pattern, self.spans = pattern, []

        def match(self, text, position):
            token = self.pattern.match(text, position)
            if token is not None:
                self.spans.append(token.span())
            return token

    spy = Spy(shell._TOKEN)
    monkeypatch.setattr(shell, "_TOKEN", spy)
    parts_of(piece * 1_000_000)
    assert all(end <= start for (_, end), (start, _) in zip(spy.spans, spy.spans[1:], strict=False))
    assert sum(end - start for start, end in spy.spans) <= READ_CHARS


@given(
    st.sampled_from(
        ["", "a>", "a <<<", "2>", "(a)", "$(a)", "a; ", "a | b 2>&1 ", "<)", "A=1 ", "'a'", "cat <<E\nx\nE\n"]
    ),
    st.lists(st.sampled_from(["a", "-v", "src/a.py", "*", "A=1", "é", "a#b", "7", "{}", "x:y"]), min_size=1),
    st.sampled_from([" ", "  ", "\t", " \r"]),
)
def test_plain_words_are_as_words_in_quotes(before, words, blank):
    """They are taken many at a time, whatever comes before: a redirection, a word that goes on, a subshell."""
    assert parts_of(before + blank.join(words)) == parts_of(before + blank.join(f"'{word}'" for word in words))
