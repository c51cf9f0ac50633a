"""The default catalogue classifies the tools of common agents, and a user's entries go before it."""

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detectors.catalogue import Tools
from detectors.tools import plain_name
from detectors.use import KINDS
from tests.detectors.reading import json_values

TOOLS = Tools()

AGENTS = {
    "Claude Code": {
        "read": "Read LS NotebookRead ReadMcpResourceTool ListMcpResourcesTool WebFetch Skill",
        "search": "Glob Grep WebSearch ToolSearch",
        "edit": "Edit MultiEdit NotebookEdit Write KillShell TaskStop",
        "shell": "Bash PowerShell",
        "poll": "BashOutput TaskOutput TaskGet Monitor",
        "plan": "TodoRead TodoWrite TaskCreate TaskUpdate EnterPlanMode ExitPlanMode",
        "talk": "AskUserQuestion SendMessage StructuredOutput",
        "other": "Agent SlashCommand Task",
    },
    "Codex": {
        "read": "view_image list_dir read_file list_mcp_resources read_mcp_resource",
        "search": "web_search grep_files",
        "edit": "apply_patch",
        "shell": "shell local_shell shell_command exec_command write_stdin unified_exec container.exec",
        "run": "js_repl",
        "poll": "wait wait_agent",
        "plan": "update_plan",
        "talk": "request_user_input",
        "other": "spawn_agent send_input close_agent",
    },
    "OpenHands": {
        "read": "read web_read browser_get_state browser_get_content fetch",
        "edit": "str_replace_editor file_editor edit_file write edit",
        "shell": "execute_bash run terminal",
        "run": "run_ipython execute_ipython_cell",
        "plan": "think task_tracker recall",
        "interact": "browse browse_interactive browser browser_navigate browser_click browser_type browser_scroll "
        "browser_go_back browser_switch_tab browser_close_tab",
        "talk": "finish message",
        "other": "delegate",
    },
    "SWE-agent": {
        "read": "open filemap view_image decompile disassemble",
        "search": "find_file search_dir search_file",
        "edit": "create edit insert str_replace_editor undo_edit",
        "shell": "bash",
        "run": "connect_start connect_sendline debug_start debug_continue",
        "interact": "goto scroll_down scroll_up",
        "talk": "submit",
    },
    "Gemini CLI and Qwen Code": {
        "read": "read_file read_many_files list_directory web_fetch get_internal_docs activate_skill",
        "search": "glob search_file_content grep_search google_web_search",
        "edit": "replace write_file",
        "shell": "run_shell_command",
        "plan": "save_memory write_todos exit_plan_mode todo_write",
        "talk": "ask_user complete_task",
        "other": "codebase_investigator delegate_to_agent task",
    },
    "Cline, Roo Code and Kilo": {
        "read": "read_file list_files list_code_definition_names access_mcp_resource fetch_instructions",
        "search": "search_files codebase_search",
        "edit": "write_to_file replace_in_file apply_diff insert_content search_and_replace delete_file",
        "shell": "execute_command",
        "poll": "read_command_output",
        "plan": "new_task switch_mode update_todo_list condense",
        "interact": "browser_action",
        "talk": "ask_followup_question attempt_completion plan_mode_respond act_mode_respond",
        "other": "use_mcp_tool run_slash_command",
    },
    "Cursor": {
        "read": "read_file list_dir fetch_rules diff_history fetch_pull_request readToolCall lsToolCall",
        "search": "codebase_search grep_search file_search glob_file_search web_search",
        "edit": "edit_file search_replace write delete_file reapply edit_notebook editToolCall",
        "shell": "run_terminal_cmd shellToolCall",
        "check": "read_lints",
        "plan": "todo_write update_memory",
    },
    "opencode, crush, goose": {
        "read": "read list view ls webfetch agentic_fetch image_processor tree analyze",
        "search": "grep glob sourcegraph websearch codesearch",
        "edit": "edit write patch multiedit download text_editor",
        "shell": "bash developer__shell",
        "check": "diagnostics lsp_diagnostics",
        "poll": "job_output",
        "plan": "todowrite todoread todos remember_memory",
        "interact": "screen_capture computer_control",
        "talk": "question final_output",
        "other": "task agent batch subagent",
    },
    "Copilot": {
        "read": "read_file list_dir list_code_usages get_changed_files fetch_webpage",
        "search": "file_search grep_search semantic_search github_repo test_search",
        "edit": "insert_edit_into_file replace_string_in_file multi_replace_string_in_file create_file "
        "create_directory edit_notebook_file install_extension",
        "shell": "run_in_terminal write_bash",
        "run": "run_task run_notebook_cell",
        "check": "get_errors runTests test_failure",
        "poll": "get_terminal_output get_task_output read_bash",
        "plan": "manage_todo_list think report_intent store_memory",
        "interact": "open_simple_browser",
    },
    "Windsurf": {
        "read": "view_file view_code_item read_url_content",
        "search": "find_by_name search_web trajectory_search",
        "edit": "write_to_file replace_file_content propose_code",
        "shell": "run_command send_command_input",
        "poll": "command_status check_deploy_status read_terminal",
        "plan": "create_memory todo_list",
        "talk": "suggested_responses notify_user",
    },
    "editors of other agents": {
        "read": "look_at fs_read file_read",
        "search": "codebase-retrieval finder grepSearch info_search_web",
        "edit": "str-replace-editor save-file fs_write strReplace str_replace_based_edit_tool file_str_replace",
        "shell": "launch-process write-process executeBash shell_exec interact_with_process start_process",
        "poll": "read-process shell_wait list-processes",
        "plan": "remember update_tasks sequentialthinking",
        "talk": "task_done message_ask_user idle",
    },
    "browsers": {
        "read": "extract_content browser_console_messages browser_network_requests get_page_text list_pages",
        "run": "browser_evaluate evaluate_script javascript_tool",
        "poll": "wait browser_wait_for wait_for noop",
        "interact": "click click_element_by_index fill hover type press scroll goto go_to_url go_back go_forward "
        "new_tab close_tab tab_close tab_focus switch_tab open_tab select_option drag_and_drop keyboard_press "
        "mouse_click navigate input_text send_keys browser_snapshot browser_tabs browser_take_screenshot "
        "puppeteer_fill handle_dialog close_page find_element web_surfer",
        "talk": "send_msg_to_user report_infeasible stop done",
    },
    "desktops and phones": {
        "interact": "computer computer_use computer_20241022 pyautogui.click screenshot left_click double_click press "
        "hotkey move_to tap swipe long_press open_app press_home",
        "talk": "finished call_user",
    },
    "search agents": {
        "read": "fetch open_url visit read_page visit_webpage tavily_extract firecrawl_scrape",
        "search": "web_search search google_search brave_web_search perplexity_ask wikipedia browser.search",
        "run": "python_interpreter",
        "talk": "final_answer",
    },
    "services": {
        "read": "get_issue list_commits fetch_page read_resource issue_read pull_request_read describe_table "
        "get_order_details get_current_time kubectl_get list_all_product_types check_availability",
        "search": "search_code query_database run_query execute_sql sql_db_query find_user_id_by_email "
        "resolve_library_id",
        "edit": "create_issue update_issue delete_branch send_email book_flight issue_write add_comment push_files "
        "merge_pull_request cancel_pending_order exchange_delivered_order_items update_order_status",
        "run": "convert_time calculate",
        "check": "run_speed_test trigger_build validate_schema",
        "poll": "get_order_status check_status wait_for_build get_job_progress",
        "plan": "create_note write_memory",
        "talk": "slack_post_message reply_to_thread transfer_to_human_agents",
    },
    "simulations": {
        "read": "look examine inventory look_around",
        "interact": "go_to take put move use heat cool clean slice toggle act step",
    },
    "nothing that is known": {"other": "frobnicate do_it x"},
}


