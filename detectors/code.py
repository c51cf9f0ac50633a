"""Tells whether program text changes files or tables, by the calls and statements that it holds.

What the program is to do is not understood, and nothing is run: a call in a comment counts too.
"""

import re

_CALLS = {  # each by what it cannot do without: a text is searched for that first, which takes next to no time
    "open(": re.compile(r"""open\((?<=\bopen\()[^)\n]{0,200},\s*(?:mode\s*=\s*)?["'][rb]?[awx+]"""),
    ".write": re.compile(r"\.write(?:_text|_bytes|lines)?\("),
    "writeFile": re.compile(r"writeFile(?<=\bwriteFile)(?:Sync)?\("),
    "os.": re.compile(r"os\.(?<=\bos\.)(?:remove|rename|replace|unlink|makedirs|mkdir)\("),
    "shutil.": re.compile(r"shutil\.(?<=\bshutil\.)(?:copy\w*|move|rmtree)\("),
    ".unlink(": re.compile(r"\.unlink\("),
    ".mkdir(": re.compile(r"\.mkdir\("),
    "fs.": re.compile(r"fs\.(?<=\bfs\.)(?:unlink|rm|mkdir|rename|append)\w*\("),
}
_STATEMENTS = re.compile(r"(?i)\b(?:insert\s+into|update\s+\w+\s+set|delete\s+from|(?:create|drop|alter)\s+table)\b")
_WORDS = ("insert", "update", "delete", "table")  # of which every statement has one


def changes_by_code(code: str) -> bool:
    """Tell whether program text, by what it says, changes files or tables."""
    for needle, pattern in _CALLS.items():
        if needle in code and pattern.search(code):
            return True
    if code.isascii():  # else a letter may have more than two forms
        plain = code.lower()
        if not any(word in plain for word in _WORDS):
            return False
    return _STATEMENTS.search(code) is not None
