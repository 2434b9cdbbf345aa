"""The base view of this app's resources: the general contract, plus the owner and the audit of reads."""

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, ParamSpec

from rest_framework.exceptions import ValidationError
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.permissions import check_named_conversations
from memory.audit import is_verbose
from memory.owner import GLOBAL_CHANNEL, Owner
from memory.services.audit import record_read, records_reads
from memory.services.custody.marks import refuse_erased_user
from memory_project.http.views import ServiceViewSet

logger = logging.getLogger(__name__)

P = ParamSpec("P")


class FollowUpResponse(Response):
    """A response after which work remains that the client need not wait for.

    `follow_up` runs once, when the server has sent the response and closes it: on the request's thread and connection,
    outside its transactions. An exception there is logged, because no one is left to receive it.
    """

    def __init__(self, data: Any, *, follow_up: Callable[[], object]) -> None:
        super().__init__(data)
        self._follow_up: Callable[[], object] | None = follow_up

    def close(self) -> None:
        follow_up, self._follow_up = self._follow_up, None
        try:
            if follow_up is not None:
                follow_up()
        except Exception:
            logger.exception("The work after a response failed")
        finally:
            super().close()


class OwnerViewSet(ServiceViewSet):
    """Makes the owner that services take from the credential and the body or query.

    Successful GETs go to the audit log where it keeps reads. Exempt are the actions in `not_audited`: their service
    records them, or they show no memories.
    """

    not_audited: ClassVar[frozenset[str]] = frozenset()
    _owner: Owner | None = None

    def owner(self, data: Mapping[str, Any] | None = None) -> Owner:
        """Return the owner, from a checked body or query with (some of) OwnerFields.

        Raises a 403 problem when the key is bound to another agent or user. A key that is bound to a user must name an
        agent (else a 400 problem), and only conversations of this user. A key that is bound to an agent names only
        conversations in which it takes part, and new ones. Raises Conflict for a user that was erased.
        """
        named = data or {}
        credential = self.credential
        self._owner = Owner(
            account_id=credential.account_id,
            agent_id=credential.acting_agent(named.get("agent_id", "")),
            user_id=credential.acting_user(named.get("user_id", "")),
            limited_to_user=bool(credential.user_id),
            limited_to_conversations=bool(credential.agent_id),
            channel=named.get("channel", GLOBAL_CHANNEL),
            actor=credential.actor,
            audit_level=credential.audit_level,
            marks_secrets=credential.secrets == "mark",
        )
        if credential.has_erasures:
            refuse_erased_user(credential.account_id, self._owner.user_id)
        if self._owner.limited_to_user and not self._owner.agent_id:
            raise ValidationError({"agent_id": ["Name the acting agent: a key of a user never acts for the account."]})
        # those of a query were checked by the permission
        if self.request.method not in SAFE_METHODS:
            check_named_conversations(self._owner, named, must_exist=False)
        return self._owner

    def body_and_owner(self) -> tuple[dict[str, Any], Owner]:
        """Return the checked body, and the owner that it names."""
        body = self.body()
        return body, self.owner(body)

    def agent_owner(self, data: Mapping[str, Any]) -> Owner:
        """Return the owner of something that only an agent can have.

        Raises a 400 problem when neither the key nor the request names an agent.
        """
        owner = self.owner(data)
        if not owner.agent_id:
            raise ValidationError({"agent_id": ["Name the acting agent: this key is not bound to one."]})
        return owner

    def answer_row(self, row: Any) -> Response:
        """Answer one row as this view's actions do."""
        return self.respond(row)

    def write_row(self, write: Callable[P, Any], *args: P.args, **kwargs: P.kwargs) -> Response:
        """Call a service that writes one row, in `write_once`, and answer the row."""
        return self.write_once(lambda: self.answer_row(write(*args, **kwargs)))

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Response:
        final = super().finalize_response(request, response, *args, **kwargs)
        if request.method == "GET" and final.status_code == 200 and self._owner is not None:
            try:
                self._audit_read(self._owner, final)
            except Exception:
                logger.exception("A read could not be written to the audit log")
        return final

    def _audit_read(self, owner: Owner, answer: Response) -> None:
        if self.action in self.not_audited or not records_reads(owner):
            return
        conversation_id = self.kwargs.get("conversation_id", "")
        shown = self._shown_rows(answer.data)
        record_read(
            owner,
            memory_type=audited_memory_type(type(self)),
            affected_ids=[str(row["id"]) for row in shown] or [str(each) for each in self.kwargs.values()],
            result_count=len(shown) if self.action in self.pages else None,
            conversation_id=conversation_id,
            session_id=conversation_id,
            metadata={"query": self.request.query_params.dict()} if is_verbose(owner) else {},
        )

    def _shown_rows(self, data: Any) -> Sequence[Mapping[str, Any]]:
        """Return the rows whose `id` is a primary key. In other objects the client chose the names of the members."""
        if "id" not in getattr(self.answer_of(self.action), "_declared_fields", ()):
            return []
        rows: Sequence[Mapping[str, Any]] = data["results"] if self.action in self.pages else [data]
        return rows


class VersionedViewSet(OwnerViewSet):
    """Base of views that answer a row with its ETag."""

    def answer_row(self, row: Any) -> Response:
        return self.respond_with_etag(row)


def audited_memory_type(view: type) -> str:
    """Return the audit log's name for what a view shows: `turn_records` for TurnRecords."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", view.__name__).lower()
