"""How layers of configuration make one set of limits: merged, checked, and each limit with the layer that set it."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Literal, get_args, get_origin

import msgspec

from detectors.limits import Limits
from detectors.tools import plain_name


class InvalidLimits(ValueError):
    """A layer of configuration names a limit that does not exist, or gives it a value it cannot have.

    ``layer`` is the one that is to blame, ``told`` what is wrong and what to do, ``keys`` the dotted names concerned.
    """

    def __init__(self, layer: str, told: str, *keys: str) -> None:
        super().__init__(layer, told, *keys)
        self.layer = layer
        self.told = told
        self.keys = keys

    def __str__(self) -> str:
        return f"{self.layer}: {self.told}"


_PAIRS = (
    ("identical", "warn", "terminate"),
    ("identical", "window_warn", "window_terminate"),
    ("identical", "window_terminate", "window"),
    ("revisits", "warn", "window"),
    ("alternation", "warn", "terminate"),
    ("alternation", "edited_warn", "edited_terminate"),
    ("category", "explore_warn", "explore_terminate"),
    ("category", "act_warn", "act_terminate"),
    ("category", "plan_warn", "plan_terminate"),
    ("category", "other_warn", "other_terminate"),
    ("category", "execute_warn", "execute_terminate"),
    ("category", "execute_write_warn", "execute_write_terminate"),
    ("error_streak", "warn", "terminate"),
    ("error_streak", "same_call_warn", "same_call_terminate"),
    ("error_streak", "denied_warn", "denied_terminate"),
    ("same_failure", "warn", "terminate"),
    ("same_failure", "window_warn", "window"),
    ("same_write", "warn", "terminate"),
    ("same_write", "window_warn", "window"),
    ("refused_edits", "warn", "terminate"),
    ("refused_edits", "terminate", "window"),
    ("fruitless_search", "warn", "window"),
    ("fruitless_search", "reworded_warn", "warn"),
    ("stuck_check", "warn", "terminate"),
    ("same_answer", "warn", "terminate"),
    ("same_answer", "terminate", "window"),
    ("rereads", "notice", "warn"),
    ("circular_fix", "warn", "terminate"),
    ("circular_fix", "warn", "lookback"),
    ("approach_churn", "warn", "terminate"),
    ("diff_reversal", "notice", "warn"),
    ("diff_reversal", "warn", "terminate"),
    ("state_cycle", "warn", "terminate"),
    ("fix_break", "warn", "terminate"),
    ("ping_pong", "warn", "terminate"),
)

PAIRS = (
    *((f"{section}.{low}", f"{section}.{high}") for section, low, high in _PAIRS),
    ("spin_score.notice", "spin_score.warn"),
)
"""Limits of which the first must not be above the second, by their dotted names."""


def limits_from(layers: Sequence[tuple[str, Mapping[str, Any]]], base: Limits | None = None) -> Limits:
    """Merge layers of configuration, later ones winning, over ``base`` (the defaults when None).

    A layer is its name, for example ``file:traction.toml`` or ``override:session:abc``, and a mapping of limits,
    nested (``{"identical": {"warn": 4}}``), dotted (``{"identical.warn": 4}``) or both. Tables, such as the names of
    tools, are merged by their keys.

    Raises InvalidLimits naming layer, key and remedy for an unknown key, a value of the wrong type or out of range, a
    warn limit above the terminate limit beside it, and a tool's name that could never match.
    """
    start = base or Limits()
    merged: dict[str, Any] = msgspec.to_builtins(start)
    names: dict[str, str] = dict(merged.pop("layers"))
    del merged["model"]  # is no limit
    for layer, values in layers:
        for key, value in flat_limits(values):
            _place(merged, layer, key, value)
            names[key] = layer
            if key in _TABLES and isinstance(value, Mapping):
                names.update((f"{key}.{entry}", layer) for entry in value)
            if (table := key.rpartition(".")[0]) in _TABLES:
                names[table] = layer
            try:
                msgspec.convert(merged, Limits)
            except (msgspec.ValidationError, ValueError) as error:
                raise InvalidLimits(layer, f"{key}: {_told(error, key, value)}", key) from None
    limits = msgspec.structs.replace(msgspec.convert({**merged, "layers": names}, Limits), model=start.model)
    _check_pairs(limits)
    _check_score(limits)
    _check_names(limits)
    return limits


def _told(error: Exception, key: str, value: Any) -> str:
    """Say what is wrong with a value; where only some values are allowed, also which, and under which key it is."""
    text = str(error)
    if not text.startswith("Invalid enum value"):
        return text
    allowed = _allowed(key)
    if isinstance(value, Mapping):
        wrong = next((name for name, given in value.items() if given not in allowed), "...")
        text = text.replace("[...]", f"[{wrong!r}]")
    return f"{text}; allowed are {', '.join(map(repr, allowed))}"


def _allowed(key: str) -> list[Any]:
    """Return the values that the limit of this dotted name, or each value in it, may have."""
    kind: Any = Limits
    for part in key.split("."):
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            kind = next(field.type for field in msgspec.structs.fields(kind) if field.name == part)
    return _literals(kind)


def _literals(kind: Any) -> list[Any]:
    if get_origin(kind) is Literal:
        return list(get_args(kind))
    return [value for part in get_args(kind) for value in _literals(part)]


def _check_pairs(limits: Limits) -> None:
    names = limits.layers
    for section, low, high in _PAIRS:
        group = getattr(limits, section)
        if getattr(group, low) > getattr(group, high):
            blamed = names.get(f"{section}.{low}") or names.get(f"{section}.{high}") or "default"
            raise InvalidLimits(
                blamed,
                f"{section}.{low} = {getattr(group, low)} is above "
                f"{section}.{high} = {getattr(group, high)}; "
                f"lower the first or raise the second",
                f"{section}.{low}",
                f"{section}.{high}",
            )


def _check_score(limits: Limits) -> None:
    """Refuse a notice above the warn where both are set; one that is learned gives way to one that is set."""
    group, names = limits.spin_score, ("spin_score.notice", "spin_score.warn")
    if group.notice > group.warn > 0:
        raise InvalidLimits(
            limits.layer(names[0]),
            f"{names[0]} = {group.notice:g} is above {names[1]} = {group.warn:g}; lower the first or raise the second",
            *names,
        )


def _check_names(limits: Limits) -> None:
    """Refuse names of tools that could never match, since they are compared in their plain form."""
    tables: dict[str, Mapping[str, Any]] = {
        "tools.names": limits.tools.names,
        "tools.words": limits.tools.words,
        "tools.labels": limits.tools.labels,
        "tools.volatile": limits.tools.volatile,
        "category.tools": limits.category.tools,
    }
    for table, keys in tables.items():
        for name in keys:
            if name not in {"*", plain_name(name)}:
                raise InvalidLimits(
                    limits.layer(table),
                    f"{table}: {name!r} never matches, since names are compared in their plain form; write "
                    f"{plain_name(name)!r}",
                    f"{table}.{name}",
                    table,
                )
    for name, (warn, terminate) in limits.category.tools.items():
        if warn > terminate:
            raise InvalidLimits(
                limits.layer("category.tools"),
                f"category.tools.{name}: warn at {warn} is above terminate at {terminate}; lower the first or raise "
                "the second",
                f"category.tools.{name}",
                "category.tools",
            )


def flat_limits(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Return dotted names and values of a nested mapping; lists and tables, such as names of tools, stay whole."""
    flat: list[tuple[str, Any]] = []
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and name not in _TABLES:
            flat.extend(flat_limits(value, f"{name}."))
        else:
            flat.append((name, value))
    return flat


