"""`/jobs`: what maintenance did, does and is asked to do."""

from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django_filters import CharFilter, ChoiceFilter, FilterSet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.views import OwnerViewSet
from memory.errors import NotFound
from memory.maintenance import find_job
from memory.models import JobRun
from memory.services.operations.jobs import request_run
from memory.tasks import nudge_job
from memory_project.http.serializers import Flag, StrictSerializer


class RunRequest(StrictSerializer):
    dry_run = Flag(default=False, help_text="Look and count, change nothing.")


class RunAccepted(serializers.Serializer[Any]):
    job_id = serializers.UUIDField()
    status = serializers.ChoiceField(JobRun.Status.choices)


class RunAnswer(serializers.Serializer[Any]):
    job_id = serializers.UUIDField()
    job = serializers.CharField(help_text="The job's name.")
    status = serializers.ChoiceField(JobRun.Status.choices)
    scope = serializers.ChoiceField(["account", "installation"], help_text="Whose rows it looked at.")
    requested_by = serializers.CharField()
    dry_run = serializers.BooleanField()
    attempts = serializers.IntegerField(help_text="Workers that began the batch it is at.")
    examined = serializers.IntegerField()
    changed = serializers.IntegerField(help_text="On a dry run: what would have changed.")
    failed = serializers.IntegerField()
    figures = serializers.DictField(child=serializers.IntegerField(), help_text="What else the job counts, by name.")
    cursor = serializers.CharField(help_text="Where its next batch begins; empty before the first, and at the end.")
    error = serializers.CharField(help_text="Empty unless it failed.")
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)
    duration_seconds = serializers.FloatField(allow_null=True, help_text="From its first batch to its end.")
    at = serializers.DateTimeField(allow_null=True, help_text="It acts as if it were then; null: now.")


COLUMNS = (
    *("job", "status", "requested_by", "dry_run", "attempts", "examined", "changed", "failed", "figures", "cursor"),
    *("error", "created_at", "started_at", "finished_at", "duration_seconds", "at"),
)


def represent_run(run: JobRun) -> dict[str, Any]:
    scope = "installation" if run.account_id is None else "account"
    return {"job_id": str(run.id), "scope": scope} | {name: getattr(run, name) for name in COLUMNS}


class RunFilter(FilterSet):  # type: ignore[misc]  # django-filter has no types
    job = CharFilter(max_length=50, strip=False)
    status = ChoiceFilter(choices=JobRun.Status.choices)


class Jobs(OwnerViewSet):
    """Runs of jobs, newest first: the account's own, and the installation's, which look at all accounts."""

    bodies = {"run": RunRequest}
    answers = {"list": RunAnswer, "retrieve": RunAnswer, "run": RunAccepted}
    statuses = {"run": 202}
    scopes = {"list": "operate", "retrieve": "operate", "run": "operate"}
    unrecorded = frozenset({"list", "retrieve"})
    filterset_class = RunFilter
    # for the description of the filters alone: rows come from `runs`
    queryset = JobRun.objects.none()

    def list(self, request: Request) -> Response:
        return self.page(self.runs(), represent_run)

    def retrieve(self, request: Request, job_id: UUID) -> Response:
        run = self.runs().filter(id=job_id).first()
        if run is None:
            raise NotFound("there is no such run")
        return Response(represent_run(run))

    def run(self, request: Request, name: str) -> Response:
        """Ask for a run that looks at this account's rows only."""
        body, owner, job = self.body(), self.owner(), find_job(name)

        def write() -> Response:
            run = request_run(owner, job=job.name, dry_run=body["dry_run"])
            transaction.on_commit(lambda: nudge_job(job.name))
            return Response({"job_id": str(run.id), "status": run.status}, status=202)

        return self.once(write)

    def runs(self) -> QuerySet[JobRun]:
        return JobRun.objects.seen_by_operators(self.credential.account_id)
