"""Limits: layers merge in order, say who set what, and refuse nonsense by name."""

import pytest

from detectors import InvalidLimits, Limits, limits_from


def test_later_layers_win_and_are_named():
    """Each value remembers the layer that set it last."""
    limits = limits_from([("file", {"identical": {"warn": 4, "terminate": 9}}), ("override", {"identical.warn": 2})])
    assert (limits.identical.warn, limits.identical.terminate, limits.identical.window_warn) == (2, 9, 5)
    assert (limits.layer("identical.warn"), limits.layer("identical.terminate")) == ("override", "file")
    assert limits.layer("identical.window_warn") == "default"


def test_layers_go_on_from_a_base():
    """An override on top of a file keeps what the file set."""
    base = limits_from([("file", {"mode": "observe"})])
    limits = limits_from([("override:session:s1", {"identical.warn": 2})], base)
    assert (limits.mode, limits.layer("mode"), limits.identical.warn) == ("observe", "file", 2)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"identical": {"wran": 3}}, "no limit 'identical.wran'.*identical.warn"),
        ({"identikal": {"warn": 3}}, "no limit 'identikal.warn'"),
        ({"identical": 3}, "no limit 'identical'"),
        ({"identical.warn.x": 3}, "no limit 'identical.warn.x'"),
        ({"identical": {"warn": "three"}}, "identical.warn: .*Expected `int`, got `str`"),
        ({"identical": {"warn": 0}}, "identical.warn: .*>= 1"),
        ({"alternation": {"max_period": 9}}, "alternation.max_period: .*<= 8"),
        ({"identical": {"window": 6}}, "window_terminate = 7 is above identical.window = 6"),
        ({"mode": "shout"}, "mode: .*Invalid enum value 'shout'"),
        ({"identical": {"warn": 6}}, r"identical.warn = 6 is above identical.terminate = 5"),
        ({"layers": {"a": "b"}}, "no limit 'layers.a'"),
        ({"tools": {"poll": ["myTool"]}}, "tools.poll: 'myTool' never matches.*write 'my_tool'"),
        ({"tools": {"labels": {"mcp__x__y": ["why"]}}}, "tools.labels: 'mcp__x__y' never matches.*write 'y'"),
    ],
)
def test_mistakes_are_named_with_layer_and_remedy(values, told):
    """The message says where, what and what would do."""
    with pytest.raises(InvalidLimits, match=f"limits.toml: .*{told}" if "above" not in told else told):
        limits_from([("limits.toml", values)])


def test_tools_can_be_declared():
    """Users name their own executing, editing and polling tools, and labels."""
    limits = limits_from([("file", {"tools": {"poll": ["my_wait"], "labels": {"my_tool": ["why"]}}})])
    assert limits.tools.poll == {"my_wait"}
    assert limits.tools.polls("my_wait")
    assert limits.tools.label_arguments("my_tool") == ("why",)


def test_defaults_are_the_specifications():
    """The numbers that the documents promise."""
    limits = Limits()
    assert (limits.identical.warn, limits.identical.terminate) == (3, 5)
    assert (limits.error_streak.warn, limits.error_streak.terminate) == (8, 15)
    assert (limits.alternation.warn, limits.alternation.terminate) == (3, 5)
    assert limits.mode == "enforce"
