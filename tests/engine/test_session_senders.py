"""What senders are told: errors by name, messages that are sent twice, wrong input."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato import LaneCleared, Ostinato, QueueDropped, RunState
from ostinato.errors import InvalidInput, NotFound
from ostinato.testing import drain
from tests.engine.chat import Chat


def test_a_sender_whose_message_is_pushed_out_is_told(app: Ostinato) -> None:
    chat = Chat(app)
    handles = [app.sessions.send("dm:42", number, task=chat.task, debounce=0, cap=2) for number in range(3)]
    with pytest.raises(QueueDropped, match=rf"run {handles[0].id} .*dm:42"):
        handles[0].wait(timeout=60)
    assert handles[0].get().state is RunState.SKIPPED
    drain(app)
    assert chat.heard == [[1], [2]]


def test_a_sender_is_told_that_the_lane_was_cleared(app: Ostinato) -> None:
    chat = Chat(app)
    handles = [app.sessions.send(f"dm:{number}", number, task=chat.task, debounce=0) for number in range(3)]
    assert app.lanes.clear("main") == 3
    for handle in handles:
        with pytest.raises(LaneCleared, match="main"):
            handle.wait(timeout=60)
        assert (handle.get().state, handle.get().reason) == (RunState.CANCELLED, "lane cleared")


def test_no_two_messages_share_a_key_by_accident(app: Ostinato) -> None:
    chat = Chat(app)
    sent = [
        app.sessions.send("team/ada", 1, task=chat.task, message_id="1", debounce=0),
        app.sessions.send("team", 2, task=chat.task, message_id="ada/1", debounce=0),
    ]
    keyed = chat.task.using(key="team/ada/1").enqueue([3])
    assert len({*(handle.id for handle in sent), keyed.id}) == 3
    drain(app)
    assert sorted(chat.heard) == [[1], [2], [3]]
    with pytest.raises(InvalidInput, match="used by messages of sessions"):
        chat.task.using(key=sent[0].get().key).enqueue([4])


def test_a_task_that_takes_no_payloads_is_refused_where_it_is_known(memory_app: Ostinato) -> None:
    wrong = memory_app.task("wrong")(lambda text: text)
    anything = memory_app.task("anything")(lambda **given: given)
    with pytest.raises(InvalidInput, match="takes no payloads"):
        memory_app.sessions.send("dm:42", 1, task=wrong)
    with pytest.raises(InvalidInput, match="takes no payloads"):
        memory_app.sessions.send("dm:42", 1, task="wrong")
    memory_app.sessions.send("dm:42", 1, task=anything, debounce=0)
    memory_app.sessions.send("dm:42", 1, task="of another node", debounce=0)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"mode": "shout"}, "mode"),
        ({"task": ""}, "task"),
        ({"task": None}, "task"),
        ({"task": len}, "task"),
        ({"message_id": ""}, "message_id"),
        ({"message_id": 7}, "message_id"),
        ({"message_id": "x" * 201}, "message_id"),
        ({"session": "dm:43"}, "session"),
        ({"debounce": "2d"}, "debounce"),
        ({"debounce": "2s", "debounce_max": "1s"}, "debounce_max"),
        ({"cap": 2**31}, "cap"),
        ({"payload": float("nan")}, "payload"),
        ({"drop": "all"}, "drop"),
        ({"cap": 0}, "cap"),
        ({"max_concurrent": 0}, "max_concurrent"),
        ({"debounce": "soon"}, "debounce"),
        ({"debounce_max": -1}, "debounce_max"),
        ({"key": ""}, "key"),
        ({"key": "schedule:nightly"}, "key"),
        ({"payload": object()}, "payload"),
        ({"priorty": 1}, "priorty"),
    ],
)
def test_wrong_input_is_told_by_its_field(memory_app: Ostinato, wrong: dict[str, Any], field: str) -> None:
    given: dict[str, Any] = {"key": "dm:42", "payload": 1, "task": "reply", **wrong}
    with pytest.raises(InvalidInput) as told:
        memory_app.sessions.send(**given)
    assert told.value.field == field
    assert memory_app.runs.list() == []


def test_a_session_that_nobody_used_is_not_found(memory_app: Ostinato) -> None:
    with pytest.raises(NotFound, match="nobody"):
        memory_app.sessions.get("nobody")
