#!/opt/traction/bin/python
"""Says by its exit code whether the process of this container is alive: for Docker, which can only start programs.

It asks `/healthz` on the ports that the processes have by default, or on those that it is given, and changes nothing.
Pages that are encrypted are not asked: let the orchestrator probe them.
"""

from __future__ import annotations

import http.client
import sys

PORTS = (9401, 9402, 9403, 8321)
"""Of `traction worker`, `escalate`, `bridge` and `ingest`."""

SECONDS = 4.0
"""For an answer: less than the Dockerfile's timeout."""


def alive(port: int) -> bool | None:
    """Tell what the page on a port says; None when there is none."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == http.client.OK
    except ConnectionRefusedError:
        return None
    except (OSError, http.client.HTTPException):  # it listens, and does not answer
        return False
    finally:
        connection.close()


def main(words: list[str]) -> int:
    """Give 0 when there are pages and all of them say so, else 1."""
    said = [found for port in (map(int, words) if words else PORTS) if (found := alive(port)) is not None]
    return 0 if said and all(said) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
