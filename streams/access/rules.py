"""Rules (ACLs) as brokers have them, and what each covers. Knows no role and talks to nobody."""

from __future__ import annotations

import enum
from dataclasses import dataclass

ANYBODY = "User:*"
ANY_HOST = "*"
ANY_NAME = "*"


class Kind(enum.IntEnum):
    """What a rule is about, with Kafka's numbers (`ResourceType`)."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5


class Pattern(enum.IntEnum):
    """How a rule's name is meant, with Kafka's numbers (`PatternType`)."""

    LITERAL = 3
    PREFIXED = 4


class Operation(enum.IntEnum):
    """What is allowed or denied, with Kafka's numbers (`AclOperation`)."""

    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15

    @property
    def word(self) -> str:
        """Its name as Kafka's tools write it."""
        return self.name.title().replace("_", "")


IMPLIED = {
    Operation.DESCRIBE: {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER},
    Operation.DESCRIBE_CONFIGS: {Operation.ALTER_CONFIGS},
}
"""What is allowed with something else: Kafka's documentation, "Authorization and ACLs"."""

WRITING = {
    Operation.ALL,
    Operation.WRITE,
    Operation.CREATE,
    Operation.DELETE,
    Operation.ALTER,
    Operation.ALTER_CONFIGS,
    Operation.CLUSTER_ACTION,
}
"""Operations that change something; of a group reading does too: see `Rule.changes`."""


@dataclass(frozen=True, slots=True, order=True)
class Rule:
    """One rule.

    Attributes:
        principal: whom it is about, `User:NAME` unless the brokers have principals of their own.
        kind: what it is about.
        name: the topic's, group's or transactional id's; `*` for all.
        pattern: whether that is the whole name or a beginning.
        operation: what may or may not be done.
        host: from where.
        deny: whether it may not be done, which goes before everything that is allowed.
    """

    principal: str
    kind: Kind
    name: str
    pattern: Pattern
    operation: Operation
    host: str = ANY_HOST
    deny: bool = False

    def names(self, other: Rule) -> bool:
        """Tell whether all that another rule names is also named by this one."""
        if self.kind is not other.kind:
            return False
        if self.pattern is Pattern.PREFIXED:
            return other.name.startswith(self.name)
        return self.name == ANY_NAME or (self.name == other.name and other.pattern is Pattern.LITERAL)

    def touches(self, other: Rule) -> bool:
        """Tell whether something is named by both."""
        return self.names(other) or other.names(self)

    def gives(self, operation: Operation) -> bool:
        """Tell whether it allows an operation, also by allowing another one."""
        return self.operation in {Operation.ALL, operation, *IMPLIED.get(operation, ())}

    def covers(self, wanted: Rule) -> bool:
        """Tell whether all that another rule allows is allowed by this one too."""
        who = self.principal in {wanted.principal, ANYBODY}
        return not self.deny and who and self.host == ANY_HOST and self.names(wanted) and self.gives(wanted.operation)

    def takes(self, wanted: Rule) -> bool:
        """Tell whether it denies something that another rule allows."""
        who = self.principal in {wanted.principal, ANYBODY}
        # Nobody can read or write what may not be described: clients ask first where it is.
        needed = {wanted.operation} | {Operation.DESCRIBE for _ in IMPLIED[Operation.DESCRIBE] & {wanted.operation}}
        return self.deny and who and self.operation in {Operation.ALL, *needed} and self.touches(wanted)

    @property
    def changes(self) -> bool:
        """Tell whether it lets somebody change something: who may read with a group may take its partitions too."""
        return self.operation in WRITING or (self.kind is Kind.GROUP and self.operation is Operation.READ)

    def __str__(self) -> str:
        """Say it in words."""
        beginning = "everything beginning with " if self.pattern is Pattern.PREFIXED else ""
        what = "" if self.kind is Kind.CLUSTER else f" {beginning}{self.name}"
        where = "" if self.host == ANY_HOST else f" from {self.host}"
        verb = "may not" if self.deny else "may"
        kind = self.kind.name.lower().replace("_", " ")
        return f"{self.principal} {verb} {self.operation.word} the {kind}{what}{where}"
