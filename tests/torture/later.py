"""What is said when the load is over: answers, in between everything else that comes; and what is waited for at last.

It reads the ledger, and writes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from schemas import topics
from schemas.decode import decode
from schemas.encode import encode
from schemas.outputs import Termination
from schemas.testing import control
from streams.escalation.state import decode_ladder
from streams.topics import ladders_name
from tests.torture import ladders
from tests.torture.load import Item

if TYPE_CHECKING:
    import random
    from collections.abc import Container, Iterator

    import msgspec

    from schemas.topics import Topic
    from tests.torture.forgetting import Forgetter
    from tests.torture.ledger import Ledger


def read(ledger: Ledger, topic: Topic) -> Iterator[msgspec.Struct]:
    """Read what is on a topic of the contract."""
    for record in ledger.records[ledger.place.kafka.topic(topic)]:
        yield decode(topic, record.value, record.headers)


def answers(ledger: Ledger, forgotten: Container[str]) -> Iterator[Item]:
    """Give answers to two thirds of the terminations: that they are obeyed, and that they are refused.

    Of sessions that were forgotten nothing is said, since that would begin them anew.
    """
    ids = {each.termination_id: each for each in read(ledger, topics.TERMINATIONS) if isinstance(each, Termination)}
    for number, asked in enumerate(ids[name] for name in sorted(ids)):
        action = ("obeyed", "refused", "")[number % 3]
        if action and asked.session_id not in forgotten:
            name = f"{ladders.ANSWER}{asked.termination_id}"
            said = control(86_400, action, session_id=asked.session_id, answers=asked.termination_id, event_id=name)
            yield Item(topics.CONTROL.name, asked.session_id.encode(), encode(said))


def due(ledger: Ledger, forgetter: Forgetter) -> Iterator[str]:
    """Say what is still to be done when nothing comes any more: ladders that wait, and what is to be forgotten."""
    for record in ledger.latest[ladders_name(ledger.place.group)].values():
        if record.value is not None:
            ladder = decode_ladder(record.value)
            if any(climb.pending for climb in ladder.climbs.values()):
                yield f"the ladder of {ladder.task_id} waits for an answer"
    yield from forgetter.left()


def mixed(parts: list[Iterator[Item]], chance: random.Random) -> Iterator[Item]:
    """Give records of several parts at random; each keeps its order."""
    left = list(parts)
    while left:
        part = chance.choice(left)
        item = next(part, None)
        if item is None:
            left.remove(part)
        else:
            yield item
