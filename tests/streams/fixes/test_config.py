"""The JSON configuration: the guide's own, each key with what it sets, and how a mistake is told."""

from __future__ import annotations

import json

import pytest

from detectors import Limits
from streams.fixes import InvalidFixConfig
from streams.fixes.config import read_config

GUIDE = """{
  "detection_parameters": {
    "similarity_threshold": 0.30,
    "description": "Minimum Jaccard similarity (0.0-1.0)"
  },
  "pattern_detection": {
    "min_similar_attempts": 2,
    "description": "Minimum similar attempts to flag as circular"
  },
  "history_management": {
    "lookback_window": 5,
    "description": "Number of recent attempts to analyze"
  },
  "automation": {
    "auto_cleanup_on_success": true,
    "retention_days": 7
  }
}"""


@pytest.fixture
def written(tmp_path):
    """Give what writes a configuration file."""

    def write(values):
        path = tmp_path / "fix.json"
        path.write_text(values if isinstance(values, str) else json.dumps(values), "utf-8")
        return path

    return write


def test_the_file_of_the_guide_sets_the_defaults(written):
    """With it, with no file and with an empty one everything is the same."""
    shown, empty, none = read_config(written(GUIDE)), read_config(written("{}")), read_config(None)
    for settings in (shown, empty, none):
        group = settings.limits.circular_fix
        assert (group.similarity, group.warn, group.lookback, group.stopwords) == (0.30, 2, 5, ())
        assert settings.clear_on_success
        assert settings.retention_ms == 7 * 24 * 3600 * 1000
    assert empty.limits == none.limits == Limits()


def test_each_key_sets_its_limit(written):
    """And the limit says which file set it; fractions of a day are taken."""
    values = {
        "description": "ours",
        "detection_parameters": {"similarity_threshold": 0.4},
        "pattern_detection": {"min_similar_attempts": 3},
        "history_management": {"lookback_window": 10},
        "automation": {"auto_cleanup_on_success": False, "retention_days": 0.5},
    }
    path = written(values)
    settings = read_config(path)
    group = settings.limits.circular_fix
    assert (group.similarity, group.warn, group.lookback) == (0.4, 3, 10)
    assert settings.limits.layer("circular_fix.warn") == str(path)
    assert not settings.clear_on_success
    assert settings.retention_ms == 12 * 3600 * 1000


def test_conservative_numbers_are_taken(written):
    """The guide speaks of 4 or 5 similar attempts, which is above where a stream terminates by default."""
    settings = read_config(written({"pattern_detection": {"min_similar_attempts": 5}}))
    assert settings.limits.circular_fix.warn == 5


def test_stopwords_are_read_from_beside_the_configuration(written, tmp_path):
    """A list of one's own takes the place of ours."""
    (tmp_path / "stopwords.txt").write_text("# ours\nimport\nfix\n", "utf-8")
    settings = read_config(written({"detection_parameters": {"stopwords_file": "stopwords.txt"}}))
    assert settings.limits.circular_fix.stopwords == ("fix", "import")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ("[]", "is no JSON object; write {} for the defaults"),
        ('{"a": 1} // no', "is not JSON"),
        ("{", "is not JSON"),
        ('"\ud800"'.encode("utf-8", "surrogatepass").decode("latin-1"), "is no JSON object"),
        (
            {"similarity_threshold": 0.4},
            "there is no key `similarity_threshold`; it belongs under `detection_parameters`",
        ),
        (
            {"automation": {"lookback_window": 4}},
            "there is no key `automation.lookback_window`; it belongs under `history_management`",
        ),
        (
            {"pattern_detection": {"min_similar_atempts": 4}},
            "there is no key `pattern_detection.min_similar_atempts`; did you mean `min_similar_attempts`?",
        ),
        ({"automatic": {}}, "there is no key `automatic`; did you mean `automation`?"),
        ({"pattern_detection": 2}, "pattern_detection: Expected `object`, got `int`"),
        (
            {"detection_parameters": {"similarity_threshold": "0.3"}},
            "detection_parameters.similarity_threshold: Expected `float`, got `str`",
        ),
        (
            {"detection_parameters": {"similarity_threshold": 1.01}},
            "detection_parameters.similarity_threshold: Expected `float` <= 1.0",
        ),
        (
            {"pattern_detection": {"min_similar_attempts": 0}},
            "pattern_detection.min_similar_attempts: Expected `float` > 0.0",
        ),
        (
            {"pattern_detection": {"min_similar_attempts": 6}},
            "pattern_detection.min_similar_attempts = 6.0 is above history_management.lookback_window = 5; lower",
        ),
        (
            {"history_management": {"lookback_window": 13}},
            "history_management.lookback_window: Expected `int` <= 12",
        ),
        (
            {"automation": {"auto_cleanup_on_success": "yes"}},
            "automation.auto_cleanup_on_success: Expected `bool`, got `str`",
        ),
        ({"automation": {"retention_days": 0}}, "automation.retention_days: Expected `float` > 0.0"),
        (
            {"detection_parameters": {"stopwords_file": "none.txt"}},
            "detection_parameters.stopwords_file: {place}/none.txt cannot be read (No such file or directory); name",
        ),
    ],
)
def test_mistakes_name_file_key_and_remedy(written, tmp_path, values, words):
    """Also where a key stands in another section than its own, or a number is beside its range."""
    path = written(values)
    with pytest.raises(InvalidFixConfig) as problem:
        read_config(path)
    told = str(problem.value)
    assert told.startswith(f"{path}: ")
    assert words.replace("{place}", str(tmp_path)) in told
    assert "circular_fix" not in told


def test_the_longest_window_is_taken(written):
    """12 attempts, as many as a stream remembers."""
    assert read_config(written({"history_management": {"lookback_window": 12}})).limits.circular_fix.lookback == 12


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "holds no words"), (b"\xff", "is not UTF-8"), (b"two words", "line 1: 'two words' is not one word")],
)
def test_a_list_of_stopwords_that_cannot_be_meant_is_refused(written, tmp_path, content, words):
    """With its name, and the line where there is one."""
    (tmp_path / "stopwords.txt").write_bytes(content)
    with pytest.raises(InvalidFixConfig, match=words) as problem:
        read_config(written({"detection_parameters": {"stopwords_file": "stopwords.txt"}}))
    assert str(tmp_path / "stopwords.txt") in str(problem.value)


@pytest.mark.parametrize("name", ["none.json", "."])
def test_a_file_that_cannot_be_read_is_named(tmp_path, name):
    """Not there, or a directory."""
    with pytest.raises(InvalidFixConfig, match=r"cannot be read \(.*\); name a JSON file"):
        read_config(tmp_path / name)
