"""What to try instead: the circular-fix guide's table in its order, with the boundaries of each row."""

import pytest

from detectors import Limits, limits_from
from detectors.tasks.attempt import read_attempt
from detectors.tasks.strategy import suggest
from schemas.testing import fix_attempt

MISSING = "ModuleNotFoundError: No module named 'requests'"


def suggested(tried=2, similarity=0.5, *, files=(("a.py",), ("a.py",)), errors=(None, None), limits=None):
    """Return what is suggested for attempts at these files that failed like this."""
    events = [
        fix_attempt(n, files=touched, error_message=error)
        for n, (touched, error) in enumerate(zip(files, errors, strict=True))
    ]
    limits = limits or Limits()
    return suggest([read_attempt(event, limits) for event in events], tried, similarity, limits)


@pytest.mark.parametrize(
    ("tried", "errors", "similarity", "files", "wanted"),
    [
        (7, (MISSING, MISSING), 0.9, (("a.py",), ("a.py",)), "escalate_human"),
        (6, (None, None), 0.5, ((), ()), "escalate_human"),
        (5, (MISSING, MISSING), 0.9, (("a.py",), ("a.py",)), "analyze_root_cause"),
        (5, (None, None), 0.71, (("a.py",), ("a.py",)), "different_method"),
        (5, (None, None), 0.70, (("a.py",), ("a.py",)), "different_files"),
        (2, (None, None), 0.0, (("a.py",), ("b.py",)), "different_files"),
        (2, (None, None), 0.0, (("a.py", "b.py"), ("b.py", "a.py")), "different_files"),
        (2, (None, None), 0.0, (("a.py", "b.py"), ("c.py",)), "analyze_root_cause"),
        (2, (None, None), 0.0, (("a.py",), ()), "analyze_root_cause"),
        (2, (None, None), 0.0, ((), ()), "analyze_root_cause"),
    ],
)
def test_the_first_row_that_fits_decides(tried, errors, similarity, files, wanted):
    """More than 5 attempts; a missing module; more than 70 % alike; the same one or two files; else the default."""
    assert suggested(tried, similarity, files=files, errors=errors).strategy == wanted


@pytest.mark.parametrize(("tried", "wanted"), [(2, "different_files"), (3, "escalate_human")])
def test_how_many_are_too_many_is_the_setting_of_that_detector(tried, wanted):
    """One limit for both."""
    limits = limits_from([("test", {"too_many_attempts.warn": 3})])
    assert suggested(tried, limits=limits).strategy == wanted


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"tried": 7}, "Already tried 7 times. Human intervention recommended."),
        ({"similarity": 0.85}, "Very high similarity (85 %). Try a completely different approach."),
        ({"files": (("src/auth.py",), ("src/auth.py",))}, "Repeatedly modifying src/auth.py. Try different files."),
        ({"files": (("a.py",), ("b.py",))}, "Repeatedly modifying a.py and b.py. Try different files."),
        ({"files": ((), ())}, "Detected a circular pattern. Recommend deeper root cause analysis."),
    ],
)
def test_the_reasoning_says_why_in_the_words_of_the_guide(fields, said):
    """With the figures and the files of the case."""
    suggestion = suggested(**fields)
    assert suggestion.reasoning == said
    assert suggestion.text.startswith(said)


@pytest.mark.parametrize(
    ("error", "package"),
    [
        (MISSING, "requests"),
        ("Error: Cannot find module 'left-pad'", "left-pad"),
        ("error[E0432]: unresolved import `serde`", "serde"),
        ("ModuleNotFoundError", None),
        ("KeyError: 'requests'", ""),
    ],
)
def test_a_missing_module_is_named_where_the_failure_names_it(error, package):
    """Where one is missing each time; a failure of another kind names none."""
    advice = suggested(errors=(error, error), files=((), ())).advice
    assert not suggested(errors=(error, "KeyError: 'a'"), files=((), ())).advice
    if package:
        assert f"the package that provides {package} is installed" in advice
    else:
        assert ("the package is installed" in advice) == (package is None)
