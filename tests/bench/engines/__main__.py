"""Runs the comparison, which is imported only here: Ctrl-C while that takes its second is no failure either."""

from __future__ import annotations

import importlib

from tests.bench.program import run


def main() -> int:
    """Compare and print."""
    return int(importlib.import_module("tests.bench.engines.compare").main())


if __name__ == "__main__":
    run(main)
