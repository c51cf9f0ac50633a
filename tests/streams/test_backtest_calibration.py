"""How scores are held against what came true, and how that is shown: bins, the calibration error, bars and pictures."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.backtest.calibration import EDGES, calibrate
from streams.backtest.calibration_plot import TITLE, bar_lines, picture
from streams.backtest.picture import Picture, draw, written

SCORED = [(0.05, False), (0.15, True), (0.15, False), (1.0, True)]
"""Four calls whose figures can be worked out by hand."""

calls = st.lists(st.tuples(st.floats(0, 1), st.booleans()))


def parse(pictures):
    """Give the root of a drawing."""
    return ET.fromstring(draw(pictures))  # noqa: S314 - drawn by us


def named(root, tag):
    """Give the elements of a kind."""
    return [element for element in root.iter() if element.tag == f"{{http://www.w3.org/2000/svg}}{tag}"]


def test_figures_are_those_worked_out_by_hand():
    """Bins hold calls, mean score and share that spins; the error is the mean distance of both, weighed by calls."""
    found = calibrate(SCORED)
    assert (found.calls, found.spinning) == (4, 2)
    assert [each.calls for each in found.bins] == [1, 2, 0, 0, 0, 0, 0, 0, 0, 1]
    first, second, third, last = (found.bins[place] for place in (0, 1, 2, 9))
    assert (first.mean, first.share) == (0.05, 0)
    assert (second.low, second.high, second.spinning) == (0.1, 0.2, 1)
    assert (second.mean, second.share) == (0.15, 0.5)
    assert (third.mean, third.share, third.spinning) == (None, None, 0)
    assert (last.high, last.mean, last.share) == (1.0, 1.0, 1.0)
    assert found.error == pytest.approx((0.05 + 2 * 0.35 + 0) / 4)


@pytest.mark.parametrize(("place", "edge"), list(enumerate(EDGES)))
def test_a_score_on_an_edge_belongs_to_the_upper_bin(place, edge):
    """The next lower number does not, however close it is."""
    assert calibrate([(edge, True)]).bins[place + 1].calls == 1
    assert calibrate([(math.nextafter(edge, 0), True)]).bins[place].calls == 1


def test_bins_cover_every_score_once():
    """They begin at 0, end at 1, and each begins where the one before ends."""
    bins = calibrate([]).bins
    assert [each.low for each in bins] == [0.0, *(each.high for each in bins[:-1])]
    assert bins[-1].high == 1.0
    assert calibrate([(0.0, False)]).bins[0].calls == calibrate([(1.0, False)]).bins[-1].calls == 1


@given(calls)
def test_counts_add_up_and_means_lie_within_their_bins(scored):
    """No call is lost or counted twice; every mean lies within its bin, and the error between 0 and 1."""
    found = calibrate(scored)
    assert found.calls == len(scored) == sum(each.calls for each in found.bins)
    assert found.spinning == sum(spins for _, spins in scored) == sum(each.spinning for each in found.bins)
    away = 0.0
    for each in found.bins:
        if each.mean is not None and each.share is not None:
            assert each.low - 1e-9 <= each.mean <= each.high + 1e-9
            assert each.share == each.spinning / each.calls
            away += each.calls * abs(each.mean - each.share)
    assert (found.error is None) == (not scored)
    if found.error is not None:
        assert found.error == pytest.approx(away / found.calls, abs=1e-9)
        assert 0 <= found.error <= 1


def test_without_calls_there_is_no_error():
    """Nothing is divided by zero, and no error is claimed."""
    found = calibrate([])
    assert (found.calls, found.error) == (0, None)
    assert not any("error" in line for line in bar_lines(found))
    assert len(named(parse([picture(found)]), "circle")) == 0


def test_bars_show_the_share_and_mark_the_score():
    """A bar of forty for all; the stroke stands at the mean score, within the bar or beyond it."""
    lines = list(bar_lines(calibrate(SCORED)))
    assert lines[0] == TITLE
    assert lines[2] == "0.0 to 0.1       1   0.05   0.00  |  │"
    assert lines[3] == f"0.1 to 0.2       2   0.15   0.50  |{'█' * 6}│{'█' * 13}"
    assert lines[4] == "0.2 to 0.3       0      -      -  |"
    assert lines[11] == f"0.9 to 1.0       1   1.00   1.00  |{'█' * 39}│"
    assert lines[12] == "expected calibration error 0.188 over 4 calls, 2 of them spinning"


def test_the_picture_has_a_column_and_a_dot_for_each_bin_with_calls():
    """Columns are as high as the share that spins; dots stand at the mean score."""
    root = parse([picture(calibrate(SCORED))])
    columns = [rect for rect in named(root, "rect") if rect.get("fill-opacity")]
    assert [float(rect.get("height")) for rect in columns] == [0, 130, 260]
    assert [float(dot.get("cx")) for dot in named(root, "circle")] == [60 + 45, 60 + 135, 60 + 900]
    texts = [text.text for text in named(root, "text")]
    assert {"0.1 to 0.2", "share that spins"} <= set(texts)
    assert any("expected calibration error 0.188" in text for text in texts)


def test_pictures_are_drawn_below_each_other_and_escaped():
    """Each begins where the one above ends; titles and texts cannot add elements."""
    evil = '<b>&"'
    root = parse([Picture(evil, 90, 40, [written(1, 2, evil)]), Picture("second", 80, 30, [])])
    assert (root.get("width"), root.get("height"), root.get("viewBox")) == ("90", "70", "0 0 90 70")
    assert [group.get("transform") for group in named(root, "g")] == ["translate(0 0)", "translate(0 40)"]
    assert [title.text for title in named(root, "title")] == [f"{evil}; second"]
    assert [text.text for text in named(root, "text")] == [evil]
