"""Settings of the domain: one declaration each, read once from the environment variable that it names.

The documented ones (DJANGO_SETTINGS) are declared in Django's settings instead.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django.conf import settings

from memory_project.env import SettingError, choice, names, number, text, whole_number

DJANGO_SETTINGS: Mapping[str, str] = {
    "RETENTION_DAYS": "MEMORY_RETENTION_DAYS",
    "SUMMARY_THRESHOLD": "MEMORY_SUMMARY_THRESHOLD",
    "MAX_CONTEXT_MESSAGES": "MEMORY_MAX_CONTEXT_MESSAGES",
    "SESSION_STORE_TYPE": "SESSION_STORE_TYPE",
    "SESSION_TTL_HOURS": "SESSION_TTL_HOURS",
    "SESSION_MAX_TTL_HOURS": "SESSION_MAX_TTL_HOURS",
    "SESSION_MAX_MESSAGES_BEFORE_SUMMARY": "SESSION_MAX_MESSAGES_BEFORE_SUMMARY",
}
"""The documented settings by their names here. They are Django settings that are read each time."""

if TYPE_CHECKING:
    RETENTION_DAYS: int
    SUMMARY_THRESHOLD: int
    MAX_CONTEXT_MESSAGES: int
    SESSION_STORE_TYPE: str
    SESSION_TTL_HOURS: int
    SESSION_MAX_TTL_HOURS: int
    SESSION_MAX_MESSAGES_BEFORE_SUMMARY: int
else:

    def __getattr__(name: str) -> Any:
        """Return a documented setting from Django's settings."""
        if name not in DJANGO_SETTINGS:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(settings, DJANGO_SETTINGS[name])


