"""Settings of the installation, read from the environment. A malformed one is refused in a sentence.

Settings of the domain are in `memory/conf.py`; docs/configuration.md lists both.
"""

import os
from pathlib import Path
from urllib.parse import urlsplit

import environ

from memory_project import env
from memory_project.encryption import split_keys
from memory_project.http.hosts import own_hosts
from memory_project.http.rest import REST_FRAMEWORK as REST_FRAMEWORK
from memory_project.http.rest import SPECTACULAR_SETTINGS as SPECTACULAR_SETTINGS
from memory_project.installation import TEMPLATES_DIR, default_data_folder, read_version
from memory_project.logs import configure_logging
from memory_project.postgresql.hangs import WatchedConnection
from memory_project.postgresql.options import session_options
from memory_project.postgresql.replicas import replica_databases
from memory_project.redis_urls import (
    CLUSTER_SCHEMES,
    FOREIGN_CLUSTER_SCHEMES,
    NO_CLUSTER_AS_BROKER,
    OTHER_SPELLING,
    SENTINEL_SCHEME,
    broker_options,
    broker_url,
    cache_settings,
)

BASE_DIR = Path(__file__).resolve().parent.parent
VERSION = read_version()
MIN_SECRET_CHARACTERS, MIN_SECRET_VARIETY = 32, 8
DATA_DIR = Path(env.text("MEMORY_DATA_DIR", str(default_data_folder()), shown_default=".data"))
"""Folder of the embedded servers' data, the stored secrets and the built model. Of an installed wheel, by default
`agent-memory` in `$XDG_DATA_HOME` (`~/.local/share`)."""
SECRETS_DIR = Path(env.text("MEMORY_SECRETS_DIR", str(DATA_DIR), shown_default="MEMORY_DATA_DIR"))
"""Folder with the files `secret_key`, `encryption_keys` and `tombstone_key`, which all nodes may share."""


def read_secret(variable: str, file_name: str) -> str:
    """Return a secret from the environment, or else from its file; "" if there is neither."""
    kept = SECRETS_DIR / file_name
    return env.text(variable, "", shown_default="made at the first start") or (
        kept.read_text().strip() if kept.exists() else ""
    )


def refuse_weak_secret(secret: str) -> None:
    """Refuse a secret key that somebody may guess, such as one from an example. Raises SettingError."""
    is_example = secret.startswith("django-insecure-") or len(set(secret)) < MIN_SECRET_VARIETY
    if secret and (is_example or len(secret) < MIN_SECRET_CHARACTERS):
        raise env.SettingError(
            f"MEMORY_SECRET_KEY must be a random text of at least {MIN_SECRET_CHARACTERS} characters, not one from an"
            " example. Make one: python3 -c 'import secrets; print(secrets.token_urlsafe(50))'."
        )


DEBUG = env.flag("MEMORY_DEBUG")
"""Django's debug pages. Never switch them on in production."""
SECRET_KEY = read_secret("MEMORY_SECRET_KEY", "secret_key")
"""Django's secret key, which signs sessions. Give every node the same one."""
refuse_weak_secret(SECRET_KEY)
# Without any, the keys in the file hold, which is read again whenever it changes.
ENCRYPTION_KEYS = split_keys(env.text("MEMORY_ENCRYPTION_KEYS", ""))
"""Fernet keys, separated by commas, for what is encrypted at rest: the first one encrypts, all of them decrypt."""
ENCRYPTION_KEYS_FILE = SECRETS_DIR / "encryption_keys"
TOMBSTONE_KEY = read_secret("MEMORY_TOMBSTONE_KEY", "tombstone_key")
"""Key of the hashes by which rejected facts are recognized. With another key, they are not."""
OWN_HOSTS = own_hosts(os.environ)
ALLOWED_HOSTS = list(dict.fromkeys([*env.names("MEMORY_ALLOWED_HOSTS"), *OWN_HOSTS]))
"""Host names under which the service answers, besides those by which this machine calls itself."""
CSRF_TRUSTED_ORIGINS = list(env.names("MEMORY_CSRF_TRUSTED_ORIGINS"))
"""Origins that may send forms to the admin, such as `https://memory.example`."""

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "django_otp",
    "django_otp.plugins.otp_totp",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "memory",
    "ledger",
    "lab",
]

