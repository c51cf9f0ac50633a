"""Opens the store that the settings name, in memory or on disk, and says what is missing when that cannot be done.

RocksDB is an optional dependency, so it is imported only when it was asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streams.worker.states import MemoryStores

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from streams.worker.settings import WorkerSettings
    from streams.worker.states import Stores


class StoreError(Exception):
    """States cannot be stored: the message says why, and what to do."""


def open_stores(settings: WorkerSettings, fail: Callable[[str], NoReturn]) -> Stores:
    """Open the store.

    Args:
        settings: say which and where.
        fail: ends the process, when states cannot be read or written later on.

    Raises:
        StoreError: its package is not installed, or its directory cannot be used.
    """
    if settings.state_store == "memory":
        return MemoryStores()
    try:
        from streams.worker.rocks_stores import RocksStores  # noqa: PLC0415 - an optional dependency
    except ImportError as problem:
        raise StoreError(
            f"--state-store rocksdb needs a package that cannot be imported ({problem}): "
            'pip install "traction[rocksdb]"'
        ) from problem
    if settings.state_dir is None:
        raise StoreError("--state-store rocksdb needs a directory to keep its files in: give --state-dir")
    return RocksStores(settings.state_dir, settings.app_id, fail)
