"""The targets run under atheris too, all in one process: the short form of `make fuzz`."""

from __future__ import annotations

import importlib.util

import pytest

from tests.fuzz.drive import NEEDS, fuzz
from tests.fuzz.targets import ALL, contents

SECONDS = 25
"""For all targets together, in one process: reading and instrumenting our packages takes seconds each time."""


@pytest.mark.tools
def test_nothing_is_found(tmp_path, record_property):
    """From the seeds of all targets on, no input is found that its target neither processes nor refuses."""
    assert importlib.util.find_spec("atheris") is not None, NEEDS
    ran = fuzz(ALL, SECONDS, tmp_path)
    record_property("figures", f"{ran.executed:,} executions")
    assert ran.findings == [], ran.log[-4_000:]
    assert ran.executed > len(contents(ALL))


@pytest.mark.tools
def test_what_is_wrong_is_found(tmp_path, monkeypatch):
    """A target that fails is told, and the input that it fails at is kept."""
    assert importlib.util.find_spec("atheris") is not None, NEEDS
    monkeypatch.setenv("TRACTION_FUZZ_FAILS", "1")
    ran = fuzz("weights", 1, tmp_path)
    assert [path.parent.name for path in ran.findings] == ["weights"]
    assert "Uncaught Python exception" in ran.log