WORKING_MEMORY_TTL_SECONDS = whole_number("MEMORY_WORKING_MEMORY_TTL_SECONDS", 86_400, low=1, high=604_800)
"""Seconds that a conversation's working memory lives after the last read or write."""
WORKING_MEMORY_LIMIT_BYTES = whole_number("MEMORY_WORKING_MEMORY_LIMIT_BYTES", 65_536, low=1_024, high=1_048_576)
"""Bytes of working memory per conversation; a write beyond it is kept and answered 413."""
EXACT_SEARCH_ROWS = whole_number("MEMORY_EXACT_SEARCH_ROWS", 5_000, low=0, high=1_000_000)
"""Memories of one owner that are searched exactly; a larger owner gets a vector index of its own."""
VECTOR_PARTITIONS = whole_number("MEMORY_VECTOR_PARTITIONS", 64, low=1, high=256)
"""Partitions of the table of vectors, by account. Read once, when `manage.py migrate` creates the table."""
EMBED_BATCH_ROWS = whole_number("MEMORY_EMBED_BATCH_ROWS", 64, low=1, high=200)
"""Pending memories that one claim of the job `embed` takes."""
EMBED_LEASE_SECONDS = whole_number("MEMORY_EMBED_LEASE_SECONDS", 120, low=10, high=3_600)
"""Seconds until another worker may take over claimed rows that were not embedded."""
EMBEDDED_TOKENS_PER_DAY = whole_number("MEMORY_EMBEDDED_TOKENS_PER_DAY", 0, low=0, high=10**15)
"""Tokens that the job `embed` embeds for an account in a day (UTC); more wait for the next day. 0: any number."""
MODEL_TOKENS_PER_DAY = whole_number("MEMORY_MODEL_TOKENS_PER_DAY", 0, low=0, high=10**15)
"""Language-model tokens of an account in a day (UTC), after which its summaries and extraction wait. 0: any number."""
EMBED_BACKOFF_SECONDS = whole_number("MEMORY_EMBED_BACKOFF_SECONDS", 15, low=1, high=3_600)
"""Seconds until a failed embedding is tried again; doubled with each failure."""
EMBED_BACKOFF_LIMIT_SECONDS = whole_number("MEMORY_EMBED_BACKOFF_LIMIT_SECONDS", 3_600, low=1, high=86_400)
"""Longest pause, in seconds, between two attempts to embed a memory."""
EMBEDDING_CACHE_SECONDS = whole_number("MEMORY_EMBEDDING_CACHE_SECONDS", 86_400, low=0, high=2_592_000)
"""Seconds that vectors of texts are cached; 0 switches the cache off."""
EMBEDDING_STATE_SECONDS = whole_number("MEMORY_EMBEDDING_STATE_SECONDS", 2, low=0, high=60)
"""Seconds after which a process has learned at the latest that another embedding model serves searches."""
JOB_LEASE_SECONDS = whole_number("MEMORY_JOB_LEASE_SECONDS", 15, low=1, high=3_600)
"""Seconds until another worker takes over the job run of a dead one. A living worker renews its lease meanwhile."""
JOB_RUNS_PER_HOUR = whole_number("MEMORY_JOB_RUNS_PER_HOUR", 600, low=0, high=1_000_000)
"""Job runs that an account may request within an hour; 0 for any number. Requests that join a waiting run are free."""
JOB_ATTEMPTS = whole_number("MEMORY_JOB_ATTEMPTS", 5, low=1, high=100)
"""Workers that may be killed on the same batch before the run is given up."""
JOB_TIMES = names("MEMORY_JOB_TIMES")
"""Times of jobs that replace their own: `decay=03:15` (UTC), `globalize_facts=30m`, `embed=off`."""
JOB_RUN_RETENTION_DAYS = whole_number("MEMORY_JOB_RUN_RETENTION_DAYS", 30, low=1, high=3_650)
"""Days that finished job runs are kept."""
METRIC_RETENTION_DAYS = whole_number("MEMORY_METRIC_RETENTION_DAYS", 30, low=1, high=3_650)
"""Days that samples of the installation's figures are kept."""
AUDIT_RETENTION_DAYS = whole_number("MEMORY_AUDIT_RETENTION_DAYS", 365, low=1, high=36_500)
"""Days that entries of the audit log are kept."""
LEDGER_RETENTION_DAYS = whole_number("MEMORY_LEDGER_RETENTION_DAYS", 90, low=1, high=36_500)
"""Days without a change after which the injection ledger of a conversation that nobody ends is cleared."""
AUDIT_PARTITIONS_AHEAD = whole_number("MEMORY_AUDIT_PARTITIONS_AHEAD", 7, low=7, high=60)
"""Days for which partitions of the audit log are created ahead of time."""
AUDIT_READ_LINES = whole_number("MEMORY_AUDIT_READ_LINES", 50_000, low=1, high=10_000_000)
"""Audited reads that may wait in Redis; further ones are written directly."""
EPISODES_IN_CONTEXT = whole_number("MEMORY_EPISODES_IN_CONTEXT", 3, low=0, high=20)
"""Similar episodes that a prompt context holds."""
AUDIT_LEVELS = ("off", "writes", "reads", "verbose")  # each keeps what the ones before it keep
AUDIT_LEVEL = choice("MEMORY_AUDIT_LEVEL", "writes", options=AUDIT_LEVELS)
"""What the audit log records; each level includes the ones before it. An account may have its own level."""

