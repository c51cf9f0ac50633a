"""Learns the weights of the spin score from recorded sessions that a person has labelled.

`examples` measures the calls of a session, `collecting` those of all labelled ones, `fitting` learns from them;
`figures` shows it. The library that `fitting` needs is needed for nothing else. Prints nothing.
"""

from streams.training.collecting import Collected, collect
from streams.training.examples import Examples, measure_session
from streams.training.figures import figures, lines
from streams.training.fitting import LIBRARY_MISSING, Untrainable, check_library, fit, fit_model

__all__ = [
    "LIBRARY_MISSING",
    "Collected",
    "Examples",
    "Untrainable",
    "check_library",
    "collect",
    "figures",
    "fit",
    "fit_model",
    "lines",
    "measure_session",
]
