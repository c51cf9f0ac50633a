"""Learns the weights of the spin score from recorded sessions that a person has labelled.

`examples` measures the calls of sessions, `fitting` learns from them; the library that it needs for that is needed for
nothing else. Prints nothing.
"""

from streams.training.examples import Examples, measure_session
from streams.training.fitting import LIBRARY_MISSING, Untrainable, fit

__all__ = ["LIBRARY_MISSING", "Examples", "Untrainable", "fit", "measure_session"]
