"""The order in which tests begin, and what stays together: a plugin that no longer heeds it only makes runs slower."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

DOORS = (
    "tests/doors/test_acl_command.py::test_principals_are_in_the_layout",
    "tests/doors/test_rights.py::test_all_of_the_contract_is_in_the_table",
)
SPREAD = "--numprocesses 2 --dist loadfile --no-loadscope-reorder"

PURE = "tests/detectors/tasks/test_lines.py::test_what_is_common_is_left_out_as_often_as_it_is"
OTHER = "tests/docs/test_guarantees_page.py::test_every_test_that_the_page_names_is_there"


def test_units_stay_together_and_the_longest_begin_first() -> None:
    """One process is given both files of a folder that shares a broker; what needs no process is handed out last."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", *SPREAD.split(), PURE, OTHER, *DOORS],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    begun = re.findall(r"^(tests/\S+)", done.stdout, re.MULTILINE)
    assert sorted(begun[:2]) == sorted((DOORS[0], OTHER))
    ran = {test: worker for worker, test in re.findall(r"^\[(gw\d)\] .* PASSED (\S+)", done.stdout, re.MULTILINE)}
    assert set(ran) == {PURE, OTHER, *DOORS}
    assert ran[DOORS[0]] == ran[DOORS[1]] != ran[OTHER]
