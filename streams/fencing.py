"""How the brokers' word arrives that somebody else holds a transactional id now, and how it is recognised.

A fenced producer has lost its partition: whoever hears this must stop writing and end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiokafka import errors

from streams.refused import causes

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


_RIGHTS = (*_REFUSED, errors.TransactionalIdAuthorizationFailed)


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
    return fenced(problem, [*sent, *_sender(producer)])


async def stop_producer(producer: AIOKafkaProducer) -> None:
    """Stop a producer that has no transaction under way, whether or not somebody else holds its id by now."""
    try:
        await producer.stop()
    except Exception as problem:  # not only `KafkaError`: see `lost`
        if not lost(producer, problem):
            raise


def reason(
    producer: AIOKafkaProducer, problem: BaseException, sent: Iterable[asyncio.Future[Any]] = ()
) -> BaseException:
    """Give the failure that says most of why a transaction failed: the right that brokers say is missing, if any.

    It ends the transaction, and whatever is tried in that afterwards fails without saying why (`IllegalOperation`).

    Args:
        producer: the producer.
        problem: how it failed.
        sent: what was to tell of the records sent.
    """
    told = (each.exception() for each in (*sent, *_sender(producer)) if each.done() and not each.cancelled())
    return next((each for each in told if isinstance(each, _RIGHTS)), problem)


def _sender(producer: AIOKafkaProducer) -> list[asyncio.Future[Any]]:
    sender: asyncio.Future[Any] | None = producer._sender.sender_task  # noqa: SLF001 - there is no public way
    return [] if sender is None else [sender]


def _says_fenced(problem: BaseException | None) -> bool:
    return any(isinstance(each, _FENCED) for each in causes(problem))
