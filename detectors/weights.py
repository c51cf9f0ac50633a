"""The weights of the spin score: data that were learned from labelled sessions, in a small file with a version.

The file is JSON, made by `traction train`; `spin_weights.json` beside this module is what is used when no other is
named. The score is a logistic regression: its arithmetic is done here, without the library that learned it.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from operator import mul
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from detectors.excerpt import cut
from detectors.features import FEATURES, Feature
from schemas.common import Share

FORMAT: Final = 1
"""Version of the file's form; raised when a feature is added, dropped or defined another way."""

_Weight = Annotated[float, Meta(ge=-1_000, le=1_000)]

_MAX_NAMES_BYTES = 200  # of unknown features in a message
_MIN_TOLD, _MAX_TOLD = 2, 3  # features that an explanation names
_LEAST_SHARE = 0.1  # of what speaks for spinning: a third feature that carries less is not told


class InvalidWeights(ValueError):
    """A file of weights cannot be used: the message names field and remedy."""


class Provenance(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What weights were learned from, and how well they did on sources of sessions that were left out each in turn.

    Attributes:
        sessions: labelled sessions, loops and healthy ones.
        loops: how many of them are loops.
        sources: where they come from: as many as were left out in turn.
        calls: tool calls that were scored.
        spinning: those of them that are part of a loop.
        labels_sha256: digest of the file of labels.
        library: what fitted the weights.
        inverse_strength: of the regularisation (scikit-learn's C).
        call_auc: of the calls left out: how likely one of a loop scores above a healthy one.
        session_auc: of the sessions left out, by their highest scores, likewise.
        found: loops left out whose score reaches `warn`.
        easy: healthy sessions left out whose score reaches it.
        hard: healthy ones that repeat a lot, likewise.
    """

    sessions: int
    loops: int
    sources: int
    calls: int
    spinning: int
    labels_sha256: str
    library: str
    inverse_strength: float
    call_auc: float
    session_auc: float
    found: int
    easy: int
    hard: int


class Weights(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file of weights.

    Attributes:
        format: version of its form.
        intercept: the score's log odds where every feature is 0.
        features: for each feature its weight, in log odds, and its typical value in healthy sessions.
        notice: scores from here on are a notice.
        warn: scores from here on are a warn: at most one in a hundred healthy sessions reaches it.
        weak_needs: what a weak rule found needs this score to be more than a notice itself; one that only counts calls
            needs `notice`.
        trained: where the weights come from.
    """

    format: int
    intercept: _Weight
    features: dict[str, tuple[_Weight, Share]]
    notice: Share
    warn: Share
    weak_needs: Share
    trained: Provenance


@dataclass(frozen=True, slots=True)
class Model:
    """Weights made ready to score with.

    Attributes:
        weights: one for each of `FEATURES`, in their order.
        typical: their typical values in healthy sessions.
        source: the file's content.
    """

    weights: tuple[float, ...]
    typical: tuple[float, ...]
    source: Weights

    def score(self, values: Sequence[float]) -> float:
        """Return the score of the features' values, from 0 to 1."""
        odds = self.source.intercept + sum(map(mul, self.weights, values))
        return 1.0 / (1.0 + math.exp(-odds)) if odds > -_MOST_ODDS else 0.0

    def told(self, values: Sequence[float], calls: int) -> str:
        """Say in words which two or three features carried the score of a window of so many calls."""
        each = zip(self.weights, values, self.typical, strict=True)
        carried = [weight * (value - usual) for weight, value, usual in each]
        ranked = sorted(zip(carried, FEATURES, values, strict=True), key=lambda each: -each[0])
        whole = sum(carry for carry, _, _ in ranked if carry > 0)
        chosen: dict[str, tuple[Feature, float]] = {}
        for carry, feature, value in ranked:
            enough = len(chosen) >= _MIN_TOLD and carry < _LEAST_SHARE * whole
            if carry <= 0 or enough or len(chosen) == _MAX_TOLD:
                break
            if feature.theme:
                chosen.setdefault(feature.theme, (feature, value))
        return "; ".join(feature.says(value, calls) for feature, value in chosen.values())


_MOST_ODDS = 700.0  # beyond it `exp` has no value


def read_weights(data: bytes) -> Model:
    """Return the weights of a file's content.

    Raises InvalidWeights naming the field and what to do when they are not of this form, or lack a feature.
    """
    try:
        weights = _DECODER.decode(data)
    except msgspec.MsgspecError as problem:
        raise InvalidWeights(f"{_named(str(problem), data)}; make the file anew with traction train") from None
    if weights.format != FORMAT:
        raise InvalidWeights(
            f"field `format` is {weights.format}, and this release reads {FORMAT}; make the file anew with "
            "traction train"
        )
    names = [feature.name for feature in FEATURES]
    lacking = ", ".join(sorted({*names} - weights.features.keys()))
    unknown = ", ".join(sorted(weights.features.keys() - {*names}))
    if lacking or unknown:
        unknown = cut(repr(unknown), _MAX_NAMES_BYTES) if unknown else ""
        what = " and ".join(filter(None, (lacking and f"lacks {lacking}", unknown and f"has {unknown} too many")))
        raise InvalidWeights(f"field `features` {what}; make the file anew with traction train")
    if not weights.weak_needs <= weights.notice <= weights.warn:
        raise InvalidWeights("fields `weak_needs`, `notice` and `warn` must rise in this order; correct them")
    pairs = [weights.features[name] for name in names]
    return Model(tuple(weight for weight, _ in pairs), tuple(usual for _, usual in pairs), weights)


def _named(problem: str, data: bytes) -> str:
    """Put the name of the feature into a message that has none."""
    if "`$.features[...]" not in problem:
        return problem
    try:
        pairs = msgspec.json.decode(data, type=_Features).features
    except (msgspec.MsgspecError, RecursionError):  # something else is wrong behind it
        return problem
    for name, pair in pairs.items():
        try:
            _PAIR_DECODER.decode(pair)
        except msgspec.ValidationError:
            return problem.replace("features[...]", f"features[{cut(repr(name), _MAX_NAMES_BYTES)}]")
    return problem


def write_weights(weights: Weights) -> bytes:
    """Return the file's content: JSON, a line for each feature."""
    return _PAIR.sub(rb"[\1, \2]", msgspec.json.format(msgspec.json.encode(weights), indent=2)) + b"\n"


_PAIR = re.compile(rb"\[\s+([^\s,\[]+),\s+([^\s,\]]+)\s+\]")
_DECODER = msgspec.json.Decoder(Weights)
_PAIR_DECODER = msgspec.json.Decoder(tuple[_Weight, Share])


class _Features(msgspec.Struct):
    """The pairs of a file as they stand in it, to find the one that is wrong."""

    features: dict[str, msgspec.Raw]


DEFAULT_MODEL: Final = read_weights(files("detectors").joinpath("spin_weights.json").read_bytes())
"""What is scored with when no other weights are named."""