MIDDLEWARE = [
    "memory_project.http.metrics.RequestMetricsMiddleware",
    "memory_project.http.middleware.RequestIdMiddleware",
    "memory_project.tracing.TraceParentMiddleware",
    "memory_project.http.middleware.StoreErrorMiddleware",
    "memory_project.http.middleware.ContentSecurityPolicyMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "memory_project.urls"
WSGI_APPLICATION = "memory_project.wsgi.application"
APPEND_SLASH = False

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [TEMPLATES_DIR],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
            "libraries": {"admin_index": "memory.admin.index"},
        },
    },
]

ROLE_HEALTH_VIEWS = {
    "/health/live": "memory.api.health.live",
    "/health/ready": "memory.api.health.ready",
    "/metrics": "memory.api.metrics.process_metrics",
}
"""What a worker or a beat answers at its own port."""
KEY_CHECK = "memory.services.operations.canary.check_keys"
MASK_SECRETS = "memory.masking.mask_secrets"
STREAM_KEY_CHECK = "memory.api.authentication.judge_stream_key"
AT_WEB_START = [
    "memory.services.embedding.embed.load_local_model",
    "memory.providers.language_models.announce_default_model",
    "memory.providers.language_models.load_client",
    "memory_project.http.docs.render_documents",
]
"""What the web server calls before it forks its processes."""
AT_WORKER_START = ["memory.services.embedding.embed.load_local_model", "memory.providers.language_models.load_client"]
"""What a worker calls before it forks its processes."""
WEB_WORKERS = env.whole_number("MEMORY_WEB_WORKERS", 2, low=1, high=64)
"""Processes of the web server."""
WEB_THREADS = env.whole_number("MEMORY_WEB_THREADS", 8, low=1, high=256)
"""Threads of each web process; the pool of database connections follows it."""
CLIENT_TIMEOUT_SECONDS = env.seconds("MEMORY_CLIENT_TIMEOUT_SECONDS", 30.0, low=0.1, high=3_600)
"""Seconds until the head and the body of a request must have arrived; for a stream, the longest pause within it."""
STOP_SECONDS = env.seconds("MEMORY_STOP_SECONDS", 30.0, low=0, high=3_600)
"""Seconds that requests in flight get to finish when the web server stops. Without any, it stops immediately."""
DRAIN_SECONDS = env.seconds("MEMORY_DRAIN_SECONDS", 0.0, low=0, high=600)
"""Seconds between the moment when `/health/ready` answers 503 and the end of listening, for load balancers."""
CONNECTIONS_PER_ADDRESS = env.whole_number("MEMORY_CONNECTIONS_PER_ADDRESS", 1_000, low=1, high=1_000_000)
"""Connections that one address may have with each web process; trusted proxies may have any number."""
TRUSTED_PROXIES = list(env.names("MEMORY_TRUSTED_PROXIES"))
"""Addresses of proxies whose `X-Forwarded-Proto` is believed; `*` for all."""

