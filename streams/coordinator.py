"""How the answer on a group's committed offsets is read, where aiokafka 0.14 takes a refusal for "there are none".

Since version 2 of that answer what concerns the group as a whole stands once, beside an empty list of partitions: that
the coordinator still loads the group, or is another broker. aiokafka reads the list only, so that a group is read from
its very start while a broker comes back. It must not decide where reading begins.

Importing this module puts its class in place of aiokafka's, for every consumer of the process, Faust's included.
"""

from __future__ import annotations

from typing import Any

from aiokafka.consumer import consumer
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.errors import NoError, NotCoordinatorForGroupError, for_code
from aiokafka.protocol.commit import OffsetFetchRequest


class Coordinator(GroupCoordinator):  # type: ignore[misc]  # published without types
    """The group's coordinator as a consumer sees it; what it refuses is raised, and aiokafka asks again."""

    async def _send_req(self, request: Any) -> Any:
        response = await super()._send_req(request)
        if isinstance(request, OffsetFetchRequest):
            problem = for_code(getattr(response, "error_code", NoError.errno))
            if problem is not NoError:
                if problem is NotCoordinatorForGroupError:
                    self.coordinator_dead()
                raise problem(self.group_id)
        return response


consumer.GroupCoordinator = Coordinator
