"""Conversations in the form of OpenAI's Chat Completions, in the files in which people keep them."""

from __future__ import annotations

import pytest
from msgspec import UNSET

CALLS = [
    ("find_user", {"name": "Ann"}, "Error: user not found"),
    ("find_orders", {"name": "Ann"}, "[]"),
    ("find_user", {"email": "ann@example.com"}, '{"id": 7}'),
    ("ship", {}, UNSET),
]


@pytest.mark.parametrize("name", ["openai_messages.json", "openai_lines.jsonl", "openai_message_lines.jsonl"])
def test_wherever_the_messages_stand(name, sessions, calls):
    """A list under another name, a conversation a line and a message a line give the same calls."""
    longest = max(sessions(name), key=lambda session: session.calls)
    assert [(call.tool, call.arguments, call.result) for call in calls(longest)] == CALLS
    assert {call.status for call in calls(longest)} == {None}


def test_an_id_that_two_calls_share_identifies_none(sessions, calls):
    """Some servers repeat ids: both calls stay, each with its own answer, and neither is taken for the other."""
    found = calls(sessions("openai_messages.json")[0])
    assert [call.call_id for call in found] == [None, "call_y", None, "call_z"]
    assert len({call.event_id for call in found}) == 4


def test_parallel_calls_are_a_batch_and_users_speak(sessions, calls, kinds):
    """Calls of one message share a batch, and each user's turn is told."""
    session = sessions("openai_messages.json")[0]
    first, second, third, _ = calls(session)
    assert first.batch_id == second.batch_id != third.batch_id
    assert kinds(session) == ["user_message", "user_message"]


def test_several_conversations_have_names_of_their_own(sessions):
    """Task and trial name the conversations of one file."""
    names = [session.session_id.split("/", 1)[1] for session in sessions("openai_messages.json")]
    assert names == ["task0/trial1", "task3/trial0"]


def test_the_older_function_calls(sessions, calls):
    """`function_call` without an id is answered by role `function`."""
    (call,) = calls(sessions("openai_conversation.json")[0])
    assert (call.tool, call.arguments, call.result) == ("greet", {"who": "me"}, "hello")
    assert call.agent.model == "gpt-example"