ERASURE_WAIT_SECONDS = whole_number("MEMORY_ERASURE_WAIT_SECONDS", 60, low=0, high=3_600)
"""Seconds after its request from which the erasure of a user may be completed. Keep it above the longest request."""
ARCHIVE_HOURS = whole_number("MEMORY_ARCHIVE_HOURS", 24, low=1, high=8_760)
"""Hours that the archive of an export can be downloaded, and that a finished import is remembered."""
SUMMARY_KEEP_MESSAGES = 10  # the last ones stay in the buffer
# of 150, 300, 500, 1,000 and 2,000 tokens the one that put the session with the answer first most often (MiniLM)
SUMMARY_TOKENS = whole_number("MEMORY_SUMMARY_TOKENS", 500, low=50, high=8_000)
"""Tokens that a summary may have."""
SUMMARY_INPUT_TOKENS = whole_number("MEMORY_SUMMARY_INPUT_TOKENS", 12_000, low=500, high=1_000_000)
"""Tokens that a language model reads in one request when it summarizes; longer texts go part by part."""
SUMMARY_BATCH = whole_number("MEMORY_SUMMARY_BATCH", 4, low=1, high=32)
"""Conversations that are summarized side by side."""
SUMMARY_LEASE_SECONDS = whole_number("MEMORY_SUMMARY_LEASE_SECONDS", 20, low=15, high=3_600)
"""Seconds of a claim on a conversation to summarize, renewed while the model answers."""
SUMMARY_TIMEOUT_SECONDS = whole_number("MEMORY_SUMMARY_TIMEOUT_SECONDS", 100, low=1, high=3_600)
"""Seconds that a language model has for a summary."""
SUMMARY_BACKOFF_SECONDS = whole_number("MEMORY_SUMMARY_BACKOFF_SECONDS", 30, low=1, high=3_600)
"""Seconds until a failed summary is tried again; doubled with each failure."""
SUMMARY_BACKOFF_LIMIT_SECONDS = whole_number("MEMORY_SUMMARY_BACKOFF_LIMIT_SECONDS", 3_600, low=1, high=86_400)
"""Longest pause, in seconds, between two attempts at a summary."""
BUFFER_MESSAGES = whole_number("MEMORY_BUFFER_MESSAGES", 100, low=2, high=10_000)
"""Messages that a session's buffer holds; must exceed MEMORY_SUMMARY_THRESHOLD."""
BUFFER_BYTES = whole_number("MEMORY_BUFFER_BYTES", 4_194_304, low=65_536, high=1_073_741_824)
"""Bytes that a session's buffer holds; the oldest messages leave first."""
SESSION_THOUGHTS = whole_number("MEMORY_SESSION_THOUGHTS", 100, low=1, high=10_000)
"""Thoughts that a session keeps."""
SESSION_VALUES = whole_number("MEMORY_SESSION_VALUES", 200, low=1, high=100_000)
"""Context values that a session may hold."""
SESSION_VALUE_BYTES = whole_number("MEMORY_SESSION_VALUE_BYTES", 65_536, low=1_024, high=1_048_576)
"""Bytes of one context value, or of one thought."""
SESSION_VALUE_TTL_SECONDS = whole_number("MEMORY_SESSION_VALUE_TTL_SECONDS", 3_600, low=1, high=604_800)
"""Seconds that a context value lives unless the request gives `ttl_seconds`."""
SESSION_IDLE_MINUTES = whole_number("MEMORY_SESSION_IDLE_MINUTES", 30, low=1, high=10_080)
"""Minutes without a turn after which a session counts as idle, and may be summarized."""

TIER_VALUE_BYTES = whole_number("MEMORY_TIER_VALUE_BYTES", 65_536, low=1_024, high=1_048_576)
"""Bytes of one keyed value in any tier, as JSON."""
AGENT_MEMORY_TTL_SECONDS = whole_number("MEMORY_AGENT_MEMORY_TTL_SECONDS", 3_600, low=1, high=604_800)
"""Seconds that a value of an agent's working memory lives unless the request gives `ttl_seconds`."""
AGENT_MEMORY_VALUES = whole_number("MEMORY_AGENT_MEMORY_VALUES", 1_000, low=1, high=100_000)
"""Values that one agent's working memory holds."""
SHORT_TERM_TTL_SECONDS = whole_number("MEMORY_SHORT_TERM_TTL_SECONDS", 3_600, low=1, high=2_592_000)
"""Seconds that a short-term entry lives unless the request gives `ttl_seconds`."""
POOL_LIMIT_BYTES = whole_number("MEMORY_POOL_LIMIT_BYTES", 1_048_576, low=1_024, high=8_388_608)
"""Bytes of one memory pool's data, as JSON."""
TOOL_CACHE_TTL_SECONDS = whole_number("MEMORY_TOOL_CACHE_TTL_SECONDS", 3_600, low=1, high=2_592_000)
"""Seconds that a cached tool result lives unless the request gives `ttl_seconds`."""
ACCESS_LOG_LINES = whole_number("MEMORY_ACCESS_LOG_LINES", 1_000_000, low=1, high=100_000_000)
"""Lines of the contexts' access log that may wait in Redis; further ones are counted as lost."""
ACCESS_LOG_RETENTION_DAYS = whole_number("MEMORY_ACCESS_LOG_RETENTION_DAYS", 365, low=1, high=36_500)
"""Days that lines of the contexts' access log are kept."""

