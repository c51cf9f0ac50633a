"""Every limit of detection with its default, and how layers of configuration make one set of limits.

Defaults are those of the detector specification; where it names a source, the field's comment does too. A set of
limits is immutable and remembers which layer set each value, so that an alert can say so.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from detectors.tools import Tools, plain_name

Positive = Annotated[int, Meta(ge=1, le=1_000_000)]
Factor = Annotated[float, Meta(ge=1, le=1_000)]
MAX_PERIOD_CALLS = 8
MAX_WINDOW_CALLS = 12


class InvalidLimits(ValueError):
    """A layer of configuration names a limit that does not exist, or gives it a value it cannot have."""


class _Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Common settings of the sections below."""


class IdenticalLimits(_Section, frozen=True, kw_only=True):
    """Equal calls with equal results (CycleDetector, first dimension: 3 and 5).

    The window catches what one foreign call between would hide; the batch limit is for equal calls that one response
    asks for in parallel, which otherwise count once.
    """

    warn: Positive = 3
    terminate: Positive = 5
    unrecorded_warn: Positive = 20
    window: Annotated[int, Meta(ge=2, le=MAX_WINDOW_CALLS)] = MAX_WINDOW_CALLS
    window_warn: Positive = 5
    window_terminate: Positive = 7
    batch_warn: Positive = 12


class AlternationLimits(_Section, frozen=True, kw_only=True):
    """Blocks of 2 to 8 calls that repeat with equal results, counted in whole laps."""

    warn: Annotated[int, Meta(ge=2, le=1_000_000)] = 3
    terminate: Annotated[int, Meta(ge=2, le=1_000_000)] = 5
    unrecorded_warn: Annotated[int, Meta(ge=2, le=1_000_000)] = 10
    max_period: Annotated[int, Meta(ge=2, le=MAX_PERIOD_CALLS)] = MAX_PERIOD_CALLS


class ErrorStreakLimits(_Section, frozen=True, kw_only=True):
    """Failing calls (CycleDetector, third dimension: 8 and 15; the same call with the same failure: 3 and 5)."""

    warn: Positive = 8
    terminate: Positive = 15
    same_call_warn: Positive = 3
    same_call_terminate: Positive = 5
    same_call_within: Positive = 12  # calls; single failures further apart are not one loop
    denied_warn: Positive = 3
    denied_terminate: Positive = 10


class DecisionLimits(_Section, frozen=True, kw_only=True):
    """How findings become alerts."""

    rearm_after: Positive = 20  # calls without the loop until it counts as broken
    repeat_factor: Annotated[float, Meta(gt=1, le=1_000)] = 2.0  # the next warn of one loop at this multiple
    user_message_clears: bool = True
    pause_s: Annotated[float, Meta(ge=1)] = 14_400.0  # between two calls; a longer one begins a new stretch
    late_after_s: Annotated[float, Meta(ge=0)] = 3_600.0  # older than what was applied by more than this: late
    late_in_row: Positive = 20  # so many late ones in a row: the producer's clock was wrong before, not now
    poller_factor: Factor = 3.0  # limits of declared pollers are multiplied by it
    excerpt_chars: Annotated[int, Meta(ge=0, le=200)] = 100  # of a call kept for people; 0 keeps none


class Limits(_Section, frozen=True, kw_only=True):
    """All limits of one session.

    ``layers`` maps the dotted name of every limit that is not a default to the layer that set it.
    """

    mode: Literal["observe", "warn", "enforce"] = "enforce"
    identical: IdenticalLimits = IdenticalLimits()
    alternation: AlternationLimits = AlternationLimits()
    error_streak: ErrorStreakLimits = ErrorStreakLimits()
    decision: DecisionLimits = DecisionLimits()
    tools: Tools = Tools()
    layers: Mapping[str, str] = {}

    def layer(self, name: str) -> str:
        """Return the layer that set the limit of this dotted name; ``default`` when none did."""
        return self.layers.get(name, "default")


_PAIRS = (
    ("identical", "warn", "terminate"),
    ("identical", "window_warn", "window_terminate"),
    ("identical", "window_terminate", "window"),
    ("alternation", "warn", "terminate"),
    ("error_streak", "warn", "terminate"),
    ("error_streak", "same_call_warn", "same_call_terminate"),
    ("error_streak", "denied_warn", "denied_terminate"),
)


def limits_from(layers: Sequence[tuple[str, Mapping[str, Any]]], base: Limits | None = None) -> Limits:
    """Merge layers of configuration, later ones winning, over ``base`` (the defaults when None).

    A layer is its name, for example ``file:traction.toml`` or ``override:session:abc``, and a mapping of limits,
    nested (``{"identical": {"warn": 4}}``), dotted (``{"identical.warn": 4}``) or both.

    Raises InvalidLimits naming layer, key and remedy for an unknown key, a value of the wrong type or out of range, a
    warn limit above the terminate limit beside it, and a tool's name that could never match.
    """
    start = base or Limits()
    merged: dict[str, Any] = msgspec.to_builtins(start)
    names: dict[str, str] = dict(merged.pop("layers"))
    for layer, values in layers:
        for key, value in _flat(values):
            _place(merged, layer, key, value)
            names[key] = layer
            try:
                msgspec.convert(merged, Limits)
            except msgspec.ValidationError as error:
                raise InvalidLimits(f"{layer}: {key}: {error}") from None
    limits = msgspec.convert({**merged, "layers": names}, Limits)
    for section, low, high in _PAIRS:
        group = getattr(limits, section)
        if getattr(group, low) > getattr(group, high):
            blamed = names.get(f"{section}.{low}") or names.get(f"{section}.{high}") or "default"
            raise InvalidLimits(
                f"{blamed}: {section}.{low} = {getattr(group, low)} is above "
                f"{section}.{high} = {getattr(group, high)}; "
                f"lower the first or raise the second"
            )
    for kind in ("execute", "edit", "poll", "plan", "interact", "labels"):
        for name in getattr(limits.tools, kind):
            if name not in {"*", plain_name(name)}:
                raise InvalidLimits(
                    f"{names.get(f'tools.{kind}', 'default')}: tools.{kind}: {name!r} never matches, since names are "
                    f"compared in their plain form; write {plain_name(name)!r}"
                )
    return limits


def _flat(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Dotted names and values of a nested mapping; lists and the tables of `Tools` stay whole."""
    flat: list[tuple[str, Any]] = []
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and name != "tools.labels":
            flat.extend(_flat(value, f"{name}."))
        else:
            flat.append((name, value))
    return flat


def _place(merged: Any, layer: str, key: str, value: Any) -> None:
    """Put a value under its dotted name, or say which names there are."""
    *path, last = key.split(".")
    target: Any = merged
    for part in path:
        target = target.get(part, {}) if isinstance(target, dict) else {}
    if not isinstance(target, dict) or last not in target or isinstance(target[last], dict) != isinstance(value, dict):
        known = ", ".join(sorted(name for name, _ in _flat(merged)))
        raise InvalidLimits(f"{layer}: there is no limit {key!r}; known limits are {known}")
    target[last] = value
