"""Reads and creates rules (ACLs) on brokers, with requests that aiokafka has and its administration client has not.

It creates what it is told and deletes nothing: what is too much a person removes, who knows what else rests on it.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from aiokafka.errors import SecurityDisabled, for_code
from aiokafka.protocol.admin import CreateAclsRequest_v1, DescribeAclsRequest
from aiokafka.protocol.api import Request

from streams.access.rules import Kind, Operation, Pattern, Rule

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from aiokafka.admin import AIOKafkaAdminClient

ANY = 1
"""Kafka's number for any type, pattern, operation or permission, in questions."""

KNOWN_SECONDS = 3.0
"""How long the brokers may take to learn of rules that the controller has written."""

DENY = 2
ALLOW = 3


class NoRules(Exception):
    """The brokers keep no rules: the message says what to set."""

    def __init__(self) -> None:
        super().__init__(
            "the brokers check no rights: everybody who can connect may do everything, and nothing fails for want of a "
            "right. Where that is not meant, give them authorizer.class.name="
            "org.apache.kafka.metadata.authorizer.StandardAuthorizer, and super.users for who administers them"
        )


async def there(client: AIOKafkaAdminClient) -> set[Rule]:
    """Give all rules of the brokers about topics, groups, transactional ids and the cluster.

    Args:
        client: a started one.

    Raises:
        NoRules: the brokers keep none.
        KafkaError: they refuse it: describing the cluster is needed.
    """
    answer = await client._send_request(  # noqa: SLF001 - it has no method for it
        DescribeAclsRequest(ANY, None, ANY, None, None, ANY, ANY)
    )
    _check(answer.error_code)
    kinds, patterns, operations = set(Kind), set(Pattern), set(Operation)
    return {
        Rule(principal, Kind(kind), name, Pattern(pattern), Operation(operation), host, permission == DENY)
        for kind, name, pattern, entries in answer.resources
        for principal, host, operation, permission in entries
        if kind in kinds and pattern in patterns and operation in operations
    }


class CreateRequest(Request[CreateAclsRequest_v1]):  # type: ignore[misc]  # published without types
    """Creates rules, all at once: aiokafka's own request has one, and brokers write each of them to disk."""

    API_KEY = CreateAclsRequest_v1.API_KEY

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._rules = list(rules)

    def build(self, request_struct_class: Any) -> Any:
        """Build the one version that there is: the first with names that are beginnings (Kafka 2.0)."""
        return request_struct_class(
            [
                (
                    *(rule.kind, rule.name, rule.pattern),
                    *(rule.principal, rule.host, rule.operation, DENY if rule.deny else ALLOW),
                )
                for rule in self._rules
            ]
        )


async def create(client: AIOKafkaAdminClient, rules: Collection[Rule]) -> None:
    """Create rules, and wait a moment until they are in force; those that are there stay as they are.

    Args:
        client: a started one.
        rules: what is to be allowed.

    Raises:
        NoRules: the brokers keep none.
        KafkaError: they refuse it: altering the cluster is needed.
    """
    if rules:
        answer = await client._send_request(CreateRequest(rules))  # noqa: SLF001 - as above
        for code, _ in answer.creation_responses:
            _check(code)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(KNOWN_SECONDS):
                await _known(client, set(rules))


async def _known(client: AIOKafkaAdminClient, rules: set[Rule]) -> None:
    while not rules <= await there(client):  # noqa: ASYNC110 - nothing tells when
        await asyncio.sleep(0.05)


def _check(code: int) -> None:
    problem = for_code(code)
    if problem is SecurityDisabled:
        raise NoRules
    if code:
        raise problem
