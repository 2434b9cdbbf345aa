"""The view of this app's resources: the general contract, and the owner."""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from rest_framework.exceptions import ValidationError
from rest_framework.response import Response

from memory.owner import GLOBAL_CHANNEL, Owner
from memory_project.http.views import ServiceViewSet

logger = logging.getLogger(__name__)


class ConcludedResponse(Response):
    """An answer after which something is left to do that nobody shall wait for.

    `conclude` runs once, when the server has sent the answer and closes it: on the request's own thread and connection,
    before that goes back to its pool. It runs in no transaction of the request. What fails there is logged, since
    nobody is left to be told.
    """

    def __init__(self, data: Any, *, conclude: Callable[[], object]) -> None:
        super().__init__(data)
        self._conclude: Callable[[], object] | None = conclude

    def close(self) -> None:
        conclude, self._conclude = self._conclude, None
        try:
            if conclude is not None:
                conclude()
        except Exception:
            logger.exception("what was to follow an answer failed")
        finally:
            super().close()


class OwnerViewSet(ServiceViewSet):
    """Turns who calls, and what the body or the query says, into the owner that services take."""

    def owner(self, data: Mapping[str, Any] | None = None) -> Owner:
        """`data` is a checked body or query with (some of) OwnerFields.

        Raises a 403 problem when the key is bound to another agent.
        """
        named = data or {}
        credential = self.credential
        return Owner(
            account_id=credential.account_id,
            agent_id=credential.acting_agent(named.get("agent_id", "")),
            user_id=named.get("user_id", ""),
            channel=named.get("channel", GLOBAL_CHANNEL),
            actor=credential.actor,
        )

    def agent_owner(self, data: Mapping[str, Any]) -> Owner:
        """The owner, for what only an agent can have. Raises a 400 problem when neither key nor request names one."""
        owner = self.owner(data)
        if not owner.agent_id:
            raise ValidationError({"agent_id": ["This field is required: the key is bound to no agent."]})
        return owner
