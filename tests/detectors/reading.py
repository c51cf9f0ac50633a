"""Reads one call as the detectors do, and draws any JSON, for tests of facts. Nothing here asserts."""

from typing import Any

from hypothesis import strategies as st

from detectors.call import read_call
from detectors.facts import Call, Mark
from detectors.failure import Failure
from detectors.limits import Limits
from schemas.testing import tool_call

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)

Asked = tuple[str, Any]
"""A tool as the agent calls it, and the arguments."""

SHELL = ("bash", {"command": "./deploy.sh --to staging"})
CHECK = ("bash", {"command": "pytest -q"})
READ = ("read_file", {"path": "docs/handbook.txt"})
GREP = ("grep", {"pattern": "retry_after", "path": "src"})
EDIT = ("edit_file", {"path": "src/basket.py", "old": "total += 1", "new": "total += price"})
BOOK = ("book_table", {"guests": 4, "on": "Friday"})
CLICK = ("browser_click", {"element": "e42"})
WORLD = ("take_action", {"action": "go to shelf 3"})
UNKNOWN = ("frobnicate", {"level": 3})


def read(asked: Asked, result: Any, status: str | None = "ok", **fields: Any) -> Call:
    """Return the facts of one call under the default limits."""
    return read_call(tool_call(0, *asked, result, status=status, **fields), Mark(calls=1), Limits())


def failure_of(asked: Asked, result: Any, status: str | None = "ok", **fields: Any) -> Failure | None:
    """Return how one call failed, with the use that the default catalogue makes of it."""
    return read(asked, result, status, **fields).failure


def reversed_keys(value: Any) -> Any:
    """Return the JSON value with the keys of each object the other way round."""
    if isinstance(value, dict):
        return {key: reversed_keys(value[key]) for key in reversed(list(value))}
    return [reversed_keys(item) for item in value] if isinstance(value, list) else value
