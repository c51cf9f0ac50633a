"""What stays after a session was forgotten, and for how long."""

from __future__ import annotations

import pytest

from streams.forget.stays import _hours

NO_LIMIT = str(2**63 - 1)


@pytest.mark.parametrize(
    ("config", "hours"),
    [
        ({"cleanup.policy": "delete", "retention.ms": "3600000"}, 1),
        ({"cleanup.policy": "compact,delete", "retention.ms": "7200000", "max.compaction.lag.ms": "1"}, 2),
        ({"cleanup.policy": "delete", "retention.ms": "-1"}, None),
        ({"cleanup.policy": "compact", "max.compaction.lag.ms": "43200000"}, 12),
        ({"cleanup.policy": "compact", "max.compaction.lag.ms": NO_LIMIT}, None),
        ({"cleanup.policy": "compact", "max.compaction.lag.ms": str(2**63 - 2)}, (2**63 - 2) / 3_600_000),
        ({"cleanup.policy": "compact"}, None),
    ],
)
def test_a_retention_without_a_limit_is_no_number(config: dict[str, str], hours: float | None) -> None:
    """Brokers say -1 for records that are kept for ever, and the largest number where compaction has no deadline."""
    assert _hours(config) == hours
