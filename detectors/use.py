"""What a call uses its tool for: the kind of use, and what it reads, changes or looks for.

Kinds are the vocabulary of every rule about behaviour; which tool and which command is of which kind is data
(`catalogue.toml`). Nothing here judges.
"""

from typing import Literal, get_args

import msgspec

Kind = Literal["read", "search", "edit", "run", "check", "poll", "plan", "interact", "talk", "other"]
"""What a call is for.

``read`` views something named (a file, a page, a record, a listing, ``git diff``); ``search`` looks for something that
may not be there; ``edit`` changes files or other state (a write, ``git commit``, an installation, a booking);
``run`` executes, and the outcome is the answer; ``check`` is a run that judges the work (tests, build, lint);
``poll`` waits, or asks how something is getting on; ``plan`` thinks and takes notes; ``interact`` operates a user
interface; ``talk`` speaks to a person, hands in or ends; ``other`` is not known.
"""

KINDS: tuple[Kind, ...] = get_args(Kind)


class Use(msgspec.Struct, frozen=True):
    """What one call uses its tool for.

    ``program`` is what runs, for tools that take a command line, and the tool's plain name for others. ``executes``
    says that the tool runs commands or code, whatever this command does; ``changes`` that files or other state are
    changed if the call succeeds. ``target`` is the one file, page or object that is read or changed; empty when it is
    unknown or there are several. ``start`` and ``end`` are the lines asked for (or characters, or records), from 1,
    both included: 0 and 0 the whole or unknown, an ``end`` of 0 up to the end. ``query`` is what a search looks for.
    """

    kind: Kind
    program: str = ""
    executes: bool = False
    changes: bool = False
    target: str = ""
    start: int = 0
    end: int = 0
    query: str = ""
