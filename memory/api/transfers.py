"""`/exports` and `/imports`: archives of an account, an agent or a user."""

from typing import Any, ClassVar
from uuid import UUID

from django.db import transaction
from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from django_filters import ChoiceFilter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.fields import Counts, QueryFlag
from memory.api.filters import RowFilter
from memory.api.views import OwnerViewSet
from memory.errors import Conflict, Forbidden
from memory.models import Transfer
from memory.owner import Owner
from memory.services.transfer.selection import TransferScope
from memory.services.transfer.transfers import (
    TRANSFER_JOB,
    find_newest_export,
    find_transfer,
    read_parts,
    request_export,
    request_import,
)
from memory.tasks import notify_job_worker
from memory_project.http.answers import AnswerSerializer, columns_of
from memory_project.http.serializers import ExternalId, Flag, StrictSerializer
from memory_project.http.streams import ZIP, read_body, report_full_disk, stream_slot


class ScopeFields(StrictSerializer):
    agent_id = ExternalId(required=False, help_text="Export what belongs to this agent.")
    user_id = ExternalId(required=False, help_text="Export what belongs to this user.")
    include_vectors = Flag(default=False, help_text="True to export embeddings as well. Otherwise they are made anew.")


class NewestQuery(StrictSerializer):
    agent_id = ExternalId(required=False, help_text="An archive of this agent.")
    user_id = ExternalId(required=False, help_text="An archive of this user.")
    include_vectors = QueryFlag(default=False, help_text="True for an archive with embeddings.")


class ImportQuery(StrictSerializer):
    dry_run = QueryFlag(default=False, help_text="True to only check the archive.")


class TransferAnswer(AnswerSerializer):
    columns = columns_of(Transfer, "id status requested_by requested_at started_at completed_at")
    expires_at = serializers.DateTimeField(
        allow_null=True, help_text="Time from which it is deleted. Null: not yet known."
    )
    size_bytes = serializers.IntegerField(help_text="Size of the archive. 0 until an export is completed.")
    digest = serializers.CharField(help_text="SHA-256 of the archive. Empty until an export is completed.")
    counts = Counts(help_text="Numbers of rows written or stored so far, by table.")
    error = serializers.CharField(help_text="Reason of a failure. Empty: none.")


class ExportAnswer(TransferAnswer):
    agent_id = serializers.CharField(help_text="Agent whose rows are exported. Empty: no limit.")
    user_id = serializers.CharField(help_text="User whose rows are exported. Empty: no limit.")
    include_vectors = serializers.BooleanField()


class ImportAnswer(TransferAnswer):
    dry_run = serializers.BooleanField()
    remaps = serializers.BooleanField(
        allow_null=True, help_text="True if rows get new ids, because another account uses theirs. Null: not yet known."
    )
    existing = Counts(help_text="Numbers of rows that the account has already, by table.")
    left_out = Counts(
        help_text="Numbers of rows that the account lacks and that were not stored, by table: they go with something "
        "that it has under another id."
    )


class TransferFilter(RowFilter):
    status = ChoiceFilter(choices=Transfer.Status.choices)


class TransferViewSet(OwnerViewSet):
    """Base of both. A key that is bound to an agent sees the exports of it alone."""

    direction: ClassVar[Transfer.Direction]
    not_audited = frozenset({"list", "retrieve", "download", "newest"})
    scopes = dict.fromkeys(("list", "retrieve", "create", "download", "newest"), "operate")
    filterset_class = TransferFilter
    queryset = Transfer.objects.none()

    def respond_transfers(self) -> Response:
        """Answer a page of what the key may see."""
        rows = Transfer.objects.in_account(self.credential.account_id).filter(direction=self.direction)
        return self.respond_page(rows.filter(**self.bound_to()))

    def bound_to(self) -> dict[str, str]:
        """Return the column that the key is bound to: keys that are bound to a user lack the scope."""
        return {"agent_id": self.credential.agent_id} if self.credential.agent_id else {}

    def scope(self, named: dict[str, Any]) -> TransferScope:
        """Return the rows that are to be exported. Raises Forbidden for more than the key is bound to."""
        bound = self.bound_to()
        wanted = {name: named[name] for name in ("agent_id", "user_id") if named.get(name)}
        if bound and not wanted.items() <= bound.items():
            raise Forbidden("a key that is bound to an agent exports what belongs to this agent alone")
        return TransferScope(account_id=self.credential.account_id, **(wanted | bound))

    def find(self, transfer_id: UUID) -> Transfer:
        rows = Transfer.objects.in_account(self.credential.account_id).filter(**self.bound_to())
        return find_transfer(rows, self.direction, transfer_id)


