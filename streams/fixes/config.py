"""Reads the JSON configuration of circular-fix detection and maps it onto the detectors' limits.

Keys are those of the circular-fix detection guide, and one of ours for a list of stopwords. Which values are allowed is
decided by the limits themselves; here a mistake is only told in the words of the file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, UnsetType

from detectors import InvalidLimits, Limits, limits_from
from detectors.tasks.words import parse_stopwords
from streams.config import suggest
from streams.fixes.records import InvalidFixConfig

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_MS_PER_DAY = 86_400_000
_SIMILAR = "pattern_detection.min_similar_attempts"
_STOPWORDS = "detection_parameters.stopwords_file"
_LIMITS = {
    "detection_parameters.similarity_threshold": "circular_fix.similarity",
    _STOPWORDS: "circular_fix.stopwords",
    _SIMILAR: "circular_fix.warn",
    "history_management.lookback_window": "circular_fix.lookback",
    "automation.retention_days": "tasks.retention_days",
}
"""Keys of the file and the limits that they set."""


class _Section(msgspec.Struct, frozen=True, kw_only=True):
    description: str = ""


class DetectionParameters(_Section, frozen=True, kw_only=True):
    """How alike two approaches must be to count as similar, and the words that do not count."""

    similarity_threshold: float | UnsetType = UNSET
    stopwords_file: str | UnsetType = UNSET


class PatternDetection(_Section, frozen=True, kw_only=True):
    """How many similar attempts make a circle."""

    min_similar_attempts: int | UnsetType = UNSET


class HistoryManagement(_Section, frozen=True, kw_only=True):
    """How many of the latest attempts are looked at."""

    lookback_window: int | UnsetType = UNSET


class Automation(_Section, frozen=True, kw_only=True):
    """What is forgotten by itself."""

    auto_cleanup_on_success: bool = True
    retention_days: float | UnsetType = UNSET


class FixConfig(_Section, frozen=True, kw_only=True):
    """The whole file."""

    detection_parameters: DetectionParameters = DetectionParameters()
    pattern_detection: PatternDetection = PatternDetection()
    history_management: HistoryManagement = HistoryManagement()
    automation: Automation = Automation()


_SECTIONS: dict[str, type[msgspec.Struct]] = {
    "detection_parameters": DetectionParameters,
    "pattern_detection": PatternDetection,
    "history_management": HistoryManagement,
    "automation": Automation,
}


@dataclass(frozen=True, slots=True)
class FixSettings:
    """The settings of a detector of circular fixes.

    Attributes:
        limits: the detectors' limits.
        clear_on_success: whether a success clears its subtask's history.
    """

    limits: Limits = field(default_factory=Limits)
    clear_on_success: bool = True

    @property
    def retention_ms(self) -> int:
        """How long an attempt is remembered."""
        return int(self.limits.tasks.retention_days * _MS_PER_DAY)


def read_config(path: Path | None) -> FixSettings:
    """Read a configuration file; the defaults when there is none.

    Raises:
        InvalidFixConfig: the file or the list of stopwords that it names cannot be read, or a key or value means
            nothing.
    """
    if path is None:
        return FixSettings()
    try:
        given = msgspec.json.decode(path.read_bytes())
        if not isinstance(given, dict):
            raise InvalidFixConfig(f"{path}: is no JSON object; write {{}} for the defaults")
        _check_keys(path, given, FixConfig)
        config = msgspec.convert(given, FixConfig)
    except OSError as problem:
        raise InvalidFixConfig(f"{path}: cannot be read ({problem.strerror}); name a JSON file") from problem
    except msgspec.ValidationError as problem:
        raise InvalidFixConfig(f"{path}: {_told(problem)}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise InvalidFixConfig(f"{path}: is not JSON ({problem}); mend it there: JSON has no comments") from None
    return FixSettings(_limits(path, config), config.automation.auto_cleanup_on_success)


def _check_keys(path: Path, given: Mapping[str, Any], kind: type[msgspec.Struct], place: str = "") -> None:
    """Refuse a key that means nothing: a setting misspelt would silently do nothing."""
    sections = _SECTIONS if kind is FixConfig else {}
    for key, value in given.items():
        if key not in kind.__struct_fields__:
            homes = [name for name, section in _SECTIONS.items() if key in section.__struct_fields__]
            remedy = f"it belongs under `{homes[0]}`" if homes else suggest(key, kind.__struct_fields__)
            raise InvalidFixConfig(f"{path}: there is no key `{place}{key}`; {remedy}")
        if key in sections and isinstance(value, dict):
            _check_keys(path, value, sections[key], f"{key}.")


def _limits(path: Path, config: FixConfig) -> Limits:
    values: dict[str, Any] = {}
    for key, limit in _LIMITS.items():
        section, _, name = key.partition(".")
        value = getattr(getattr(config, section), name)
        if value is not UNSET:
            values[limit] = _stopwords(path, value) if key == _STOPWORDS else value
    # There is no second level here: it must only not be below the first.
    if (least := values.get(_LIMITS[_SIMILAR], 0)) > Limits().circular_fix.terminate:
        values["circular_fix.terminate"] = least
    try:
        return limits_from([(str(path), values)])
    except InvalidLimits as problem:
        text = str(problem)
        for key, limit in _LIMITS.items():
            text = text.replace(limit, key)
        raise InvalidFixConfig(_AT.sub("", text)) from problem


def _stopwords(path: Path, name: str) -> list[str]:
    """Read the list of stopwords that a configuration names, beside it unless its path is absolute."""
    file = path.parent / name
    try:
        words = parse_stopwords(file.read_text("utf-8"))
    except UnicodeDecodeError:
        raise InvalidFixConfig(f"{path}: {_STOPWORDS}: {file} is not UTF-8; save it as such") from None
    except OSError as problem:
        raise InvalidFixConfig(
            f"{path}: {_STOPWORDS}: {file} cannot be read ({problem.strerror}); name a file beside the configuration"
        ) from problem
    except ValueError as problem:
        raise InvalidFixConfig(f"{path}: {_STOPWORDS}: {file}: {problem}") from None
    if not words:
        raise InvalidFixConfig(
            f"{path}: {_STOPWORDS}: {file} holds no words; leave the key out for those that come with Traction"
        )
    return sorted(words)


_AT = re.compile(r" - at `\$\.?(.*)`$")


def _told(problem: msgspec.ValidationError) -> str:
    """Put the key before what is wrong with its value."""
    found = _AT.search(str(problem))
    return f"{found[1]}: {_AT.sub('', str(problem))}" if found else str(problem)
