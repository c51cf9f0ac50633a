"""Runs one target under atheris, which looks which parts of our packages an input reaches: one process a target.

Its arguments are the target's name and libFuzzer's own. `tests.fuzz.drive` starts it; it decides nothing.
"""

from __future__ import annotations

import importlib
import logging
import os
import sys
from typing import Any

PACKAGES = ["schemas", "detectors", "streams"]
"""What is instrumented: our own code, and not the libraries'."""


FAILS = "TRACTION_FUZZ_FAILS"
"""Set, every input is a finding: so the suite is tested."""


def fail(_: bytes) -> None:
    """Stand for a target with a fault."""
    raise ValueError("asked for")


def main() -> None:
    """Run until libFuzzer ends the process."""
    name = sys.argv.pop(1)
    logging.disable()
    atheris: Any = importlib.import_module("atheris")
    with atheris.instrument_imports(include=PACKAGES):
        targets = importlib.import_module("tests.fuzz.targets")
    target = targets.any_target if name == targets.ALL else targets.TARGETS[name]
    if os.environ.get(FAILS):
        target = fail
    atheris.Setup(sys.argv, target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
