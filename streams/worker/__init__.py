"""The worker: reads sessions' events in batches, applies the detectors, and writes alerts exactly once.

Faust gives the group, the assignment and the recovery of the table; everything that a partition puts out leaves in
Kafka transactions of its own. What a detector decides is not decided here.
"""
