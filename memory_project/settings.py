"""One settings file, read from the environment. Nonsense raises; what each knob means is in the README."""

from pathlib import Path

import environ

from memory_project import knobs
from memory_project.encryption import split_keys

env = environ.Env()

BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = Path(env.str("MEMORY_DATA_DIR", default=str(BASE_DIR / ".data")))


def read_secret(variable: str, file_name: str) -> str:
    """A secret from the environment, else the one that `make up` wrote beside the data."""
    kept = DATA_DIR / file_name
    return env.str(variable, default="") or (kept.read_text().strip() if kept.exists() else "")


DEBUG = knobs.flag("MEMORY_DEBUG")
# Django refuses to start with an empty key as soon as something needs one
SECRET_KEY = read_secret("MEMORY_SECRET_KEY", "secret_key")
# by commas; the first one seals, all of them open. Where there are none: those in the file, whenever it changes
ENCRYPTION_KEYS = split_keys(env.str("MEMORY_ENCRYPTION_KEYS", default=""))
ENCRYPTION_KEYS_FILE = DATA_DIR / "encryption_keys"
# what is rejected is known again by hashes under it: another key, and none is
TOMBSTONE_KEY = read_secret("MEMORY_TOMBSTONE_KEY", "tombstone_key")
ALLOWED_HOSTS = env.list("MEMORY_ALLOWED_HOSTS", default=["127.0.0.1", "localhost", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.list("MEMORY_CSRF_TRUSTED_ORIGINS", default=[])

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "memory",
    "ledger",
    "lab",
]

MIDDLEWARE = [
    "memory_project.http.metrics.RequestMetrics",
    "memory_project.http.request_ids.RequestIds",
    "memory_project.http.traceparents.TraceParents",
    "memory_project.http.middleware.UnavailableStores",
    "memory_project.http.middleware.ContentSecurityPolicy",
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
        "DIRS": [BASE_DIR / "templates"],
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

AT_WEB_START = ["memory.services.embedding.embed.warm_up"]
WEB_WORKERS = knobs.whole_number("MEMORY_WEB_WORKERS", 2, low=1, high=64)
WEB_THREADS = knobs.whole_number("MEMORY_WEB_THREADS", 8, low=1, high=256)
CLIENT_TIMEOUT_SECONDS = knobs.seconds("MEMORY_CLIENT_TIMEOUT_SECONDS", 30.0, low=0.1, high=3_600)
TRUSTED_PROXIES = env.str("MEMORY_TRUSTED_PROXIES", default="")

DATABASE_URL = knobs.url("DATABASE_URL", "postgres://memory@127.0.0.1:5432/memory", ["postgres", "postgresql"])
DATABASES = {"default": environ.Env.db_url_config(DATABASE_URL)}
DATABASES["default"] |= {
    "CONN_HEALTH_CHECKS": True,
    "OPTIONS": DATABASES["default"].get("OPTIONS", {})
    | {
        # more than one for each thread: who waits for one waits for a server that is down
        "pool": {"min_size": 1, "max_size": WEB_THREADS + 2, "timeout": 2},
        "connect_timeout": 3,
        # custom plans: a generic one ignores how many rows an owner has; iterative scans: a filter never costs results
        "options": " ".join(
            f"-c {option}"
            for option in (
                "plan_cache_mode=force_custom_plan",
                "jit=off",
                "hnsw.iterative_scan=relaxed_order",
                "hnsw.ef_search=100",
                "hnsw.max_scan_tuples=200000",
                "ivfflat.iterative_scan=relaxed_order",
                "ivfflat.probes=10",
            )
        ),
    },
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = knobs.url("REDIS_URL", "redis://127.0.0.1:6379/0", ["redis", "rediss", "unix"])
REDIS_TIMEOUT_SECONDS = knobs.seconds("REDIS_TIMEOUT_SECONDS", 2.0, low=0.05, high=60)

CACHES = {
    "default": {
        "BACKEND": "django_redis.cache.RedisCache",
        "LOCATION": REDIS_URL,
        "KEY_PREFIX": "cache",
        "OPTIONS": {
            "REDIS_CLIENT_CLASS": "memory_project.redis.ImpatientRedis",
            "SERIALIZER": "django_redis.serializers.json.JSONSerializer",
            "SOCKET_TIMEOUT": REDIS_TIMEOUT_SECONDS,
            "SOCKET_CONNECT_TIMEOUT": REDIS_TIMEOUT_SECONDS,
        },
    }
}

CELERY_BROKER_URL = env.str("CELERY_BROKER_URL", default=REDIS_URL.replace("unix://", "redis+socket://", 1))
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_DEFAULT_QUEUE = "memory"
CELERY_WORKER_CONCURRENCY = knobs.whole_number("MEMORY_WORKER_PROCESSES", 2, low=1, high=64)
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 600,
    "unacked_restore_limit": 100,
    "socket_timeout": 5,
    "socket_connect_timeout": 3,
}
# publishing is a nudge (the row is the queue): it may fail at once, it may not hold a request up
CELERY_TASK_PUBLISH_RETRY = False
# the row's lease decides who works, not the broker
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = True
CELERY_TIMEZONE = "UTC"
# keeps nothing on disk: what is due is known from the rows
CELERY_BEAT_SCHEDULER = "celery.beat:Scheduler"

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["memory.api.authentication.ApiKeyAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["memory_project.http.credentials.HasScope"],
    "DEFAULT_THROTTLE_CLASSES": ["memory_project.http.throttling.KeyThrottle"],
    "DEFAULT_PARSER_CLASSES": ["memory_project.http.parsers.StrictJSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "memory_project.http.parsers.AlwaysJSON",
    "DEFAULT_PAGINATION_CLASS": "memory_project.http.pagination.Cursor",
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_SCHEMA_CLASS": "memory_project.http.schema.ServiceSchema",
    "EXCEPTION_HANDLER": "memory.api.problems.answer_problem",
    "UNAUTHENTICATED_USER": None,
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Agent memory",
    "DESCRIPTION": "What an agent is working on, what was said, what is true, what was already injected.",
    "VERSION": "0.1.0",
    "OAS_VERSION": "3.1.0",
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SERVE_AUTHENTICATION": [],
    "SERVE_PERMISSIONS": [],
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "COMPONENT_SPLIT_REQUEST": True,
    # a PATCH has a serializer of its own: what that requires, the document says
    "COMPONENT_SPLIT_PATCH": False,
    "PATH_CONVERTER_OVERRIDES": {
        "id": {"type": "string", "minLength": 1, "maxLength": 100},
        "key": {"type": "string", "minLength": 1, "maxLength": 200},
    },
    # choices that several shapes share under a field's name that others have as well
    "ENUM_NAME_OVERRIDES": {
        "FactStatusEnum": "memory.models.Fact.Status",
        "GoalStatusEnum": "memory.models.Goal.Status",
        "JobStatusEnum": "memory.models.JobRun.Status",
        "KindEnum": "memory.models.Kind",
        "QueueStateEnum": "memory.api.conversations.STATES",
        "SlotEnum": "memory.models.TurnSlot.Slot",
        "TurnStatusEnum": "memory.models.TurnRecord.Status",
        "CompressionLevelEnum": "memory.models.CompressionLevel",
        "AccessLevelEnum": "memory.models.Level",
        "MemoryTierEnum": "memory.api.memories.TIERS",
        "ReplayedKindEnum": "memory.services.replay.candidates.PIECE_KINDS",
        "NoteEnum": "memory.api.resume.NOTES",
        "ReasoningTierEnum": "memory.api.turn_records.TIERS",
        "ProvenanceEnum": "memory.api.turn_records.PROVENANCES",
        "ContextScopeEnum": "memory.models.PersistentContext.Scope",
        "EntryMemoryTypeEnum": "memory.models.ContextEntry.MemoryType",
        "PoolScopeEnum": "memory.models.MemoryPool.Scope",
        "ShortTermMemoryTypeEnum": "memory.models.AgentShortTermMemory.MemoryType",
        "WorkflowRunStatusEnum": "memory.models.WorkflowRun.Status",
    },
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "memory_project.http.schema.add_problem_shape",
    ],
}

BODY_LIMIT_BYTES = knobs.whole_number("MEMORY_BODY_LIMIT_BYTES", 8 * 1024**2, low=1_024, high=1024**3)
DATA_UPLOAD_MAX_MEMORY_SIZE = BODY_LIMIT_BYTES
IDEMPOTENCY_HOURS = knobs.whole_number("MEMORY_IDEMPOTENCY_HOURS", 24, low=1, high=8_760)
MOST_A_MINUTE = 1_000_000_000
RATE_LIMIT_PER_MINUTE = knobs.whole_number("MEMORY_RATE_LIMIT_PER_MINUTE", 12_000, low=1, high=MOST_A_MINUTE)
RETRIEVAL_RATE_LIMIT_PER_MINUTE = knobs.whole_number(
    "MEMORY_RETRIEVAL_RATE_LIMIT_PER_MINUTE", 6_000, low=1, high=MOST_A_MINUTE
)

OPENAI_API_KEY = env.str("OPENAI_API_KEY", default="")
OPENAI_BASE_URL = env.str("OPENAI_BASE_URL", default="")
EMBEDDING_PROVIDER = env.str("EMBEDDING_PROVIDER", default="")
EMBEDDING_MODEL = env.str("EMBEDDING_MODEL", default="")
EMBEDDING_DIMENSIONS = knobs.whole_number("EMBEDDING_DIMENSIONS", 1_536, low=0, high=4_000)
EMBEDDING_MODEL_DIR = env.str("EMBEDDING_MODEL_DIR", default="")
EMBEDDING_TIMEOUT_SECONDS = knobs.seconds("EMBEDDING_TIMEOUT_SECONDS", 5.0, low=0.05, high=600)
EMBEDDING_THREADS = knobs.whole_number("EMBEDDING_THREADS", 1, low=1, high=256)
EMBEDDING_NESTED_MODELS = knobs.names("EMBEDDING_NESTED_MODELS")
SUMMARY_MODEL = env.str("SUMMARY_MODEL", default="")
EXTRACTION_MODEL = env.str("EXTRACTION_MODEL", default="")
RECALL_MODEL = env.str("RECALL_MODEL", default="")
COMPRESSION_MODEL = env.str("COMPRESSION_MODEL", default="")
LANGUAGE_MODEL_TIMEOUT_SECONDS = knobs.seconds("LANGUAGE_MODEL_TIMEOUT_SECONDS", 60.0, low=0.05, high=600)
# on top of an answer's own tokens, for models that think first
LANGUAGE_MODEL_THINKING_TOKENS = knobs.whole_number("LANGUAGE_MODEL_THINKING_TOKENS", 0, low=0, high=1_000_000)
# of a million tokens, in whatever currency
LANGUAGE_MODEL_PROMPT_PRICE = knobs.number("LANGUAGE_MODEL_PROMPT_PRICE", 0.0, low=0, high=1_000_000)
LANGUAGE_MODEL_COMPLETION_PRICE = knobs.number("LANGUAGE_MODEL_COMPLETION_PRICE", 0.0, low=0, high=1_000_000)
# the whole address of a reranker; empty: none
RERANK_URL = env.str("RERANK_URL", default="")
RERANK_MODEL = env.str("RERANK_MODEL", default="")
RERANK_API_KEY = env.str("RERANK_API_KEY", default="")
RERANK_SHAPE = knobs.choice("RERANK_SHAPE", "cohere", ["cohere", "jina", "tei"])
RERANK_TIMEOUT_SECONDS = knobs.seconds("RERANK_TIMEOUT_SECONDS", 2.0, low=0.05, high=600)
MEMORY_ALLOW_TINY_EMBEDDINGS = knobs.flag("MEMORY_ALLOW_TINY_EMBEDDINGS")

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
STATIC_URL = "/static/"
# served from the packages: nothing to collect before the first start
WHITENOISE_USE_FINDERS = True

SESSION_ENGINE = "django.contrib.sessions.backends.db"
SESSION_COOKIE_HTTPONLY = True
CSRF_COOKIE_HTTPONLY = True
SECURE_COOKIES = knobs.flag("MEMORY_SECURE_COOKIES")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_COOKIES
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

LOG_FORMAT = knobs.choice("MEMORY_LOG_FORMAT", "text", ["text", "json"])
LOG_LEVELS = ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
TASK_LOG_LEVEL = knobs.choice("MEMORY_TASK_LOG_LEVEL", "WARNING", LOG_LEVELS)
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "text": {"format": "%(asctime)s %(levelname)s %(name)s [request %(request_id)s job %(job_id)s]: %(message)s"},
        "json": {"()": "memory_project.logs.JsonFormatter"},
    },
    "filters": {
        "request_id": {"()": "memory_project.http.request_ids.RequestIdFilter"},
        "job_id": {"()": "memory_project.logs.JobIdFilter"},
    },
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "formatter": LOG_FORMAT,
            "filters": ["request_id", "job_id"],
        }
    },
    "root": {"handlers": ["console"], "level": knobs.choice("MEMORY_LOG_LEVEL", "INFO", LOG_LEVELS)},
    # a 4xx is the client's affair and in the access log already
    "loggers": {
        "django.request": {"level": "ERROR"},
        "django.security.DisallowedHost": {"level": "CRITICAL"},
        # a job says itself what it did; that a message came and went is for debugging
        "celery.app.trace": {"level": TASK_LOG_LEVEL},
        "celery.worker.strategy": {"level": TASK_LOG_LEVEL},
        "celery.beat": {"level": TASK_LOG_LEVEL},
        "httpx2": {"level": "WARNING"},
        "openai": {"level": "WARNING"},
    },
}
