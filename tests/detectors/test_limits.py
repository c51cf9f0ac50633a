"""Limits: layers merge in order, say who set what, and refuse nonsense by name."""

import msgspec
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
        ({"tools": {"names": {"myTool": "poll"}}}, "tools.names: 'myTool' never matches.*write 'my_tool'"),
        ({"tools": {"names": {"my_tool": "wait"}}}, "tools.names: .*Invalid enum value 'wait'"),
        ({"tools": {"volatile": {"mcp__x__y": ["a"]}}}, "tools.volatile: 'mcp__x__y' never matches.*write 'y'"),
        ({"tools": {"volatile": {"y": ["("]}}}, r"tools.volatile: volatile.y: '\(' is no regular expression"),
        ({"tools": {"poll": ["my_tool"]}}, "no limit 'tools.poll'"),
        ({"category": {"tools": {"Deploy": [1, 2]}}}, "category.tools: 'Deploy' never matches.*write 'deploy'"),
        ({"category": {"tools": {"deploy": [3, 2]}}}, "category.tools.deploy: warn at 3 is above terminate at 2"),
        ({"category": {"tools": {"deploy": [0, 2]}}}, "category.tools: .*>= 1"),
        ({"category": {"tools": {"deploy": 3}}}, "category.tools: .*Expected `array`"),
        ({"category.tools.deploy": [3, 2]}, "category.tools.deploy: warn at 3 is above terminate at 2"),
        ({"analysis": {"profile": "brave"}}, "analysis.profile: .*Invalid enum value 'brave'"),
        ({"analysis": {"roles": {"code": 0}}}, "analysis.roles: .*>= 1"),
        ({"analysis.roles.code": 0}, "analysis.roles.code: .*>= 1"),
        ({"budget": {"tokens": -1}}, "budget.tokens: .*>= 0"),
        ({"budget": {"soft_share": 0}}, "budget.soft_share: .*> 0"),
        ({"budget": {"soft_share": 1.1}}, "budget.soft_share: .*<= 1"),
        ({"rereads": {"new_share": 1}}, "rereads.new_share: .*< 1"),
        ({"decision": {"repeat_factor": 1}}, "decision.repeat_factor: .*> 1"),
        ({"session_mode": "rest"}, "session_mode: .*Invalid enum value 'rest'"),
        ({"tools": {"labels": {"mcp__x__y": ["why"]}}}, "tools.labels: 'mcp__x__y' never matches.*write 'y'"),
    ],
)
def test_mistakes_are_named_with_layer_and_remedy(values, told):
    """The message says where, what and what would do."""
    with pytest.raises(InvalidLimits, match=f"limits.toml: .*{told}" if "above" not in told else told):
        limits_from([("limits.toml", values)])


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"mode": "obsrve"}, "mode: Invalid enum value 'obsrve'.*; allowed are 'observe', 'warn', 'enforce'$"),
        ({"off": ["identicle"]}, "off: Invalid enum value 'identicle'.*; allowed are 'identical', 'alternation', "),
        ({"tools": {"names": {"a": "read", "b": "wait"}}}, r"names\['b'\]`; allowed are .*'read'"),
        ({"tools.names.b": "wait"}, "tools.names.b: .*; allowed are .*'read'"),
    ],
)
def test_a_word_that_is_not_allowed_is_told_with_those_that_are(values, told):
    """Nobody has to look up what could be written, or search for the key."""
    with pytest.raises(InvalidLimits, match=told):
        limits_from([("file", values)])


def test_tools_can_be_declared():
    """Users name their own tools, words and commands, labels and what is volatile in results."""
    limits = limits_from(
        [
            (
                "file",
                {"tools": {"names": {"my_wait": "poll"}, "labels": {"my_tool": ["why"]}, "commands": {"mk": "check"}}},
            )
        ]
    )
    assert limits.tools.use("my_wait", {}).kind == "poll"
    assert limits.tools.use("bash", {"command": "mk all"}).kind == "check"
    assert limits.tools.label_arguments("my_tool")[-1] == "why"


TABLES = {
    "tools.names": ("frob", "check"),
    "tools.words": ("frob", "check"),
    "tools.actions": ("frob", "check"),
    "tools.commands": ("frob", "check"),
    "tools.wrappers": ("frob", 1),
    "tools.options": ("frob", ("-x",)),
    "tools.labels": ("frob", ("why",)),
    "tools.volatile": ("frob", ("[0-9]+",)),
    "analysis.roles": ("frob", 3),
    "category.tools": ("frob", (3, 4)),
}