DATABASE_URL = env.url(
    "DATABASE_URL",
    "postgres://memory@127.0.0.1:5432/memory",
    schemes=["postgres", "postgresql"],
    shown_default="the embedded PostgreSQL",
)
"""URL of a PostgreSQL with the `vector` extension. If it is set, the embedded PostgreSQL does not start."""
DATABASE_OWNER_URL = env.url(
    "DATABASE_OWNER_URL", "", schemes=["postgres", "postgresql"], shown_default="the role in DATABASE_URL"
)
"""URL of the same database with the role that owns the tables, where the role in DATABASE_URL only reads and writes
rows. Migrations, backups, indexes of vectors and the retention of the audit log use it."""
DATABASE_IS_DISTRIBUTED = env.flag("MEMORY_DATABASE_IS_DISTRIBUTED")
"""Whether `manage.py distribute` spread the database over machines. Statements that write two tables are split then."""
DATABASES = {"default": environ.Env.db_url_config(DATABASE_URL)}
DATABASE_POOLER_URL = env.url("DATABASE_POOLER_URL", "", schemes=["postgres", "postgresql"], shown_default="none")
"""URL of a PgBouncer in transaction mode in front of the same database, which web processes then use. Its role gets
its settings by `manage.py migrate`."""
STATEMENT_TIMEOUT_SECONDS = env.seconds("MEMORY_STATEMENT_TIMEOUT_SECONDS", 30.0, low=0, high=86_400)
"""Seconds that a statement of a web process may take; jobs and commands have no limit. 0: none."""
LOCK_TIMEOUT_SECONDS = env.seconds("MEMORY_LOCK_TIMEOUT_SECONDS", 3.0, low=0, high=86_400)
"""Seconds that a statement of a web process waits for a row that another one has locked. 0: for ever."""
DATABASES["default"] |= {
    "ENGINE": "memory_project.postgresql",
    "CONN_HEALTH_CHECKS": True,
    "OPTIONS": DATABASES["default"].get("OPTIONS", {})
    | {
        # more than one for each thread (of documents and health checks, too): who waits waits for a server that is down
        "pool": {
            "connection_class": WatchedConnection,
            "min_size": 1,
            "max_size": WEB_THREADS + 6,
            "timeout": 2,
            # a server that is back is asked soon
            "reconnect_timeout": 5,
        },
        "connect_timeout": 3,
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 20_000,
        "options": session_options(TOMBSTONE_KEY),
    },
}
DATABASE_REPLICA_URLS = env.urls("DATABASE_REPLICA_URLS", schemes=["postgres", "postgresql"])
"""URLs of streaming replicas of the same database, from which web processes answer recalls, searches and lists, and
exports are read."""
REPLICA_MAX_LAG_SECONDS = env.seconds("MEMORY_REPLICA_MAX_LAG_SECONDS", 10.0, low=0.5, high=600)
"""Seconds that a replica may be behind. One that is further behind, or does not answer, is left out."""
DATABASES |= replica_databases(DATABASE_REPLICA_URLS, DATABASES["default"])
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = env.url(
    "REDIS_URL",
    "redis://127.0.0.1:6379/0",
    schemes=["redis", "rediss", "unix", SENTINEL_SCHEME, *CLUSTER_SCHEMES],
    refused=dict.fromkeys(FOREIGN_CLUSTER_SCHEMES, OTHER_SPELLING),
    shown_default="the embedded Valkey",
)
"""URL of a Redis or Valkey, of its Sentinels, or of a cluster. If it is set, the embedded Valkey does not start."""
REDIS_TIMEOUT_SECONDS = env.seconds("REDIS_TIMEOUT_SECONDS", 2.0, low=0.05, high=60)
"""Seconds until Redis counts as down; after that it is not asked for two seconds."""

CACHES = {"default": cache_settings(REDIS_URL, timeout_seconds=REDIS_TIMEOUT_SECONDS)}

CELERY_BROKER_URL = env.text("CELERY_BROKER_URL", "", shown_default="REDIS_URL") or broker_url(REDIS_URL)
"""URL of Celery's broker. Needed where `REDIS_URL` names a cluster."""
if urlsplit(CELERY_BROKER_URL).scheme in {*CLUSTER_SCHEMES, *FOREIGN_CLUSTER_SCHEMES}:
    raise env.SettingError(f"CELERY_BROKER_URL {NO_CLUSTER_AS_BROKER}")
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_DEFAULT_QUEUE = "memory"
CELERY_WORKER_CONCURRENCY = env.whole_number("MEMORY_WORKER_PROCESSES", 2, low=1, high=64)
"""Processes of the Celery worker."""
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# for ever: the work is in rows, and a worker that gave up would do none of it
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 600,
    "unacked_restore_limit": 100,
    "socket_timeout": 5,
    "socket_connect_timeout": 3,
    **(broker_options(REDIS_URL) if CELERY_BROKER_URL.startswith("sentinel://") else {}),
}
# a message only notifies a worker (the row is the queue): it may fail at once, it may not hold a request up
CELERY_TASK_PUBLISH_RETRY = False
# the row's lease decides who works, not the broker
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = True
CELERY_TIMEZONE = "UTC"
# keeps nothing on disk: what is due is known from the rows
CELERY_BEAT_SCHEDULER = "memory_project.beat:ReconnectingScheduler"

