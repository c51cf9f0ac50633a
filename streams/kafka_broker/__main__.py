"""`python -m streams.kafka_broker` fetches and checks Kafka's jars ahead of the first start, into the user's cache."""

import sys

from streams.kafka_broker.errors import BrokerError
from streams.kafka_broker.jars import class_path, default_cache

if __name__ == "__main__":
    try:
        class_path(default_cache(), tell=lambda text: sys.stderr.write(f"{text}\n"))
    except BrokerError as problem:
        sys.exit(str(problem))
