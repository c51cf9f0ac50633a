"""The same topics and workers as in the integration tests."""

from tests.integration.conftest import start, wire

__all__ = ["start", "wire"]