@pytest.mark.parametrize(
    ("tool", "kind"),
    [(tool, kind) for kinds in AGENTS.values() for kind, tools in kinds.items() for tool in tools.split()],
)
def test_tools_of_agents(tool, kind):
    """Names of agents' tools, listed or by their words, whatever server they are of and however they are spelt."""
    command = {"command": "pytest"} if kind == "shell" else {}
    for spelt in (tool, f"mcp__server__{tool}", f"functions.{tool}"):
        use = TOOLS.use(plain_name(spelt), command)
        assert use.kind == ("check" if kind == "shell" else kind)
        assert use.program == ("pytest" if kind == "shell" else plain_name(tool))
        assert use.changes == (kind == "edit")
        assert use.executes == (kind in {"shell", "run", "check"})


@pytest.mark.parametrize(
    ("tool", "arguments", "kind"),
    [
        ("str_replace_editor", {"command": "view", "path": "a"}, "read"),
        ("str_replace_editor", {"command": "create", "path": "a"}, "edit"),
        ("str_replace_editor", {"command": "undo_edit", "path": "a"}, "edit"),
        ("text_editor", {"command": "view", "path": "a"}, "read"),
        ("json_edit_tool", {"operation": "view"}, "read"),
        ("computer", {"action": "screenshot"}, "interact"),
        ("computer", {"action": "wait"}, "poll"),
        ("computer", {"action": {"type": "click", "x": 1}}, "interact"),
        ("computer", {"action": "CLICK"}, "interact"),
        ("mobile", {"action": "left_click(start_box='(1,2)')"}, "interact"),
        ("desktop_env", {"action": "pyautogui.click(1, 2)"}, "interact"),
        ("browser_action", {"action": "launch", "url": "http://x"}, "interact"),
        ("environment", {"action": "go to fridge 1"}, "interact"),
        ("environment", {"action": "look"}, "read"),
        ("process", {"action": "poll", "sessionId": "x"}, "poll"),
        ("process", {"action": "kill", "sessionId": "x"}, "edit"),
        ("memory", {"command": "create", "path": "a"}, "plan"),
        ("create", {"action": "get_seed.py"}, "edit"),
        ("create", {"action": "look.py"}, "edit"),
        ("update_issue", {"action": "whatever it takes"}, "edit"),
        ("execute_sql", {"query": "SELECT a FROM t"}, "search"),
        ("execute_sql", {"query": "UPDATE t SET a = 1"}, "edit"),
        ("environment", "go to fridge 1", "interact"),
    ],
)
def test_tools_with_several_actions(tool, arguments, kind):
    """An argument says which action it is; words that only begin like one do not, and a plan stays a plan."""
    use = TOOLS.use(plain_name(tool), arguments)
    assert (use.kind, use.changes) == (kind, kind == "edit")