class Exports(TransferViewSet):
    """Archives of the account, of an agent or of a user."""

    direction = Transfer.Direction.EXPORT
    downloads = frozenset({"download", "newest"})
    operation_ids = {"newest": "download_newest_export"}
    problems = {"download": (409,), "newest": (404,)}
    bodies = {"create": ScopeFields}
    queries = {"newest": NewestQuery}
    answer = ExportAnswer
    statuses = {"create": 202}

    def list(self, request: Request) -> Response:
        """List exports, latest first."""
        return self.respond_transfers()

    def retrieve(self, request: Request, export_id: UUID) -> Response:
        """Return an export, with its progress."""
        return self.respond(self.find(export_id))

    def create(self, request: Request) -> Response:
        """Export the account, or what belongs to an agent or a user of it.

        A job makes the archive, which expires after MEMORY_ARCHIVE_HOURS: a zip of JSON Lines with a manifest, in plain
        text. `GET /exports/{export_id}` shows the progress, `GET /exports/{export_id}/download` returns the archive.
        """
        body = self.body()
        scope, owner = self.scope(body), Owner(account_id=self.credential.account_id, actor=self.credential.actor)

        def write() -> Response:
            export = request_export(owner, scope, include_vectors=body["include_vectors"], now=timezone.now())
            transaction.on_commit(lambda: notify_job_worker(TRANSFER_JOB))
            return self.respond(export)

        return self.write_once(write)

    def download(self, request: Request, export_id: UUID) -> HttpResponseBase:
        """Return the archive of an export, as a zip. 409 until it is completed."""
        return respond_with_archive(self.find(export_id))

    def newest(self, request: Request) -> HttpResponseBase:
        """Return the newest archive of the account, or of an agent or a user. 404 until `POST /exports` made one."""
        query = self.query()
        wanted = {"include_vectors": query["include_vectors"], "now": timezone.now()}
        return respond_with_archive(find_newest_export(self.scope(query), **wanted))


class Imports(TransferViewSet):
    """Imports of archives."""

    direction = Transfer.Direction.IMPORT
    uploads = frozenset({"create"})
    queries = {"create": ImportQuery}
    answer = ImportAnswer
    statuses = {"create": 202}

    def refuse_agents(self) -> None:
        """Raise Forbidden for a key that is bound to an agent: imports are of the account."""
        if self.bound_to():
            raise Forbidden("a key that is bound to an agent neither imports nor sees imports")

    def list(self, request: Request) -> Response:
        """List imports, latest first."""
        self.refuse_agents()
        return self.respond_transfers()

    def retrieve(self, request: Request, import_id: UUID) -> Response:
        """Return an import, with its progress."""
        self.refuse_agents()
        return self.respond(self.find(import_id))

    def create(self, request: Request) -> Response:
        """Import an archive: the body is the zip, as `application/zip`.

        422 for what is no complete zip. A job checks the archive as a whole, and stores nothing of one that was altered
        or made by a newer version: `GET /imports/{import_id}` says why. Rows that the account has already are left
        alone and counted. Keys that are bound to an agent cannot import.
        """
        owner, dry_run = self.owner(), self.query()["dry_run"]
        self.refuse_agents()
        with stream_slot(), report_full_disk():
            transfer = request_import(owner, read_body(request), dry_run=dry_run, now=timezone.now())
        notify_job_worker(TRANSFER_JOB)
        return self.respond(transfer)


def respond_with_archive(export: Transfer) -> HttpResponseBase:
    """Answer the archive in parts of half a MiB, one query each."""
    if export.status != Transfer.Status.COMPLETED:
        raise Conflict(f"the archive is not ready: the export is {export.status}")
    answer = StreamingHttpResponse(read_parts(export), content_type=ZIP)
    answer["Content-Length"] = str(export.size_bytes)
    answer["Content-Disposition"] = f'attachment; filename="{export.id}.zip"'
    return answer
