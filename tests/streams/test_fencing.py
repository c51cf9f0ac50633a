"""Being fenced is recognised however the word arrives."""

import asyncio
import contextlib

import pytest
from aiokafka import errors

from schemas.topics import ALERTS
from streams.fencing import fenced, lost, reason
from streams.kafka import KafkaSettings, producer, running
from streams.topics import create_topics


@pytest.mark.parametrize("code", [47, 48, 49, 90])
def test_each_answer_of_a_broker_that_means_it(code: int) -> None:
    """INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE, INVALID_PRODUCER_ID_MAPPING and PRODUCER_FENCED of the protocol."""
    assert fenced(errors.for_code(code)())


@pytest.mark.parametrize("cause", [errors.ProducerFenced(), errors.InvalidProducerEpoch(), errors.for_code(90)()])
def test_the_word_may_be_the_cause_of_another_error(cause: Exception) -> None:
    """The client wraps what its sender does not expect, at times twice."""
    wrapped, outer = errors.KafkaError("Unexpected error during batch delivery"), RuntimeError()
    wrapped.__cause__ = cause
    outer.__context__ = wrapped
    assert fenced(outer)


@pytest.mark.parametrize("problem", [errors.RequestTimedOutError(), errors.UnknownError(), TimeoutError()])
def test_other_failures_are_not_taken_for_it(problem: Exception) -> None:
    """Brokers that are away have fenced nobody."""
    assert not fenced(problem)


@pytest.mark.parametrize("refusal", [errors.TopicAuthorizationFailedError("t"), errors.GroupAuthorizationFailedError()])
async def test_a_right_that_is_missing_is_not_taken_for_it(refusal: Exception) -> None:
    """It aborts the transaction, so that other records are refused with INVALID_TXN_STATE, as when fenced."""
    sent = [asyncio.get_running_loop().create_future() for _ in range(2)]
    sent[0].set_exception(errors.InvalidTxnState())
    assert fenced(RuntimeError(), sent[:1])
    assert not fenced(refusal, sent[:1])
    sent[1].set_exception(refusal)
    assert not fenced(RuntimeError(), sent)


async def test_a_producer_that_was_fenced_knows_it_in_all_its_failures(bootstrap: str, prefix: str) -> None:
    """The first failure and every later one are recognised, also those that do not say why."""
    kafka = KafkaSettings(bootstrap=bootstrap, prefix=prefix)
    await create_topics(kafka, partitions=1, replication=1, app_id=prefix.rstrip("."))
    topic = kafka.topic(ALERTS)
    former = producer(kafka, transactional_id=prefix)
    await former.start()
    try:
        async with running(producer(kafka, transactional_id=prefix), kafka):
            await former.begin_transaction()
            sent = await former.send(topic, b"x")
            await asyncio.wait([sent])
            for again in (former.send(topic, b"x"), former.commit_transaction(), former.abort_transaction()):
                task = asyncio.ensure_future(again)
                await asyncio.wait([task])
                failure = task.exception()
                assert failure is not None
                assert lost(former, failure)
            assert lost(former, errors.KafkaError("no reason given"))
    finally:
        with contextlib.suppress(errors.KafkaError):
            await former.stop()


async def test_a_producer_that_fails_otherwise_is_not_taken_for_fenced(bootstrap: str, prefix: str) -> None:
    """Its sender is at work, so that another failure is what it says."""
    kafka = KafkaSettings(bootstrap=bootstrap, prefix=prefix)
    async with running(producer(kafka, transactional_id=prefix), kafka) as client:
        assert not lost(client, errors.RequestTimedOutError())


@pytest.mark.parametrize(
    "refusal", [errors.TopicAuthorizationFailedError("t"), errors.TransactionalIdAuthorizationFailed("i")]
)
async def test_a_missing_right_is_the_reason_wherever_it_is_told(
    bootstrap: str, prefix: str, refusal: errors.KafkaError
) -> None:
    """What is tried afterwards fails too; without a refusal the failure is what it says."""
    sent = [asyncio.get_running_loop().create_future() for _ in range(3)]
    sent[0].set_result(None)
    sent[1].set_exception(refusal)
    later = errors.IllegalOperation()
    kafka = KafkaSettings(bootstrap=bootstrap, prefix=prefix)
    async with running(producer(kafka), kafka) as client:
        assert reason(client, later, sent) is refusal
        assert reason(client, later, [sent[0], sent[2]]) is later
