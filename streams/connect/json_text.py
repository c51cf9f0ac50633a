"""Reads a settings file in JSON with the place of everything in it, and edits the text without touching the rest.

Comments, the order of keys, spelling of numbers, blanks and line ends stay as they are. A comment or a comma before a
closing bracket, which some agents allow, is read as they read it. Changes nothing on disk.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Final

MAX_NESTING: Final = 100
"""Deeper settings are taken for damaged."""

_BLANK: Final = re.compile(r"[ \t\r\n]+")
_COMMENT: Final = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_STRING: Final = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR: Final = re.compile(r"true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_INDENT: Final = re.compile(r"\n([ \t]+)\S")


class Damaged(ValueError):
    """A settings file cannot be read.

    Attributes:
        line: where, from 1.
        column: likewise.
    """

    def __init__(self, text: str, position: int, problem: str) -> None:
        super().__init__(problem)
        self.line = text.count("\n", 0, position) + 1
        self.column = position - (text.rfind("\n", 0, position) + 1) + 1


@dataclass(slots=True)
class Node:
    """A value with its place.

    Attributes:
        start: where it begins.
        end: where it ends, one past.
        value: what it is, as `json.loads` would have it.
        parts: of an array the items, of an object the members, in order.
    """

    start: int
    end: int = 0
    value: Any = None
    parts: list[Part] = field(default_factory=list)

    def member(self, key: str) -> Part | None:
        """Find a member; of several with one key the last, as every reader does."""
        return next((part for part in reversed(self.parts) if part.key == key), None)


@dataclass(slots=True)
class Part:
    """An item of an array or a member of an object.

    Attributes:
        start: where it begins, with its key.
        node: its value.
        key: its key; None in an array.
        comma: where the comma after it is; None if there is none.
    """

    start: int
    node: Node
    key: str | None = None
    comma: int | None = None


class _Reader:
    def __init__(self, text: str, *, comments: bool) -> None:
        self.text = text
        self.comments = comments
        self.at = 1 if text.startswith("\ufeff") else 0

    def skip(self) -> None:
        while True:
            found = _BLANK.match(self.text, self.at)
            if found is None and self.comments:
                found = _COMMENT.match(self.text, self.at)
            if found is None:
                return
            self.at = found.end()

    def peek(self) -> str:
        self.skip()
        return self.text[self.at : self.at + 1]

    def fail(self, problem: str) -> Damaged:
        return Damaged(self.text, self.at, problem)

    def value(self, depth: int) -> Node:
        opened = self.peek()
        if depth > MAX_NESTING:
            raise self.fail("nested too deeply")
        if opened in {"{", "["}:
            return self.container(depth, "}" if opened == "{" else "]")
        node = Node(self.at)
        if opened == '"':
            node.value = self.string()
        else:
            found = _SCALAR.match(self.text, self.at)
            if found is None:
                raise self.fail("a value is missing" if opened in {"", ",", "}", "]"} else "this is no JSON")
            node.value = json.loads(found[0])
            self.at = found.end()
        node.end = self.at
        return node

    def string(self) -> str:
        found = _STRING.match(self.text, self.at)
        if found is None:
            raise self.fail("a text does not end on its line")
        try:
            value: str = json.loads(found[0])
        except ValueError:
            raise self.fail("a text has an escape that is none") from None
        self.at = found.end()
        return value

    def container(self, depth: int, closing: str) -> Node:
        node = Node(self.at)
        self.at += 1
        while self.peek() != closing:
            if node.parts and node.parts[-1].comma is None:
                raise self.fail(f"a comma or {closing} is missing")
            node.parts.append(self.part(depth, closing))
            if self.peek() == ",":
                node.parts[-1].comma = self.at
                self.at += 1
        if node.parts and node.parts[-1].comma is not None and not self.comments:
            raise self.fail(f"there is a comma before {closing}")
        self.at += 1
        node.end = self.at
        if closing == "}":
            node.value = {part.key: part.node.value for part in node.parts}
        else:
            node.value = [part.node.value for part in node.parts]
        return node

    def part(self, depth: int, closing: str) -> Part:
        start, key = self.at, None
        if closing == "}":
            if self.peek() != '"':
                raise self.fail("a key in double quotes is missing")
            key = self.string()
            if self.peek() != ":":
                raise self.fail("a colon is missing")
            self.at += 1
        return Part(start, self.value(depth + 1), key)


def parse(text: str, *, comments: bool = False) -> Node:
    """Read a text.

    Args:
        text: the text; a byte order mark is passed by.
        comments: whether comments, and a comma before a closing bracket, may stand in it.

    Raises:
        Damaged: it is no JSON.
    """
    reader = _Reader(text, comments=comments)
    node = reader.value(0)
    if reader.peek():
        raise reader.fail("something stands after the end")
    return node


def add(text: str, container: Node, value: Any, key: str | None = None) -> str:
    """Add a member at the end of an object, or an item at the end of an array.

    Args:
        text: the whole text.
        container: the object or array in it.
        value: what is added.
        key: the member's key; None for an item.
    """
    unit, newline = _indent_of(text), "\r\n" if "\r\n" in text else "\n"
    outer = _line_indent(text, container.start)
    last = container.parts[-1] if container.parts else None
    inner = _line_indent(text, last.start) if last and _begins_line(text, last.start) else outer + unit
    written = json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", newline + inner)
    written = f"{json.dumps(key, ensure_ascii=False)}: {written}" if key is not None else written
    if last is None:
        inside = text[container.start + 1 : container.end - 1]
        kept = inside.rstrip(" \t\r\n")  # comments, if there are any
        return (
            f"{text[: container.start + 1]}{kept}{newline}{inner}{written}{newline}{outer}{text[container.end - 1 :]}"
        )
    if last.comma is not None:  # one that stands before the bracket
        return f"{text[: last.comma + 1]}{newline}{inner}{written}{text[last.comma + 1 :]}"
    one_line = "\n" not in text[last.node.end : container.end]
    tail = f"{newline}{outer}{text[container.end - 1 :]}" if one_line else text[last.node.end :]
    return f"{text[: last.node.end]},{newline}{inner}{written}{tail}"


def remove(text: str, container: Node, part: Part) -> str:
    """Take a member or an item out, with the comma that it no longer needs and nothing else.

    Args:
        text: the whole text.
        container: where the part is in.
        part: what is taken out.
    """
    position = next(index for index, each in enumerate(container.parts) if each is part)
    begin = part.start
    while text[begin - 1] in " \t\r\n":
        begin -= 1
    if part.comma is not None:
        return text[:begin] + text[part.node.end : part.comma] + text[part.comma + 1 :]
    text = text[:begin] + text[part.node.end :]
    if position:
        comma = container.parts[position - 1].comma
        if comma is not None:
            text = text[:comma] + text[comma + 1 :]
    elif not text[container.start + 1 : container.end - 1 - (part.node.end - begin)].strip():
        text = text[: container.start + 1] + text[container.end - 1 - (part.node.end - begin) :]
    return text


def _indent_of(text: str) -> str:
    found = _INDENT.search(text)
    return found[1] if found else "  "


def _line_indent(text: str, position: int) -> str:
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _begins_line(text: str, position: int) -> bool:
    return not text[text.rfind("\n", 0, position) + 1 : position].strip(" \t")
