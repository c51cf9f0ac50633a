"""Learns weights: a regularised logistic regression of the calls of loops against those of healthy sessions.

Steps: 1. learn from all sources but one, and score that one, for each in turn; 2. from these scores find how odds
become a likelihood, and which limits healthy sessions keep below; 3. learn from all. The same examples give the same
weights. Needs scikit-learn, and reads and writes no file.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from detectors.features import FEATURES, WINDOW_CALLS
from detectors.weights import FORMAT, InvalidWeights, Provenance, Weights, read_weights, write_weights

if TYPE_CHECKING:
    from collections.abc import Sequence

    from detectors.weights import Model
    from streams.training.examples import Examples

LIBRARY_MISSING = "scikit-learn is not installed; install it with: pip install 'traction[train]'"

INVERSE_STRENGTH = 0.006
"""Inverse of the regularisation where the calls of loops and the others weigh 1,000 each: of 0.001 to 0.3, the one that
separated sources left out best; it is strong, since there are few loops and many features."""

LEAST_SPREAD = 0.15
"""A feature that hardly varies among the examples is not blown up: it would rule where it varies."""

MAX_WARNED = 0.01
"""Share of easy, and of hard, healthy sessions that may reach the warn limit."""

MAX_NOTICED = 0.05
"""Share of healthy sessions that may reach the notice limit."""

LEAST_WARN = 0.5
"""A warn says that the session more likely spins than not, however low healthy sessions score."""

WEAK_NEEDS = 1 / 20
"""What a weak rule found needs a score of this share of the usual one, which is the share of spinning calls."""

_WEIGHT = 1_000.0
_PARTS = 5


class Untrainable(ValueError):
    """Nothing can be learned from the examples: the message says what they lack."""


@dataclass(frozen=True, slots=True)
class _Line:
    """A linear score: log odds are ``values @ weights + intercept``."""

    weights: Any
    intercept: float

    def odds(self, examples: Examples) -> Any:
        """Give the log odds of each call."""
        import numpy as np  # noqa: PLC0415 - comes with the library that only training needs

        rows = np.array(examples.measured.rows, dtype=float).reshape(-1, len(FEATURES))
        return rows @ self.weights + self.intercept


def check_library() -> None:
    """See before the work whether learning is possible.

    Raises:
        ModuleNotFoundError: scikit-learn is not installed; the message says how to install it.
    """
    if importlib.util.find_spec("sklearn") is None:
        raise ModuleNotFoundError(LIBRARY_MISSING)


def fit(examples: Sequence[Examples], labels_sha256: str = "") -> Weights:
    """Learn weights that a file of weights can hold.

    Args:
        examples: of labelled sessions; those without a scored call teach nothing.
        labels_sha256: digest of the file of labels, for the record.

    Raises:
        Untrainable: there are too few loops or healthy sessions, they are too short, or the features do not tell them
            apart, or hardly.
        ModuleNotFoundError: scikit-learn is not installed.
    """
    return fit_model(examples, labels_sha256).source


def fit_model(examples: Sequence[Examples], labels_sha256: str = "") -> Model:
    """Learn weights as `fit` does, and make them ready to score with."""
    try:
        return read_weights(write_weights(_fit(examples, labels_sha256)))
    except InvalidWeights as problem:
        raise Untrainable(
            "the features hardly tell these loops from these healthy sessions: the weights that would are larger than "
            "a file of weights may have; label more sessions, of more kinds"
        ) from problem


def _fit(examples: Sequence[Examples], labels_sha256: str) -> Weights:
    import numpy as np  # noqa: PLC0415
    import sklearn  # noqa: PLC0415

    known = sorted((each for each in examples if each.measured.calls), key=lambda each: each.session_id)
    left_out: list[tuple[Examples, Any]] = []
    for part, rest in _parts(known):
        line = _learn(rest)
        left_out += ((each, line.odds(each)) for each in part)
    odds = np.concatenate([odds for _, odds in left_out])
    spinning = np.concatenate([each.spinning for each, _ in left_out])
    slope, shift = _calibration(odds, spinning)
    whole = _learn(known)
    # Rounded as in the file, so that the limits hold for what is scored with.
    final = _Line(np.round(whole.weights * slope, 4) + 0.0, round(whole.intercept * slope + shift, 4))
    usual = float(spinning.mean())
    unseen = {each.session_id: _highest(each, _share(odds * slope + shift)) for each, odds in left_out}
    # A session was not left out where it is alerted: its score by the final weights counts as well.
    highest = {
        each.session_id: max(unseen[each.session_id], _highest(each, _share(final.odds(each)))) for each in known
    }
    if not any(any(each.measured.speaks) for each in known if each.group != "loop"):
        raise Untrainable(
            "no healthy session has a call at which a high score would be an alert, so that none sets a limit; label "
            f"some that have {WINDOW_CALLS} calls and more, and repeat some"
        )
    warn = max(
        LEAST_WARN,
        *(
            _limit([highest[each.session_id] for each in known if each.group == group], MAX_WARNED)
            for group in ("easy", "hard")
        ),
    )
    notice = _limit([highest[each.session_id] for each in known if each.group != "loop"], MAX_NOTICED)
    notice = min(warn, max(notice, round(usual, 2)))
    warned = [(each.group, unseen[each.session_id] >= warn) for each in known]
    healthy = np.concatenate([np.array(each.measured.rows) for each in known if each.group != "loop"])
    return Weights(
        format=FORMAT,
        intercept=final.intercept,
        features={
            feature.name: (float(weight), round(float(typical), 3))
            for feature, weight, typical in zip(FEATURES, final.weights, healthy.mean(axis=0), strict=True)
        },
        notice=notice,
        warn=warn,
        weak_needs=min(notice, round(usual * WEAK_NEEDS, 4)),
        trained=Provenance(
            sessions=len(known),
            loops=sum(each.group == "loop" for each in known),
            sources=len({each.source for each in known}),
            calls=len(odds),
            spinning=int(spinning.sum()),
            labels_sha256=labels_sha256,
            library=f"scikit-learn {sklearn.__version__}",
            inverse_strength=INVERSE_STRENGTH,
            call_auc=_auc(odds, spinning),
            session_auc=_auc([odds.max() for _, odds in left_out], [each.group == "loop" for each, _ in left_out]),
            found=warned.count(("loop", True)),
            easy=warned.count(("easy", True)),
            hard=warned.count(("hard", True)),
        ),
    )


def by_source(examples: Sequence[Examples]) -> bool:
    """Tell whether each source can be left out in turn, since the others have loops and healthy sessions all the same.

    Else parts of the sessions are left out, whose sources are not new to what was learned.
    """
    return all(_teaches(_without(examples, part)) for part in _sources(examples))


def _sources(examples: Sequence[Examples]) -> list[list[Examples]]:
    names = sorted({each.source for each in examples})
    return [[each for each in examples if each.source == name] for name in names]


def _parts(examples: Sequence[Examples]) -> list[tuple[list[Examples], list[Examples]]]:
    """Give what is left out in turn and the rest: each source, or else five parts of the sessions."""
    parts = _sources(examples)
    if not by_source(examples):
        ordered = sorted(examples, key=lambda each: (each.group == "loop", each.session_id))
        parts = [ordered[start::_PARTS] for start in range(min(_PARTS, len(ordered)))]
    found = [(part, _without(examples, part)) for part in parts]
    if not found or not all(_teaches(rest) for _, rest in found):
        raise Untrainable(
            "there are too few examples; label at least two loops that go on and two healthy sessions, better many"
        )
    return found


def _without(examples: Sequence[Examples], part: Sequence[Examples]) -> list[Examples]:
    names = {each.session_id for each in part}
    return [each for each in examples if each.session_id not in names]


def _teaches(examples: Sequence[Examples]) -> bool:
    return any(any(each.spinning) for each in examples) and any(each.group != "loop" for each in examples)


def _learn(examples: Sequence[Examples]) -> _Line:
    """Fit one line. Features whose weight would say the opposite of what they can mean are left out one by one."""
    import numpy as np  # noqa: PLC0415
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 - comes with it, too

    rows = np.concatenate([np.array(each.measured.rows, dtype=float) for each in examples])
    spinning = np.concatenate([each.spinning for each in examples])
    weights = np.where(spinning, _WEIGHT / spinning.sum(), _WEIGHT / (~spinning).sum())
    centre, spread = rows.mean(axis=0), np.maximum(rows.std(axis=0), LEAST_SPREAD)
    scaled = (rows - centre) / spread
    signs = np.array([feature.sign for feature in FEATURES])
    kept = np.ones(len(FEATURES))
    with threadpool_limits(1):  # on a busy machine several threads wait for each other, twenty times as long
        while True:
            model = LogisticRegression(C=INVERSE_STRENGTH, tol=1e-8, max_iter=10_000).fit(
                scaled * kept, spinning, sample_weight=weights
            )
            found = model.coef_[0] * kept
            wrong = np.where(found * signs < 0, np.abs(found), 0.0)
            if not wrong.any():
                return _Line(found / spread, float(model.intercept_[0] - (found * centre / spread).sum()))
            kept[wrong.argmax()] = 0.0


def _calibration(odds: Any, spinning: Any) -> tuple[float, float]:
    """Find slope and shift by which the odds of calls left out become log odds of spinning (Platt scaling)."""
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415

    # Hardly regularised: only where loops are told without an error would the slope grow without bound.
    model = LogisticRegression(C=1.0, tol=1e-8, max_iter=10_000).fit(odds[:, None], spinning)
    slope = float(model.coef_[0][0])
    if slope <= 0:
        raise Untrainable(
            "the features do not tell these loops from these healthy sessions; look whether the labels are right, and "
            "label more"
        )
    return slope, float(model.intercept_[0])


def _share(odds: Any) -> Any:
    import numpy as np  # noqa: PLC0415

    return 0.5 * (1.0 + np.tanh(odds / 2))  # the logistic function, without an overflow


def _highest(examples: Examples, scores: Any) -> float:
    """Give the highest score at which an alert can be raised; 0 when there is none."""
    return max(
        (float(score) for score, speaks in zip(scores, examples.measured.speaks, strict=True) if speaks), default=0.0
    )


def _limit(highest: Sequence[float], share: float) -> float:
    """Give the lowest limit, in hundredths, that at most this share of sessions reaches."""
    ranked = sorted(highest, reverse=True)
    over = ranked[int(len(ranked) * share)] if ranked else 0.0
    return next((hundredths / 100 for hundredths in range(101) if hundredths / 100 > over), 1.0)


def _auc(scores: Any, positive: Any) -> float:
    from sklearn.metrics import roc_auc_score  # noqa: PLC0415

    return round(float(roc_auc_score(positive, scores)), 3)
