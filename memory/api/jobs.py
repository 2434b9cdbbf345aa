"""`/jobs`: runs of maintenance jobs, past and present, and requests for new ones."""

from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django_filters import ChoiceFilter
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory import conf
from memory.api.fields import Counts
from memory.api.filters import RowFilter, TextFilter
from memory.api.keyed_memories import DEPRECATED_SINCE
from memory.api.views import OwnerViewSet
from memory.errors import NotFound
from memory.maintenance import CURRENT_NAMES, JOBS, find_job
from memory.models import JobRun
from memory.services.operations.jobs import request_run
from memory.tasks import notify_job_worker
from memory_project.http.answers import AnswerSerializer, columns_of
from memory_project.http.serializers import Flag, StrictSerializer

MAX_JOB_NAME_CHARACTERS = 50
JOB_NAMES: list[dict[str, Any]] = [
    {"const": accepted, "description": JOBS[name].description}
    if accepted == name
    else {"const": accepted, "deprecated": True, "description": f"Former name of `{name}`."}
    for accepted, name in CURRENT_NAMES.items()
]
"""Schemas of the names that are accepted for jobs, one each. Clients learn from them which names are deprecated."""


class RunRequest(StrictSerializer):
    dry_run = Flag(default=False, help_text="True to only count what would change.")


class RunAccepted(AnswerSerializer):
    job_id = serializers.UUIDField(source="id")
    status = serializers.ChoiceField(JobRun.Status.choices)


class RunAnswer(RunAccepted):
    columns = columns_of(JobRun, "requested_by dry_run created_at started_at finished_at")
    job = serializers.CharField(help_text="Name of the job.")
    attempts = serializers.IntegerField(help_text="Number of workers that started the present batch.")
    examined = serializers.IntegerField(help_text="Number of rows examined.")
    changed = serializers.IntegerField(help_text="Number of rows changed; in a dry run, rows that would change.")
    failed = serializers.IntegerField(help_text="Number of rows that failed.")
    figures = Counts(help_text="Other counts of the job, by name.")
    cursor = serializers.CharField(help_text="Start of the next batch. Empty before the first and after the last one.")
    error = serializers.CharField(help_text="Why it failed. Empty if it did not.")
    duration_seconds = serializers.FloatField(allow_null=True, help_text="Seconds from its first batch to its end.")
    at = serializers.DateTimeField(allow_null=True, help_text="Time that the job takes for the present. Null: now.")


@extend_schema_field({"anyOf": [*JOB_NAMES, {"type": "string", "maxLength": MAX_JOB_NAME_CHARACTERS}]})
class JobFilter(TextFilter):
    """Runs of a job, under its own name or a former one. Names of jobs that are gone may have runs as well."""

    def filter(self, rows: QuerySet[JobRun], name: str) -> QuerySet[JobRun]:
        found: QuerySet[JobRun] = super().filter(rows, CURRENT_NAMES.get(name, name))
        return found


class RunFilter(RowFilter):
    job = JobFilter(max_length=MAX_JOB_NAME_CHARACTERS)
    status = ChoiceFilter(choices=JobRun.Status.choices)


class Jobs(OwnerViewSet):
    """Runs of jobs that were requested for the account. A key that is bound to an agent sees those it requested."""

    bodies = {"run": RunRequest}
    answer = RunAnswer
    answers = {"run": RunAccepted}
    statuses = {"run": 202}
    scopes = {"list": "operate", "retrieve": "operate", "run": "operate"}
    not_audited = frozenset({"list", "retrieve"})
    filterset_class = RunFilter
    queryset = JobRun.objects.none()

    def list(self, request: Request) -> Response:
        """List runs, latest first."""
        return self.respond_page(self.runs())

    def retrieve(self, request: Request, job_id: UUID) -> Response:
        """Return a run."""
        run = self.runs().filter(id=job_id).first()
        if run is None:
            raise NotFound("there is no such run")
        return self.respond(run)

    @extend_schema(parameters=[OpenApiParameter("name", {"type": "string", "oneOf": JOB_NAMES}, OpenApiParameter.PATH)])
    def run(self, request: Request, name: str) -> Response:
        """Request a run of the job over this account's rows.

        While the same run waits already, that one is answered.
        """
        body, owner, job = self.body(), self.owner(), find_job(name)

        def write() -> Response:
            run = request_run(owner, job=job.name, dry_run=body["dry_run"], max_per_hour=conf.JOB_RUNS_PER_HOUR)
            transaction.on_commit(lambda: notify_job_worker(job.name))
            return self.respond(run)

        return self.write_once(write)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Response:
        """Say in answers under a former name of a job that it is deprecated, and which path to use."""
        final = super().finalize_response(request, response, *args, **kwargs)
        name = self.kwargs.get("name", "")
        if (current := CURRENT_NAMES.get(name, name)) != name:
            path = request.get_full_path().replace(f"/jobs/{name}/", f"/jobs/{current}/", 1)
            final["Deprecation"], final["Link"] = DEPRECATED_SINCE, f'<{path}>; rel="successor-version"'
        return final

    def runs(self) -> QuerySet[JobRun]:
        runs = JobRun.objects.filter(account_id=self.credential.account_id)
        return runs.filter(requested_by=self.credential.actor) if self.credential.agent_id else runs