@pytest.mark.parametrize(
    ("tool", "arguments", "kind", "program"),
    [
        ("bash", {"command": "git status"}, "read", "git"),
        ("bash", "git status", "read", "git"),
        ("shell", {"command": ["bash", "-lc", "git status"]}, "read", "git"),
        ("run_command", {"CommandLine": "git status", "Cwd": "/w"}, "read", "git"),
        ("swebench_execute_bash", {"command": "git status"}, "read", "git"),
        ("terminal", {"keystrokes": "git status\n"}, "read", "git"),
        ("Computer_terminal", {"message": "Let us see:\n```sh\ngit status\n```\n"}, "read", "git"),
        ("Computer_terminal", {"message": "```python\nopen('a', 'w')\n```"}, "run", "python"),
        ("do_it", {"command": "git status"}, "read", "git"),
        ("do_it", {"cmd": ["git", "status"]}, "read", "git"),
        ("sandbox_run", {"command": "git status"}, "read", "git"),
        ("do_it", {"command": "view"}, "read", "do_it"),
        ("execute", {"code": "print(1)"}, "run", "execute"),
        ("bash", {"command": ""}, "poll", "bash"),
        ("bash", {"action": "wait"}, "poll", "bash"),
        ("bash", None, "run", "bash"),
        ("write_stdin", {"session_id": 1, "chars": ""}, "poll", "write_stdin"),
        ("write_stdin", {"session_id": 1, "chars": "git status\n"}, "read", "git"),
        ("python", {"action": "tests/test_a.py"}, "check", "python"),
        ("python", "a.py --flag", "run", "python"),
        ("python", "print('a.py')", "run", "python"),
        ("python3", {"action": "a.py"}, "run", "python"),
        ("curl", {"action": "http://x"}, "read", "curl"),
        ("rm", {"action": "a.py"}, "edit", "rm"),
        ("strings", {"action": "a.bin | grep flag"}, "search", "grep"),
        ("cat", {"path": "a.py"}, "read", "cat"),
        ("grep", {"pattern": "x"}, "search", "grep"),
        ("run_ipython", {"code": "open_file('a.py')"}, "read", "open_file"),
        (
            "run_ipython",
            {"code": "edit_file_by_replace('a.py', to_replace='x', new_content='y')"},
            "edit",
            "edit_file_by_replace",
        ),
        ("run_ipython", {"code": "open('a.py')"}, "run", "run_ipython"),
        ("run_ipython", {"code": "!git status"}, "read", "git"),
        ("run_ipython", {"code": "%%bash\ngit status"}, "read", "git"),
        ("execute_python", {"command": "git = status"}, "run", "execute_python"),
        ("python", {"code": "import pyautogui\npyautogui.click(1, 2)"}, "interact", "python"),
    ],
)
def test_tools_that_execute(tool, arguments, kind, program):
    """What counts is the command, wherever it stands; program text runs; without either one waits."""
    use = TOOLS.use(plain_name(tool), arguments)
    assert (use.kind, use.program) == (kind, program)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("bash", {"c": "make deploy"}),
        ("terminal", {"cmdline": "make deploy"}),
        ("bash", {"params": {"command": "make deploy"}}),
        ("bash", {"params": {"keystrokes": "make deploy"}}),
        ("bash", {"params": {"c": "make deploy", "cwd": "/srv/app/deploy"}}),
        ("bash", {"params": {"c": "make deploy", "cwd": "/srv/app/deploy"}, "n": 3}),
        ("bash", {"commands": [{"command": "make deploy"}]}),
        ("bash", ["make", "deploy"]),
        ("bash", ["bash", "-lc", "make deploy"]),
        ("bash", {"args": ["make", "deploy"]}),
        ("bash", {"program": "make", "args": ["deploy"]}),
        ("bash", {"program": "make", "args": "deploy"}),
        ("bash", {"program": "make deploy"}),
        ("bash", {"query": "make deploy"}),
        ("bash", {"value": "make deploy"}),
        ("bash", {"body": "make deploy", "sessionId": "a-long-identifier", "timeout": "5"}),
    ],
)
def test_a_command_line_by_another_name_is_no_poll(tool, arguments):
    """What a shell tool was given to run is its command, whatever the tool calls it and however it wraps it."""
    assert TOOLS.use(tool, arguments) == TOOLS.use("bash", {"command": "make deploy"})
    assert TOOLS.use(tool, arguments).program == "make"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("bash", {}),
        ("bash", []),
        ("bash", {"timeout": 5}),
        ("bash", {"timeout": "5"}),
        ("bash", {"session_id": "x"}),
        ("bash", {"restart": True}),
        ("bash", {"c": ""}),
        ("bash", {"params": {"command": ""}}),
        ("bash", {"params": {"session_id": "x"}, "n": 3}),
        ("bash", {"command": "", "note": "see whether it is up"}),
        ("terminal", {"keystrokes": "", "note": "see whether it is up"}),
        ("write_stdin", {"session_id": 3, "chars": "", "yield": "soon"}),
        ("write_stdin", {"program": "make", "chars": ""}),
        ("shell_exec", {"id": "main", "exec_dir": "/home/agent"}),
        ("bash", {"commands": [{"n": 1}, 2]}),
    ],
)
def test_a_shell_without_a_command_line_is_looked_at(tool, arguments):
    """Arguments that say only which terminal it is, or how long to wait, run nothing; nor does an empty command."""
    assert TOOLS.use(tool, arguments).kind == "poll"