BODY_LIMIT_BYTES = env.whole_number("MEMORY_BODY_LIMIT_BYTES", 8 * 1024**2, low=1_024, high=1024**3)
"""Largest body of a request, in bytes; streams of turns are not limited by it."""
ANSWER_LIMIT_BYTES = env.whole_number("MEMORY_ANSWER_LIMIT_BYTES", 8 * 1024**2, low=65_536, high=1024**3)
"""Largest answer, in bytes: pages end early, and lists in other answers are cut. One row is always answered."""
STREAM_LIMIT_BYTES = env.whole_number("MEMORY_STREAM_LIMIT_BYTES", 4 * 1024**3, low=1_024, high=1024**5)
"""Largest stream of turns or archive, in bytes. Both are kept in temporary files until they are complete."""
DATA_UPLOAD_MAX_MEMORY_SIZE = BODY_LIMIT_BYTES
IDEMPOTENCY_HOURS = env.whole_number("MEMORY_IDEMPOTENCY_HOURS", 24, low=1, high=8_760)
"""Hours that answers are kept for requests repeated with the same `Idempotency-Key`."""
MAX_REQUESTS_PER_MINUTE = 1_000_000_000
RATE_LIMIT_PER_MINUTE = env.whole_number("MEMORY_RATE_LIMIT_PER_MINUTE", 12_000, low=1, high=MAX_REQUESTS_PER_MINUTE)
"""Requests per minute and API key."""
RETRIEVAL_RATE_LIMIT_PER_MINUTE = env.whole_number(
    "MEMORY_RETRIEVAL_RATE_LIMIT_PER_MINUTE", 6_000, low=1, high=MAX_REQUESTS_PER_MINUTE
)
"""Searches and recalls per minute and API key."""
ACCOUNT_RATE_LIMIT_PER_MINUTE = env.whole_number(
    "MEMORY_ACCOUNT_RATE_LIMIT_PER_MINUTE", 60_000, low=1, high=MAX_REQUESTS_PER_MINUTE
)
"""Requests per minute of all API keys of an account together."""

