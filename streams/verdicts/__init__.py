"""What directives and terminations mean to one session at this moment: go on, take this text, not this call, stop.

`Verdicts` is the pure table, `Verdict` what agents are told; `streams.verdicts.live` keeps a table up to date from
Kafka, and is imported by itself, since agents need no Kafka client. Nothing here decides about loops: that was done by
whoever wrote the directive or termination.
"""

from streams.verdicts.model import GO_ON, CallKey, Verdict, call_key
from streams.verdicts.table import Verdicts

__all__ = ["GO_ON", "CallKey", "Verdict", "Verdicts", "call_key"]