def test_program_text_that_writes_changes():
    """An edit by a program is a run that changes something."""
    assert TOOLS.use("execute_code", {"code": "open('a', 'w').write('x')"}).changes
    assert TOOLS.use("python", "with open('a', 'w') as file:\n    pass").changes
    assert not TOOLS.use("execute_code", {"code": "print(open('a').read())"}).changes


def test_the_default_entries_can_match():
    """Names are plain, their words single, actions and commands as they are looked up; nothing is said twice."""
    assert [name for name in TOOLS.names if name != plain_name(name)] == []
    assert [
        name for table in (TOOLS.labels, TOOLS.volatile) for name in table if name not in {"*", plain_name(name)}
    ] == []
    assert [word for word in TOOLS.words if not re.fullmatch("[a-z]+", word)] == []
    assert [action for action in TOOLS.actions if not re.fullmatch("[a-z]+(_[a-z]+){0,3}", action)] == []
    assert [name for name in TOOLS.shells if name in TOOLS.names] == []
    assert [command for command in TOOLS.commands if len(command.split()) > 4] == []
    assert {*TOOLS.names.values(), *TOOLS.words.values(), *TOOLS.actions.values(), *TOOLS.commands.values()} <= {*KINDS}


@pytest.mark.parametrize("table", ["names", "words", "actions", "commands"])
def test_each_entry_is_found(table):
    """Every entry of a table decides about at least one call: the one that is just it."""
    entries = getattr(TOOLS, table)
    for entry, kind in entries.items():
        if table == "names":
            assert TOOLS.use(entry, {}).kind == kind
        elif (
            table == "words" and entry not in TOOLS.names and entry not in TOOLS.shells and entry not in TOOLS.commands
        ):
            assert TOOLS.use(entry, {}).kind == kind, entry
        elif table == "actions":
            assert TOOLS.use("do_it", {"action": entry}).kind == kind
        elif table == "commands" and entry not in {"tee", *TOOLS.wrappers} and kind not in {"run", "other"}:
            assert TOOLS.use("bash", {"command": entry}).kind in {kind, "check"}, entry


