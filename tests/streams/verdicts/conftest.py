"""Topics of the test's own, on the broker that all tests share."""

from tests.streams.outputs_kit import kafka

__all__ = ["kafka"]