OPENAI_API_KEY = env.text("OPENAI_API_KEY", "")
"""Key of the OpenAI-compatible endpoint."""
OPENAI_BASE_URL = env.text("OPENAI_BASE_URL", "")
"""Address of the OpenAI-compatible endpoint; empty for OpenAI's own."""
EMBEDDING_PROVIDER = env.text("EMBEDDING_PROVIDER", "")
"""`openai`, `local`, or `tiny` (synthetic loads only). Default: `openai` if a key or address is set, else `local`."""
EMBEDDING_MODEL = env.text("EMBEDDING_MODEL", "")
"""Embedding model of the endpoint. Default: `text-embedding-3-small`."""
EMBEDDING_DIMENSIONS = env.whole_number("EMBEDDING_DIMENSIONS", 1_536, low=0, high=4_000)
"""Width of the vectors asked for; 0 sends no width and accepts what the model returns."""
EMBEDDING_MODEL_DIR = env.text("EMBEDDING_MODEL_DIR", "")
"""Folder with `config.json`, `model.safetensors` and `tokenizer.json`. Default: the bundled MiniLM-L6-v2."""
EMBEDDING_QUERY_PREFIX = env.text("EMBEDDING_QUERY_PREFIX", "")
"""Text that the embedding model reads before a question, such as `query: `. Default: what the folder's prompts say."""
EMBEDDING_PASSAGE_PREFIX = env.text("EMBEDDING_PASSAGE_PREFIX", "")
"""Text that it reads before a stored text, such as `passage: `. Default: what the folder's prompts say."""
EMBEDDING_SECOND_API_KEY = env.text("EMBEDDING_SECOND_API_KEY", "")
"""Key of an embedding endpoint other than OPENAI_BASE_URL, while `manage.py reembed` changes from one to the other."""
EMBEDDING_TIMEOUT_SECONDS = env.seconds("EMBEDDING_TIMEOUT_SECONDS", 5.0, low=0.05, high=600)
"""Seconds that a request to the embedding endpoint may take."""
EMBEDDING_THREADS = env.whole_number("EMBEDDING_THREADS", 1, low=1, high=256)
"""Threads of the local embedding model."""
EMBEDDING_NESTED_MODELS = env.names("EMBEDDING_NESTED_MODELS")
"""Models, besides `text-embedding-3-*`, whose first 64 and 256 dimensions are vectors of their own (Matryoshka)."""
SUMMARY_MODEL = env.text("SUMMARY_MODEL", "")
"""Language model that writes summaries. Default: `gpt-4o-mini` if only OPENAI_API_KEY is set; else,
and with `none`, sentences are quoted."""
EXTRACTION_MODEL = env.text("EXTRACTION_MODEL", "")
"""Language model that extracts knowledge. Without one, rules do."""
RECALL_MODEL = env.text("RECALL_MODEL", "")
"""Language model that reads questions: times, speakers, rephrasings and a likely answer. Without one, rules do."""
COMPRESSION_MODEL = env.text("COMPRESSION_MODEL", "")
"""Language model that shortens structured turns. Without one, sentences are quoted."""
LANGUAGE_MODEL_TIMEOUT_SECONDS = env.seconds("LANGUAGE_MODEL_TIMEOUT_SECONDS", 60.0, low=0.05, high=600)
"""Seconds that one request to a language model may take."""
LANGUAGE_MODEL_THINKING_TOKENS = env.whole_number("LANGUAGE_MODEL_THINKING_TOKENS", 0, low=0, high=1_000_000)
"""Tokens on top of an answer's own, for models that think before they answer."""
LANGUAGE_MODEL_PROMPT_PRICE = env.number("LANGUAGE_MODEL_PROMPT_PRICE", 0.0, low=0, high=1_000_000)
"""Price of a million prompt tokens, in any currency; `/metrics` and the admin show the cost."""
LANGUAGE_MODEL_COMPLETION_PRICE = env.number("LANGUAGE_MODEL_COMPLETION_PRICE", 0.0, low=0, high=1_000_000)
"""Price of a million completion tokens, in the same currency."""
RERANK_URL = env.text("RERANK_URL", "")
"""Whole address of a rerank service, such as `https://host.example/v2/rerank`. Without one, nothing is reranked."""
RERANK_MODEL = env.text("RERANK_MODEL", "")
"""Model of the rerank service."""
RERANK_API_KEY = env.text("RERANK_API_KEY", "")
"""Key of the rerank service."""
RERANK_SHAPE = env.choice("RERANK_SHAPE", "cohere", options=["cohere", "jina", "tei"])
"""Request format of the rerank service."""
RERANK_TIMEOUT_SECONDS = env.seconds("RERANK_TIMEOUT_SECONDS", 2.0, low=0.05, high=600)
"""Seconds that a rerank may take; after that the former order is returned."""
MEMORY_ALLOW_TINY_EMBEDDINGS = env.flag("MEMORY_ALLOW_TINY_EMBEDDINGS")
"""Permits EMBEDDING_PROVIDER=tiny, which knows no meaning."""