def test_entries_of_users_go_before_the_defaults():
    """A name that a user lists wins over shells, words and actions; a command over its program."""
    tools = Tools(
        names={**TOOLS.names, "bash": "talk", "get_it": "edit"},
        commands={**TOOLS.commands, "git": "run", "deploy now": "check"},
        words={**TOOLS.words, "frobnicate": "search"},
        shells=("shell",),
    )
    assert tools.use("bash", {"command": "git status"}).kind == "talk"
    assert tools.use("get_it", {}).kind == "edit"
    assert tools.use("frobnicate_it", {}).kind == "search"
    assert tools.use("shell", {"command": "git status"}).kind == "run"
    assert tools.use("shell", {"command": "deploy now x"}).kind == "check"
    assert tools.use("terminal", {}).kind == "other"


def test_a_catalogue_survives_its_layers():
    """As plain data and back it says the same."""
    assert msgspec.convert(msgspec.to_builtins(TOOLS), Tools) == TOOLS


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"volatile": {"my_tool": ["("]}}, "volatile.my_tool"),
        ({"volatile": {"*": ["a", "[z-a]"]}}, r"\[z-a\]"),
        ({"volatile": {"my_tool": ["a*"]}}, "volatile.my_tool"),
        ({"commands": {"my  tool": "run"}}, "my  tool"),
        ({"commands": {"my_tool -": "run"}}, "my_tool -"),
        ({"wrappers": {"": 1}}, "wrappers"),
        ({"names": {"my_tool": "reading"}}, "reading"),
        ({"wrappers": {"my_tool": "one"}}, "int"),
        ({"unknown": {}}, "unknown"),
    ],
)
def test_entries_that_cannot_work_are_refused(values, said):
    """The message names the entry."""
    with pytest.raises(msgspec.ValidationError, match=said):
        msgspec.convert({**msgspec.to_builtins(TOOLS), **values}, Tools)


def test_labels():
    """Labels of all tools and those of the one."""
    tools = Tools(labels={"*": ("note",), "bash": ("description",)})
    assert tools.label_arguments("bash") == ("note", "description")
    assert tools.label_arguments("read") == ("note",)


@given(json_values | st.dictionaries(st.sampled_from(["c", "params", "program", "args", "id"]), json_values))
def test_no_arguments_make_a_shell_fail(arguments):
    """Whatever a shell tool is given, its use has a kind."""
    assert TOOLS.use("bash", arguments).kind in KINDS


@given(st.text(), st.none() | st.text() | st.dictionaries(st.sampled_from(["command", "action", "code"]), st.text()))
def test_no_call_makes_it_fail(tool, arguments):
    """Whatever a tool is called, and with whatever text, its use has a kind, and is the same the second time."""
    name = plain_name(tool)
    use = TOOLS.use(name, arguments)
    assert use.kind in KINDS
    assert TOOLS.use(name, arguments) == use
    assert not use.changes or use.executes or use.kind == "edit"
