"""Being fenced is recognised however the word arrives."""

import pytest
from aiokafka import errors

from streams.fencing import fenced


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
