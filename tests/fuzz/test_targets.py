"""Whatever bytes come in by any door are processed, or refused by the one error that is documented for them."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.targets import CORPUS, TARGETS, seeds

EXAMPLES = 15
"""Of each kind and target; `make fuzz` goes on where this ends."""

MAX_SEED_BYTES = 20_000
"""A seed is small: it is read at every run, and by people."""

PIECES = (
    b"", b"\0", b"\xff", b"\xc3(", b"\xed\xa0\x80", b"\\ud800", b"1e999", b"-0", b"NaN", b"9" * 400, b"[" * 200,
    b'{"a":' * 200, b'"', b"\\", b"\n", b"\r", b"null", b"{}", b"[]", b'"",', b"\x91" * 50, b"\xdd\xff\xff\xff\xff",
    b"2999-12-31T23:59:59Z", b"1e-400", b"true", b"'''", b"\xe2\x80\xae", b"@@ -1 +1 @@\n", b"```\n",
)  # fmt: skip
"""What is put into valid input."""

SEEDS = [(name, path) for name in TARGETS for path in seeds(name)]
CONTENT = {name: [path.read_bytes() for path in seeds(name)] for name in TARGETS}


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Say nothing: what is refused is logged."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@st.composite
def spoilt(draw: st.DrawFn, name: str) -> bytes:
    """Give a valid input in which some parts are others."""
    content = draw(st.sampled_from(CONTENT[name]))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(content)))
        end = at + draw(st.sampled_from((0, 1, 5, 40)))
        content = content[:at] + draw(st.sampled_from(PIECES) | st.binary(max_size=4)) + content[end:]
    return content


@pytest.mark.parametrize(("name", "path"), SEEDS, ids=[f"{name}-{path.name}" for name, path in SEEDS])
def test_seeds(name, path):
    """Each input of the corpus is processed or refused; what was ever found is among them."""
    TARGETS[name](path.read_bytes())


@pytest.mark.parametrize("name", TARGETS)
def test_anything(name):
    """Bytes of all kinds, values of any JSON shape, and valid inputs that were spoilt."""
    target = TARGETS[name]
    shapes = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=12,
    )
    quick = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None)

    @quick
    @given(st.binary() | shapes.map(lambda value: json.dumps(value).encode()))
    def anything(data: bytes) -> None:
        target(data)

    @quick
    @given(spoilt(name))
    def valid_but_for(data: bytes) -> None:
        target(data)

    anything()
    valid_but_for()


def test_the_corpus(record_property):
    """Each target has seeds, each seed has its target and is small; how many there are is told."""
    files = [path for path in CORPUS.rglob("*") if path.is_file()]
    told = f"{len(files)} files in the corpus, {len(SEEDS)} seeds of {len(TARGETS)} targets"
    record_property("figures", told)
    assert {path.parent.name for path in files} == set(TARGETS)
    assert all(path.parent.parent == CORPUS for path in files)
    assert {name for name, path in SEEDS if path.is_relative_to(CORPUS)} == set(TARGETS)
    assert max(path.stat().st_size for path in files) <= MAX_SEED_BYTES