DUPLICATE_SIMILARITY = number("MEMORY_DUPLICATE_SIMILARITY", 0.92, low=0.5, high=1.0)
"""Cosine similarity from which two memories that say the same are merged."""
STALE_FROM = number("MEMORY_STALE_FROM", 0.9, low=0.0, high=1.0)
"""Staleness from which a context entry is archived."""
PROMOTE_CONFIDENCE = number("MEMORY_PROMOTE_CONFIDENCE", 0.85, low=0.0, high=1.0)
"""Confidence that a project's fact needs to be copied to `_global`."""
PROMOTE_ACCESS_COUNT = whole_number("MEMORY_PROMOTE_ACCESS_COUNT", 5, low=0, high=1_000_000)
"""Reads that a project's fact needs to be copied to `_global`."""
PROMOTE_CONVERSATIONS = whole_number("MEMORY_PROMOTE_CONVERSATIONS", 2, low=0, high=1_000)
"""Conversations that a project's fact must come from to be copied to `_global`."""

EXTRACTION_ATTEMPTS = whole_number("MEMORY_EXTRACTION_ATTEMPTS", 8, low=1, high=1_000)
"""Failures of its own after which a conversation is set aside for staff to review, in extraction."""
SUMMARY_ATTEMPTS = whole_number("MEMORY_SUMMARY_ATTEMPTS", 8, low=1, high=1_000)
"""Failures of its own after which a conversation is set aside for staff to review, in summarization."""
EXTRACTION_INPUT_TOKENS = whole_number("MEMORY_EXTRACTION_INPUT_TOKENS", 6_000, low=500, high=1_000_000)
"""Tokens of turns that are read in one request when knowledge is extracted."""
EXTRACTION_BATCH = whole_number("MEMORY_EXTRACTION_BATCH", 4, low=1, high=32)
"""Conversations from which knowledge is extracted side by side."""
EXTRACTION_LEASE_SECONDS = whole_number("MEMORY_EXTRACTION_LEASE_SECONDS", 20, low=15, high=3_600)
"""Seconds of a claim on a conversation to extract from, renewed while the model answers."""
EXTRACTION_TIMEOUT_SECONDS = whole_number("MEMORY_EXTRACTION_TIMEOUT_SECONDS", 100, low=1, high=3_600)
"""Seconds that a language model has for an extraction."""
EXTRACTION_BACKOFF_SECONDS = whole_number("MEMORY_EXTRACTION_BACKOFF_SECONDS", 30, low=1, high=3_600)
"""Seconds until a failed extraction is tried again; doubled with each failure."""
EXTRACTION_BACKOFF_LIMIT_SECONDS = whole_number("MEMORY_EXTRACTION_BACKOFF_LIMIT_SECONDS", 3_600, low=1, high=86_400)
"""Longest pause, in seconds, between two attempts at an extraction."""
CONTRADICTIONS = choice("MEMORY_CONTRADICTIONS", "prefer_new", options=("prefer_new", "prefer_old", "flag_review"))
"""Which fact is believed when a new one contradicts others; `flag_review` asks staff. An account may have its own."""
GRAPH_NODES = whole_number("MEMORY_GRAPH_NODES", 200, low=1, high=5_000)
"""Nodes that a graph walk returns at most."""
GRAPH_FANOUT = whole_number("MEMORY_GRAPH_FANOUT", 50, low=1, high=1_000)
"""Neighbours of one node that a graph walk follows, those of the greatest weight first."""

