"""Runs the `traction` command so that a signal makes it die or freeze with a transaction in flight.

    python -m tests.torture.armed [--unfenced] POINT worker ...

SIGUSR1 has the process kill itself when it next comes to the point, SIGUSR2 has it freeze there. At `sent` the offsets
of a transaction are with the brokers, its records too or on their way, and its commit is missing; at `decided` all is
decided and the brokers know nothing of it, nor is any other transaction of the process open: what is open holds up all
readers of committed records until it times out, where no successor fences its owner. With `--unfenced` each process has
transactional ids of its own, so that no later owner of a partition fences it. What is to be forgotten
and was taken over from another process is removed sooner. Everything else is the product as it is.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import weakref
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.producer.transaction_manager import TransactionState

from streams.worker import sweep
from traction import main

POINTS = {"sent": "send_offsets_to_transaction", "decided": "begin_transaction"}


def arm(point: str) -> None:
    """Have a signal kill or freeze this process at a point."""
    wanted: list[int] = []

    def asked(number: int, _: object) -> None:
        wanted[:] = [signal.SIGKILL if number == signal.SIGUSR1 else signal.SIGSTOP]

    signal.signal(signal.SIGUSR1, asked)
    signal.signal(signal.SIGUSR2, asked)
    original = getattr(AIOKafkaProducer, POINTS[point])
    producers = weakref.WeakSet[Any]()

    async def patched(self: Any, *args: Any, **kwargs: Any) -> Any:
        producers.add(self)
        if point == "decided" and wanted and not any(map(busy, producers)):
            os.kill(os.getpid(), wanted.pop())
        found = await original(self, *args, **kwargs)
        if point == "sent" and wanted:
            os.kill(os.getpid(), wanted.pop())
        return found

    setattr(AIOKafkaProducer, POINTS[point], patched)


def busy(producer: Any) -> bool:
    """Tell whether a producer's transaction is open."""
    return producer._txn_manager.state in {TransactionState.IN_TRANSACTION, TransactionState.COMMITTING_TRANSACTION}


def tether() -> None:
    """Have this process die with the one that started it (Linux: PR_SET_PDEATHSIG): a frozen one would stay."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def unfence() -> None:
    """Give each process transactional ids of its own."""
    original: Any = AIOKafkaProducer.__init__

    def patched(self: Any, *args: Any, transactional_id: str | None = None, **kwargs: Any) -> None:
        own = None if transactional_id is None else f"{transactional_id}-{os.getpid()}"
        original(self, *args, transactional_id=own, **kwargs)

    setattr(AIOKafkaProducer, "__init__", patched)  # noqa: B010 - a method may not be assigned otherwise


if __name__ == "__main__":
    tether()
    sweep.TAKEN_OVER_SECONDS = 2.0  # a run need not last the minute longer
    arguments = sys.argv[1:]
    if arguments[0] == "--unfenced":
        unfence()
        del arguments[0]
    arm(arguments.pop(0))
    sys.argv = ["traction", *arguments]
    main()
