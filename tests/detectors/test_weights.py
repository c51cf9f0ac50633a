"""The file of weights: what is refused and how it is told, and that the one that comes with Traction is in order."""

from __future__ import annotations

import math
from importlib.resources import files
from itertools import pairwise

import msgspec
import pytest

from detectors.features import FEATURES
from detectors.weights import DEFAULT_MODEL, FORMAT, InvalidWeights, Provenance, Weights, read_weights, write_weights

GOOD = msgspec.to_builtins(DEFAULT_MODEL.source)
NAMES = [feature.name for feature in FEATURES]
LEVELS = ("weak_needs", "notice", "warn")


def told(content):
    """Give what is said of a file that is refused."""
    with pytest.raises(InvalidWeights) as caught:
        read_weights(content if isinstance(content, bytes) else msgspec.json.encode(content))
    return str(caught.value)


def test_the_committed_file_is_canonical():
    """Read and written again, `spin_weights.json` is the same, byte for byte."""
    committed = files("detectors").joinpath("spin_weights.json").read_bytes()
    assert write_weights(read_weights(committed).source) == committed


def test_no_committed_weight_says_the_opposite_of_its_feature():
    """Each has the sign that its feature can only have, or is 0."""
    signs = [
        (feature.name, feature.sign * weight) for feature, weight in zip(FEATURES, DEFAULT_MODEL.weights, strict=True)
    ]
    assert [name for name, product in signs if product < 0] == []
    assert any(product > 0 for _, product in signs)


def test_a_file_is_read_as_it_was_written():
    """Weights survive writing and reading; each stands with its own feature, whatever the order in the file."""
    turned = dict(reversed(DEFAULT_MODEL.source.features.items()))
    weights = msgspec.structs.replace(DEFAULT_MODEL.source, features=turned)
    model = read_weights(write_weights(weights))
    assert model.source == weights
    assert (model.weights, model.typical) == (DEFAULT_MODEL.weights, DEFAULT_MODEL.typical)


def test_a_line_is_written_for_each_feature():
    """So that two files can be compared line by line."""
    lines = write_weights(DEFAULT_MODEL.source).decode().splitlines()
    assert [line.split('"')[1] for line in lines if line.rstrip(",").endswith("]")] == NAMES


@pytest.mark.parametrize("name", Weights.__struct_fields__)
def test_each_field_is_needed(name):
    """A file without it is refused, and it is named."""
    assert f"required field `{name}`" in told({key: value for key, value in GOOD.items() if key != name})


@pytest.mark.parametrize("name", Provenance.__struct_fields__)
def test_each_field_of_the_origin_is_needed(name):
    """Where weights come from is part of them."""
    trained = {key: value for key, value in GOOD["trained"].items() if key != name}
    assert f"required field `{name}`" in told(GOOD | {"trained": trained})


@pytest.mark.parametrize("name", NAMES)
def test_each_feature_is_needed(name):
    """A weight that is missing is named: it would count as nothing in silence."""
    features = {key: value for key, value in GOOD["features"].items() if key != name}
    assert told(GOOD | {"features": features}).startswith(f"field `features` lacks {name};")


def test_an_unknown_feature_is_named():
    """It would be passed by in silence."""
    features = GOOD["features"] | {"mood": [0.5, 0.5]}
    assert "field `features` has 'mood' too many" in told(GOOD | {"features": features})


@pytest.mark.parametrize("version", [FORMAT - 1, FORMAT + 1])
def test_another_version_is_refused(version):
    """Both versions are told, and the remedy."""
    words = f"field `format` is {version}, and this release reads {FORMAT}; make the file anew with traction train"
    assert told(GOOD | {"format": version}) == words


@pytest.mark.parametrize(("low", "high"), list(pairwise(LEVELS)))
def test_limits_must_rise(low, high):
    """Neighbours may be equal, and are refused when the wrong way round."""
    flat = GOOD | dict.fromkeys(LEVELS, 0.5)
    assert read_weights(msgspec.json.encode(flat)).source.warn == 0.5
    place = LEVELS.index(high)
    steps = dict.fromkeys(LEVELS[:place], 0.5) | dict.fromkeys(LEVELS[place:], 0.49)
    words = told(flat | steps)
    assert f"`{low}`" in words
    assert f"`{high}`" in words
    assert words.endswith("must rise in this order; correct them")


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        *(({name: value}, f"`$.{name}`") for name in LEVELS for value in (-0.01, 1.01, "0.5", None, True)),
        *(({"intercept": value}, "`$.intercept`") for value in (1_001, -1_001, "0.5", None)),
        *(({"format": value}, "`$.format`") for value in ("1", 1.5, True)),
        *(
            ({"features": GOOD["features"] | {"news": value}}, "`$.features['news']")
            for value in ([0.5], [0.5, 0.5, 0.5], ["0.5", 0.5], [0.5, "0.5"], [0.5, 1.01], [1_001, 0.5], 0.5)
        ),
        ({"trained": GOOD["trained"] | {"calls": "many"}}, "`$.trained.calls`"),
        ({"more": 1}, "unknown field `more`"),
    ],
)
def test_a_value_that_cannot_be_is_refused(fields, place):
    """Of the wrong type or out of range: the field is named, and the remedy."""
    words = told(GOOD | fields)
    assert place in words
    assert words.endswith("; make the file anew with traction train")


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"-Infinity", b"1e999", b'"nan"'])
def test_what_is_no_number_is_refused(number):
    """A score of it would be none."""
    content = write_weights(DEFAULT_MODEL.source).replace(
        f'"notice": {GOOD["notice"]}'.encode(), b'"notice": ' + number
    )
    assert number in content
    assert told(content).endswith("; make the file anew with traction train")


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"null", b"\xff", b'{"\xff": 1}', b'{"features": {"a": ' + b"[" * 100_000]
)
def test_what_is_no_such_file_is_refused(content):
    """Whatever is in it, it is told in words."""
    assert told(content).endswith("; make the file anew with traction train")


def test_the_score_is_a_logistic_regression():
    """Of the features' values in their order, from 0 to 1 and finite however far out."""
    values = [place / len(FEATURES) for place in range(len(FEATURES))]
    odds = GOOD["intercept"] + sum(GOOD["features"][name][0] * value for name, value in zip(NAMES, values, strict=True))
    assert DEFAULT_MODEL.score(values) == pytest.approx(1 / (1 + math.exp(-odds)))
    for sign, expected in ((1, 1.0), (-1, 0.0)):
        steep = dict.fromkeys(NAMES, (sign * 1_000.0, 0.0))
        model = read_weights(write_weights(msgspec.structs.replace(DEFAULT_MODEL.source, features=steep)))
        assert model.score([1.0] * len(NAMES)) == expected