COMPRESS_AFTER_HOURS = whole_number("MEMORY_COMPRESS_AFTER_HOURS", 168, low=0, high=876_000)
"""Hours after a structured turn until its slots are shortened."""
COMPRESS_KEEP_RECORDS = whole_number("MEMORY_COMPRESS_KEEP_RECORDS", 10, low=0, high=10_000)
"""Latest structured turns of a conversation that are never compressed."""
MERGE_AFTER_HOURS = whole_number("MEMORY_MERGE_AFTER_HOURS", 336, low=0, high=876_000)
"""Hours after a structured turn until it is merged into a work episode, unless its goal is closed earlier."""
ARCHIVE_WORK_AFTER_DAYS = whole_number("MEMORY_ARCHIVE_WORK_AFTER_DAYS", 90, low=0, high=36_500)
"""Days after a goal was closed until its work episodes are archived."""
WORK_EPISODE_TOKENS = whole_number("MEMORY_WORK_EPISODE_TOKENS", 800, low=100, high=8_000)
"""Tokens that a work episode may have."""
COMPRESSION_INPUT_TOKENS = whole_number("MEMORY_COMPRESSION_INPUT_TOKENS", 6_000, low=500, high=1_000_000)
"""Tokens that a language model reads in one request when it compresses structured turns."""
COMPRESSION_TIMEOUT_SECONDS = whole_number("MEMORY_COMPRESSION_TIMEOUT_SECONDS", 100, low=1, high=3_600)
"""Seconds that a language model has for a compression."""
COMPRESSION_BACKOFF_SECONDS = whole_number("MEMORY_COMPRESSION_BACKOFF_SECONDS", 3_600, low=1, high=86_400)
"""Seconds until a failed compression is tried again; doubled with each failure."""
COMPRESSION_BACKOFF_LIMIT_SECONDS = whole_number(
    "MEMORY_COMPRESSION_BACKOFF_LIMIT_SECONDS", 604_800, low=1, high=2_592_000
)
"""Longest pause, in seconds, between two attempts at a compression."""

CONFIDENCE_WEIGHTS = text("MEMORY_CONFIDENCE_WEIGHTS", "", shown_default="those of the bundled embedding model")
"""File of weights that `manage.py learn_confidence --to FILE` has written for another embedding model."""
RECALL_TECHNIQUES = names("MEMORY_RECALL_TECHNIQUES")
"""Techniques that every recall uses unless the request names others; `-name` switches one off; empty means all."""
# room for working memory, three summaries of 500 tokens, and 2,000 tokens of evidence
CONTEXT_TOKENS = whole_number("MEMORY_CONTEXT_TOKENS", 4_000, low=100, high=1_000_000)
"""Tokens of a prompt context unless the request gives `max_tokens`."""
# 60 short turns fill 2,000 tokens; with 20, turns next to them take the room of better ones (docs/recall.md)
CONTEXT_RESULTS = whole_number("MEMORY_CONTEXT_RESULTS", 60, low=1, high=200)
"""Memories of a prompt context unless the request gives `top_k`."""
RECALL_DEADLINE_MS = whole_number("MEMORY_RECALL_DEADLINE_MS", 5_000, low=1, high=600_000)
"""Milliseconds that a recall may take unless the request gives `deadline_ms`."""

if settings.MEMORY_SUMMARY_THRESHOLD >= BUFFER_MESSAGES:
    raise SettingError(
        f"MEMORY_BUFFER_MESSAGES must be above MEMORY_SUMMARY_THRESHOLD, {settings.MEMORY_SUMMARY_THRESHOLD}, "
        f"not {BUFFER_MESSAGES}: messages would leave the buffer before they are summarized."
    )
if settings.MEMORY_MAX_CONTEXT_MESSAGES > BUFFER_MESSAGES:
    raise SettingError(
        f"MEMORY_MAX_CONTEXT_MESSAGES must be at most MEMORY_BUFFER_MESSAGES, {BUFFER_MESSAGES}, "
        f"not {settings.MEMORY_MAX_CONTEXT_MESSAGES}: messages are taken from the buffer."
    )
if SESSION_VALUE_TTL_SECONDS > settings.SESSION_MAX_TTL_HOURS * 3_600:
    raise SettingError(
        f"MEMORY_SESSION_VALUE_TTL_SECONDS must be at most {settings.SESSION_MAX_TTL_HOURS * 3_600}, "
        f"SESSION_MAX_TTL_HOURS, not {SESSION_VALUE_TTL_SECONDS}."
    )