def _place(merged: Any, layer: str, key: str, value: Any) -> None:
    """Put a value under its dotted name, or say which names there are."""
    *path, last = key.split(".")
    target: Any = merged
    for part in path:
        target = target.get(part, {}) if isinstance(target, dict) else {}
    if ".".join(path) in _TABLES and isinstance(target, dict):
        target[last] = value
        return
    if not isinstance(target, dict) or last not in target or isinstance(target[last], dict) != isinstance(value, dict):
        known = [name for name, _ in flat_limits(merged)]
        near = get_close_matches(key, known, cutoff=0.5) or [
            name for name in known if path and name.startswith(f"{path[0]}.")
        ]
        raise InvalidLimits(layer, f"there is no limit {key!r}; {_nearest(near or sorted(merged))}", key)
    target[last] = {**target[last], **value} if isinstance(value, dict) else value


def _nearest(names: list[str]) -> str:
    return f"the nearest is {names[0]}" if len(names) == 1 else f"nearest are {', '.join(names)}"


def _tables() -> frozenset[str]:
    """Return the dotted names of the limits that are tables: merged by key, not limits of limits."""
    sections = {field.name: field.type for field in msgspec.structs.fields(Limits)}
    return frozenset(
        f"{name}.{field.name}"
        for name, section in sections.items()
        if isinstance(section, type) and issubclass(section, msgspec.Struct)
        for field in msgspec.structs.fields(section)
        if get_origin(field.type) is dict
    )


_TABLES = _tables()