# the documented settings of sessions and conversations, which `memory.conf` reads each time
MEMORY_RETENTION_DAYS = env.whole_number("MEMORY_RETENTION_DAYS", 90, low=1, high=36_500)
"""Days without a write after which a conversation is archived: readable, but no longer found by searches."""
MEMORY_SUMMARY_THRESHOLD = env.whole_number("MEMORY_SUMMARY_THRESHOLD", 50, low=11, high=10_000)
"""Unsummarized messages of a conversation that make it due for a summary."""
MEMORY_MAX_CONTEXT_MESSAGES = env.whole_number("MEMORY_MAX_CONTEXT_MESSAGES", 20, low=1, high=1_000)
"""Messages that `/conversations/{id}/messages` returns by default; at most MEMORY_BUFFER_MESSAGES."""
SESSION_STORE_TYPE = env.choice("SESSION_STORE_TYPE", "hybrid", options=["memory", "redis", "hybrid"])
"""Where session buffers live: `memory` (one process), `redis`, or `hybrid` (Redis, restored from the log)."""
SESSION_MAX_TTL_HOURS = env.whole_number("SESSION_MAX_TTL_HOURS", 168, low=1, high=168)
"""Largest number of hours that any setting or value of a session may live."""
SESSION_TTL_HOURS = env.whole_number("SESSION_TTL_HOURS", 24, low=1, high=168)
"""Hours that a session lives after the last read or write."""
SESSION_MAX_MESSAGES_BEFORE_SUMMARY = env.whole_number("SESSION_MAX_MESSAGES_BEFORE_SUMMARY", 30, low=1, high=10_000)
"""Unsummarized turns that an idle session needs, and turns that an ended one needs, to be summarized."""
if SESSION_TTL_HOURS > SESSION_MAX_TTL_HOURS:
    raise env.SettingError(
        f"SESSION_TTL_HOURS must be at most SESSION_MAX_TTL_HOURS, {SESSION_MAX_TTL_HOURS}, not {SESSION_TTL_HOURS}."
    )

LANGUAGE_CODE = "en"
FORMAT_MODULE_PATH = "memory_project.formats"
TIME_ZONE = "UTC"
USE_TZ = True
STATIC_URL = "/static/"
# served from the packages: nothing to collect before the first start
WHITENOISE_USE_FINDERS = True

SESSION_ENGINE = "django.contrib.sessions.backends.db"
SESSION_COOKIE_HTTPONLY = True
CSRF_COOKIE_HTTPONLY = True
SECURE_COOKIES = env.flag("MEMORY_SECURE_COOKIES")
"""Send cookies over HTTPS only. Switch it on behind HTTPS."""
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_COOKIES
SESSION_COOKIE_AGE = 12 * 3_600
LOGIN_REDIRECT_URL = "admin:index"
OTP_TOTP_ISSUER = "Agent memory"
SECURE_SSL_REDIRECT = env.flag("MEMORY_HTTPS_REDIRECT")
"""Redirect requests over HTTP to HTTPS, except probes. A proxy in front must be in MEMORY_TRUSTED_PROXIES."""
SECURE_REDIRECT_EXEMPT = [r"^health/", r"^metrics$"]
SECURE_HSTS_SECONDS = env.whole_number("MEMORY_HSTS_SECONDS", 0, low=0, high=100_000_000)
"""Seconds for which browsers use only HTTPS for this host (`Strict-Transport-Security`). 0: not sent."""
# subdomains and the preload list concern more than this service, whose owner decides
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

BACKUP_PASSPHRASE = env.text("MEMORY_BACKUP_PASSPHRASE", "", shown_default="none")
"""Passphrase that seals the keys of backups, where no file gives one."""

LOG_FORMAT = env.choice("MEMORY_LOG_FORMAT", "text", options=["text", "json"])
"""Format of log lines; `json` is for machines."""
LOG_LEVELS = ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
TASK_LOG_LEVEL = env.choice("MEMORY_TASK_LOG_LEVEL", "WARNING", options=LOG_LEVELS)
"""Log level of Celery's lines about single messages."""
LOG_LEVEL = env.choice("MEMORY_LOG_LEVEL", "INFO", options=LOG_LEVELS)
"""Log level of everything else."""
LOGGING = configure_logging(LOG_FORMAT, level=LOG_LEVEL, task_level=TASK_LOG_LEVEL)
