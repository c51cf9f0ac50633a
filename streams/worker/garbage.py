"""Spares the garbage collector the states in memory: millions of objects, and no cycle among them.

States are trees, which reference counts free. Looked through by every full collection they stopped a worker with
100,000 of them for seconds, and cost up to half of its time where states come and go. What ends as a cycle is young
(exceptions and futures of connections), and is still found. Nothing here knows what a state is.
"""

from __future__ import annotations

import gc

NEVER = 2**31 - 1
"""A threshold that is not reached."""


def spare() -> None:
    """Collect what is garbage now, look at nothing of what is left again, and make no full collection by itself.

    To be called whenever few states are in memory, as after a rebalance: it goes through all that there is, which also
    finds what became a cycle late. Python 3.14 collects in small steps, whatever is said of full collections.
    """
    youngest, young, _ = gc.get_threshold()
    gc.set_threshold(youngest, young, NEVER)
    gc.unfreeze()
    gc.collect()
    gc.freeze()