@pytest.mark.parametrize("table", TABLES)
def test_tables_are_merged_by_key(table):
    """One line more takes nothing away, in whatever way it is written; a later layer's line wins."""
    section, field = table.split(".")
    key, value = TABLES[table]
    before = getattr(getattr(Limits(), section), field)
    for layer in ({section: {field: {key: value}}}, {table: {key: value}}, {f"{table}.{key}": value}):
        limits = limits_from([("file", layer)])
        assert getattr(getattr(limits, section), field) == {**before, key: value}
        again = limits_from([("override", {table: {key: value}})], limits)
        assert getattr(getattr(again, section), field) == {**before, key: value}


@pytest.mark.parametrize("dotted", [False, True])
def test_the_layer_that_added_to_a_table_is_named(dotted):
    """An operator finds the line, however it was written."""
    for table, (key, value) in TABLES.items():
        limits = limits_from([("file", {f"{table}.{key}": value} if dotted else {table: {key: value}})])
        assert limits.layer(table) == "file"
        assert Limits().layer(table) == "default"


def test_every_limit_there_is_can_be_set_by_its_dotted_name():
    """What a message lists as known is what can be said, with its own default at least."""
    fields = msgspec.to_builtins(Limits())
    del fields["layers"], fields["model"]  # are no limits
    names = [
        (f"{section}.{name}", value)
        for section, group in fields.items()
        if isinstance(group, dict)
        for name, value in group.items()
    ]
    for name, value in [*names, ("mode", "warn"), ("session_mode", "explore")]:
        limits = limits_from([("file", {name: value})])
        assert limits.layer(name) == "file"


@pytest.mark.parametrize(
    ("section", "low", "high"),
    [
        (section.name, low.name, low.name.removesuffix("warn") + "terminate")
        for section in msgspec.structs.fields(Limits)
        if isinstance(section.type, type) and issubclass(section.type, msgspec.Struct)
        for low in msgspec.structs.fields(section.type)
        if low.name.endswith("warn") and low.name.removesuffix("warn") + "terminate" in section.type.__struct_fields__
    ],
)
def test_no_warning_comes_after_the_end(section, low, high):
    """Every pair of a warning and a termination is checked, also where only one of them is set; equal is allowed."""
    most = getattr(getattr(Limits(), section), high)
    assert getattr(getattr(limits_from([("file", {f"{section}.{low}": most})]), section), low) == most
    with pytest.raises(InvalidLimits, match=f"file: {section}.{low} = {most + 1} is above {section}.{high} = {most}"):
        limits_from([("file", {f"{section}.{low}": most + 1})])


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"revisits": {"window": 9}}, "revisits.warn = 10 is above revisits.window = 9"),
        ({"same_write": {"window": 4}}, "same_write.window_warn = 5 is above same_write.window = 4"),
        ({"same_answer": {"window": 7}}, "same_answer.terminate = 8 is above same_answer.window = 7"),
        ({"refused_edits": {"window": 9}}, "refused_edits.terminate = 10 is above refused_edits.window = 9"),
        ({"fruitless_search": {"window": 7}}, "fruitless_search.warn = 8 is above fruitless_search.window = 7"),
        ({"rereads": {"notice": 7}}, "rereads.notice = 7 is above rereads.warn = 6"),
        ({"identical": {"window_warn": 8}}, "window_warn = 8 is above identical.window_terminate = 7"),
    ],
)
def test_a_limit_that_its_window_could_never_reach_is_refused(values, told):
    """A limit that cannot be reached is a mistake, not a way to turn a rule off."""
    with pytest.raises(InvalidLimits, match=told):
        limits_from([("file", values)])


def test_defaults_are_the_specifications():
    """The numbers that the documents promise."""
    limits = Limits()
    assert (limits.identical.warn, limits.identical.terminate) == (3, 5)
    assert (limits.error_streak.warn, limits.error_streak.terminate) == (8, 15)
    assert (limits.alternation.warn, limits.alternation.terminate) == (3, 5)
    assert limits.mode == "enforce"


def test_defaults_of_the_behaviour_rules_are_the_specifications():
    """Categories, looks and rereads as the documents have them; no budgets."""
    limits = Limits()
    group = limits.category
    assert (group.explore_warn, group.explore_terminate) == (100, 200)
    assert (group.act_warn, group.act_terminate) == (50, 100)
    assert (group.plan_warn, group.plan_terminate) == (30, 60)
    assert (group.other_warn, group.other_terminate) == (50, 100)
    assert (group.execute_terminate, group.execute_write_terminate) == (100, 60)
    assert limits.analysis.roles == {"code": 5, "debugger": 6, "orchestrator": 7, "explore": 10}
    assert (limits.rereads.notice, limits.rereads.new_share, limits.analysis.interventions) == (3, 0.1, 2)
    budget = limits.budget
    assert [budget.calls, budget.turns, budget.tokens, budget.cost_usd, budget.wall_s] == [0] * 5
    assert (budget.soft_share, limits.decision.rearm_after) == (0.8, 20)
