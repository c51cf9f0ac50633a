"""What the operands of a command say: which file it shows or changes, which lines of it, what it looks for.

Knows how the commands that people and agents read, search and edit with place their operands, and nothing of kinds.
"""

import re
from collections.abc import Collection, Sequence

_SCRIPT_FIRST = frozenset({"awk", "gawk", "jq", "mawk", "perl", "ruby", "sed", "yq"})
_NAMELESS = frozenset(
    {
        "[",
        "[[",
        "date",
        "echo",
        "format-list",
        "format-table",
        "measure-object",
        "printf",
        "select-object",
        "seq",
        "sort-object",
        "tr",
    }
)
_DESTINATION_LAST = frozenset(
    {"chgrp", "chmod", "chown", "copy", "copy-item", "cp", "install", "ln", "move", "move-item", "mv", "rsync", "scp"}
)
_FILE_FIRST = frozenset({"add-content", "new-item", "out-file", "set-content"})
_NAMES_ONLY = frozenset({"command", "hash", "whereis", "which"})
_PATTERN_OPTIONS = frozenset({"-Pattern", "-e", "-f", "--expression", "--file", "--regexp"})
_PATH_OPTIONS = frozenset({"-FilePath", "-LiteralPath", "-Path"})
_LINES = re.compile(r"\d+:\d+\Z")
_NAMES = frozenset({"-iname", "-ipath", "-name", "-path", "-regex", "-wholename"})
_PATCHED = re.compile(r"^\*\*\* (?:Update|Add|Delete) File: (.+)$|^\+\+\+ (?:b/)?(\S+)", re.MULTILINE)
_SED_LINES = re.compile(r"(\d+)(?:,(\d+|\$|\+\d+))?p(?:;\s*\d+q)?\Z")
_AWK_LINES = re.compile(r"NR\s*(?:>=?|==)\s*(\d+)\D{1,12}NR\s*(?:<=?|==)\s*(\d+)")
_NUMBER = re.compile(r"\d+\Z")
_METHODS = frozenset({"-Method", "-X", "--method", "--request"})
_SENDS = (
    "-d", "--data", "--data-binary", "--data-raw", "--data-urlencode", "-F", "--form", "--json", "-T", "--upload-file",
    "--post-data", "-Body",
)  # fmt: skip
_SAVES = frozenset({"-O", "-OutFile", "-o", "--output", "--output-document"})
DEVICES = re.compile(r"/dev/(?!shm)|&|\$null\Z|nul\Z|-\Z", re.IGNORECASE)
"""Names of files that are none."""

_CLUSTER_CHARS = 4  # `-pie` is a cluster of options, `-Ilib` one with a value
Span = tuple[int, int]
_WHOLE = (0, 0)


def operands_of(words: Sequence[str], valued: Collection[str]) -> list[str]:
    """Return the words behind the program that are neither options nor the values of those that take one."""
    found: list[str] = []
    skip = False
    for word in words[1:]:
        if skip:
            skip = False
        elif word[:1] in {"-", "+"} and len(word) > 1:
            skip = word in valued
        else:
            found.append(word)
    return found


def has_option(words: Sequence[str], option: str) -> bool:
    """Tell whether an option is given, as a word, with a value behind ``=``, or as one letter of several."""
    if option in words:
        return True
    if option[:2] == "--":
        return any(word.startswith(f"{option}=") for word in words)
    letter = option[1:]
    if len(letter) != 1:
        return False
    return any(
        word[:1] == "-" and (word[1:2] == letter or (letter in word and word[1] != "-" and len(word) <= _CLUSTER_CHARS))
        for word in words
    )


def option_value(words: Sequence[str], options: Collection[str]) -> str:
    """Return the value of the first of some options that is given as a word of its own, or behind ``=``."""
    for at, word in enumerate(words):
        if word in options:
            return words[at + 1] if at + 1 < len(words) else ""
        name, equals, value = word.partition("=")
        if equals and name in options:
            return value
    return ""


def edited(program: str, operands: Sequence[str], words: Sequence[str], given: str) -> str:
    """Return the one thing that a command changes."""
    if "patch" in program:
        return patched(given or " ".join(words))
    operands = [word for word in operands if not _LINES.match(word)]
    if program in _DESTINATION_LAST or program in _FILE_FIRST:
        return operands[-1 if program in _DESTINATION_LAST else 0] if operands else ""
    if program in _SCRIPT_FIRST and not _PATTERN_OPTIONS.intersection(words):
        operands = operands[1:]
    return _only(operands)


def patched(text: str) -> str:
    """Return the one file that a patch changes."""
    files = {(one or other).strip() for one, other in _PATCHED.findall(text)} - {"/dev/null"}
    return files.pop() if len(files) == 1 else ""


def looked_for(program: str, operands: Sequence[str], words: Sequence[str]) -> tuple[str, str]:
    """Return what a command looks for, and the one file or folder where it does."""
    if program == "find":
        folder = next((word for word in operands if word[:1] not in {"(", "!"}), "")
        return option_value(words, _NAMES), folder
    if program in _NAMES_ONLY:
        return " ".join(operands), ""
    pattern = option_value(words, _PATTERN_OPTIONS)
    if not pattern and operands:
        pattern, operands = operands[0], operands[1:]
    return pattern, option_value(words, _PATH_OPTIONS) or _only(operands)


def shown(program: str, operands: Sequence[str], words: Sequence[str]) -> tuple[str, Span]:
    """Return the one thing that a command shows, and which lines of it."""
    if program in _NAMELESS:
        return "", _WHOLE
    if program == "head":
        return _only(operands), _first_lines(words)
    if program not in _SCRIPT_FIRST:
        return _only(operands), _WHOLE
    script = option_value(words, _PATTERN_OPTIONS)
    if not script and operands:
        script, operands = operands[0], operands[1:]
    return _only(operands), _lines_of(program, script)


def sends_or_saves(program: str, words: Sequence[str]) -> bool:
    """Tell whether a web request does more than show a page: whether it sends data or saves what comes."""
    method = option_value(words, _METHODS) or next((word[2:] for word in words if word[:2] == "-X"), "")
    if method.upper() not in {"", "GET", "HEAD", "OPTIONS"} or any(has_option(words, option) for option in _SENDS):
        return True
    to = option_value(words, _SAVES)
    if program == "curl" and has_option(words, "-O"):
        return True
    if program == "wget" and not to:
        return "--spider" not in words and not any(word[:1] == "-" and word[-2:] == "O-" for word in words)
    return to != "" and DEVICES.match(to) is None


def _only(operands: Sequence[str]) -> str:
    return operands[0] if len(operands) == 1 else ""


def _first_lines(words: Sequence[str]) -> Span:
    for at, word in enumerate(words):
        if word in {"-c", "--bytes"}:
            return _WHOLE
        value = (
            words[at + 1] if word in {"-n", "--lines"} and at + 1 < len(words) else word.lstrip("-n").rpartition("=")[2]
        )
        if word[:1] == "-" and _NUMBER.match(value):
            return 1, int(value[:9])
    return 1, 10  # as `head` does by itself


def _lines_of(program: str, script: str) -> Span:
    """Return the lines that a script of sed or awk prints, when that is all it does."""
    if program == "sed":
        lines = _SED_LINES.match(script)
        if not lines:
            return _WHOLE
        start, last = int(lines[1][:9]), lines[2] or lines[1]
        if last == "$":
            return start, 0
        return start, start + int(last[1:9]) if last[0] == "+" else int(last[:9])
    lines = _AWK_LINES.search(script)
    return (int(lines[1][:9]), int(lines[2][:9])) if lines else _WHOLE
