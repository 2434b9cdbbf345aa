"""The view of this app's resources: the general contract, and the owner."""

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from memory.audit import is_verbose
from memory.owner import GLOBAL_CHANNEL, Owner
from memory.services.audit.log import keeps_reads, record_read
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
    """Turns who calls, and what the body or the query says, into the owner that services take.

    What a GET shows is told to the audit log, where it keeps reads, but for actions in `unrecorded`: their service
    tells it, or what they show is no memory.
    """

    unrecorded: ClassVar[frozenset[str]] = frozenset()
    _owner: Owner | None = None

    def owner(self, data: Mapping[str, Any] | None = None) -> Owner:
        """`data` is a checked body or query with (some of) OwnerFields.

        Raises a 403 problem when the key is bound to another agent.
        """
        named = data or {}
        credential = self.credential
        self._owner = Owner(
            account_id=credential.account_id,
            agent_id=credential.acting_agent(named.get("agent_id", "")),
            user_id=named.get("user_id", ""),
            channel=named.get("channel", GLOBAL_CHANNEL),
            actor=credential.actor,
            audit_level=credential.audit_level,
        )
        return self._owner

    def agent_owner(self, data: Mapping[str, Any]) -> Owner:
        """The owner, for what only an agent can have. Raises a 400 problem when neither key nor request names one."""
        owner = self.owner(data)
        if not owner.agent_id:
            raise ValidationError({"agent_id": ["This field is required: the key is bound to no agent."]})
        return owner

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Response:
        final = super().finalize_response(request, response, *args, **kwargs)
        if request.method == "GET" and final.status_code == 200 and self._owner is not None:
            try:
                self._tell_read(self._owner, final)
            except Exception:
                logger.exception("a read was not told to the audit log")
        return final

    def _tell_read(self, owner: Owner, answer: Response) -> None:
        if self.action in self.unrecorded or not keeps_reads(owner):
            return
        conversation_id = self.kwargs.get("conversation_id", "")
        shown = self._rows_shown(answer.data)
        record_read(
            owner,
            memory_type=noun_of(type(self)),
            affected_ids=[str(row["id"]) for row in shown] or [str(each) for each in self.kwargs.values()],
            result_count=len(shown) if self.action in self.pages else None,
            conversation_id=conversation_id,
            session_id=conversation_id,
            metadata={"query": self.request.query_params.dict()} if is_verbose(owner) else {},
        )

    def _rows_shown(self, data: Any) -> Sequence[Mapping[str, Any]]:
        """Those that have an id of ours: other objects may be the client's, whose names say nothing."""
        if "id" not in getattr(self.answers.get(self.action), "_declared_fields", ()):
            return []
        rows: Sequence[Mapping[str, Any]] = data["results"] if self.action in self.pages else [data]
        return rows


def noun_of(view: type) -> str:
    """What the audit log calls what a view shows: `turn_records` of TurnRecords."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", view.__name__).lower()
