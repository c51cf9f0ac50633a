"""`python -m streams.kafka_broker` fetches Kafka's jars ahead of the first start, and keeps what makes starts quick."""

import sys

from streams.kafka_broker.archive import make
from streams.kafka_broker.errors import BrokerError
from streams.kafka_broker.jars import default_cache

if __name__ == "__main__":
    try:
        make(default_cache(), tell=lambda text: sys.stderr.write(f"{text}\n"))
    except BrokerError as problem:
        sys.exit(str(problem))
    except KeyboardInterrupt:
        sys.exit(130)
