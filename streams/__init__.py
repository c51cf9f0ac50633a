"""Everything of Traction that touches Kafka or HTTP: the Faust worker, the escalation consumer, the command line.

Imports `schemas` and `detectors`; neither of these may import it.
"""
