"""How the brokers' word arrives that somebody else holds a transactional id now, and how it is recognised.

A fenced producer has lost its partition: whoever hears this must stop writing and end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiokafka import errors

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterable

    from aiokafka import AIOKafkaProducer

PRODUCER_FENCED_CODE = 90
"""PRODUCER_FENCED in the error codes of the Kafka protocol: answered to requests of an earlier epoch."""


class ProducerFencedResponse(errors.BrokerResponseError):  # type: ignore[misc]  # published without types
    """What aiokafka 0.14 lacks: it takes this answer for an unknown error."""

    errno = PRODUCER_FENCED_CODE
    message = "PRODUCER_FENCED"
    description = "There is a newer producer with the same transactional id."


errors.kafka_errors.setdefault(PRODUCER_FENCED_CODE, ProducerFencedResponse)

_FENCED = (
    errors.ProducerFenced,
    errors.InvalidProducerEpoch,
    errors.InvalidProducerIdMapping,
    errors.InvalidTxnState,
    ProducerFencedResponse,
)


_REFUSED = (errors.TopicAuthorizationFailedError, errors.GroupAuthorizationFailedError)
"""What aborts a transaction though nobody else has its id; what is still sent in it then is an `InvalidTxnState`."""


def fenced(problem: BaseException, sent: Iterable[asyncio.Future[Any]] = ()) -> bool:
    """Tell whether a failed transaction means that somebody else holds the transactional id now.

    The word may be the cause of another error: aiokafka wraps what it does not expect. Or it is only in what became of
    records sent before: aiokafka then refuses to send more, without saying why.

    Args:
        problem: how the transaction failed.
        sent: what was to tell of the records sent in it.
    """
    failures = [problem, *(future.exception() for future in sent if future.done() and not future.cancelled())]
    if any(isinstance(failure, _REFUSED) for failure in failures):
        return False
    return any(_says_fenced(failure) for failure in failures)


def lost(producer: AIOKafkaProducer, problem: BaseException, sent: Iterable[asyncio.Future[Any]] = ()) -> bool:
    """Tell whether a producer failed because somebody else holds its transactional id now.

    Besides what `fenced` looks at, its sender may know. aiokafka 0.14 hands whoever waits a copy of the error that
    ended it, which has lost its cause, and whoever comes later an error that says nothing of it: `IllegalOperation`,
    even `AssertionError`.

    Args:
        producer: the producer.
        problem: how it failed.
        sent: what was to tell of the records sent.
    """
    sender: asyncio.Future[Any] | None = producer._sender.sender_task  # noqa: SLF001 - there is no public way
    return fenced(problem, sent if sender is None else [*sent, sender])


def _says_fenced(problem: BaseException | None) -> bool:
    cause = problem
    while cause is not None:
        if isinstance(cause, _FENCED):
            return True
        cause = cause.__cause__ or cause.__context__
    return False
