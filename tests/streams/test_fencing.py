"""Being fenced is recognised however the word arrives."""

import pytest
from aiokafka import errors

from streams.fencing import fenced


@pytest.mark.parametrize("code", [47, 48, 49, 90])
def test_each_answer_of_a_broker_that_means_it(code: int) -> None:
    """INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE, INVALID_PRODUCER_ID_MAPPING and PRODUCER_FENCED of the protocol."""
    assert fenced(errors.for_code(code)())


def test_the_word_may_be_the_cause_of_another_error() -> None:
    """The client wraps what its sender does not expect."""
    wrapped = errors.KafkaError("Unexpected error during batch delivery")
    wrapped.__cause__ = errors.for_code(90)()
    assert fenced(wrapped)


@pytest.mark.parametrize("problem", [errors.RequestTimedOutError(), errors.UnknownError(), TimeoutError()])
def test_other_failures_are_not_taken_for_it(problem: Exception) -> None:
    """Brokers that are away have fenced nobody."""
    assert not fenced(problem)
