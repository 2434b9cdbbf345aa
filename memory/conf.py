"""The knobs of the domain: one line each, read once from the environment under the same name with MEMORY_ before it."""

from memory_project.knobs import SettingError, choice, names, number, whole_number


def knob(name: str, default: int, *, low: int, high: int) -> int:
    """The integer in `MEMORY_<name>`, or the default. Raises SettingError when it is nonsense."""
    return whole_number(f"MEMORY_{name}", default, low=low, high=high)


WORKING_MEMORY_TTL_SECONDS = knob("WORKING_MEMORY_TTL_SECONDS", 86_400, low=1, high=604_800)  # seconds, refreshed
WORKING_MEMORY_LIMIT_BYTES = knob("WORKING_MEMORY_LIMIT_BYTES", 65_536, low=1_024, high=1_048_576)  # bytes
EXACT_SEARCH_ROWS = knob("EXACT_SEARCH_ROWS", 5_000, low=0, high=1_000_000)  # rows of an owner, above: the vector index
EMBED_BATCH_ROWS = knob("EMBED_BATCH_ROWS", 64, low=1, high=200)  # rows a claim
EMBED_LEASE_SECONDS = knob("EMBED_LEASE_SECONDS", 120, low=10, high=3_600)  # seconds until another worker may retry
EMBED_BACKOFF_SECONDS = knob("EMBED_BACKOFF_SECONDS", 15, low=1, high=3_600)  # seconds, doubled a failed attempt
EMBED_BACKOFF_LIMIT_SECONDS = knob("EMBED_BACKOFF_LIMIT_SECONDS", 3_600, low=1, high=86_400)  # seconds
EMBEDDING_CACHE_SECONDS = knob("EMBEDDING_CACHE_SECONDS", 86_400, low=0, high=2_592_000)  # seconds, 0 = no cache
JOB_LEASE_SECONDS = knob("JOB_LEASE_SECONDS", 120, low=1, high=3_600)  # seconds, renewed a batch
JOB_ATTEMPTS = knob("JOB_ATTEMPTS", 5, low=1, high=100)  # workers that may die on one batch
JOB_TIMES = names(
    "MEMORY_JOB_TIMES"
)  # when jobs run, where not at their own times: `decay=03:15`, `promote=30m`, `embed=off`
JOB_RUN_RETENTION_DAYS = knob("JOB_RUN_RETENTION_DAYS", 30, low=1, high=3_650)  # days
METRIC_RETENTION_DAYS = knob("METRIC_RETENTION_DAYS", 30, low=1, high=3_650)  # days that samples of figures are kept
AUDIT_RETENTION_DAYS = knob("AUDIT_RETENTION_DAYS", 365, low=1, high=36_500)  # days
AUDIT_PARTITIONS_AHEAD = knob("AUDIT_PARTITIONS_AHEAD", 7, low=7, high=60)  # days
AUDIT_READ_LINES = knob("AUDIT_READ_LINES", 50_000, low=1, high=10_000_000)  # reads waiting in Redis; more go past it
EPISODES_IN_CONTEXT = knob("EPISODES_IN_CONTEXT", 3, low=0, high=20)  # episodes
AUDIT_LEVELS = ("off", "writes", "reads", "verbose")  # each keeps what the ones before it keep
AUDIT_LEVEL = choice("MEMORY_AUDIT_LEVEL", "writes", AUDIT_LEVELS)

RETENTION_DAYS = knob("RETENTION_DAYS", 90, low=1, high=36_500)  # days without a write until a conversation is archived
SUMMARY_THRESHOLD = knob("SUMMARY_THRESHOLD", 50, low=11, high=10_000)  # messages not yet summarized, then they are
SUMMARY_KEEP_MESSAGES = 10  # the last ones stay in the buffer
# of 150, 300, 500, 1,000 and 2,000 tokens the one that put the session with the answer first most often (MiniLM)
SUMMARY_TOKENS = knob("SUMMARY_TOKENS", 500, low=50, high=8_000)  # tokens a summary may have
SUMMARY_INPUT_TOKENS = knob("SUMMARY_INPUT_TOKENS", 12_000, low=500, high=1_000_000)  # tokens a model is shown at once
SUMMARY_BATCH = knob("SUMMARY_BATCH", 4, low=1, high=32)  # conversations summarized side by side
SUMMARY_LEASE_SECONDS = knob("SUMMARY_LEASE_SECONDS", 60, low=15, high=3_600)  # seconds, renewed while a model thinks
SUMMARY_TIMEOUT_SECONDS = knob("SUMMARY_TIMEOUT_SECONDS", 100, low=1, high=3_600)  # seconds to an answer
SUMMARY_BACKOFF_SECONDS = knob("SUMMARY_BACKOFF_SECONDS", 30, low=1, high=3_600)  # seconds, doubled a failed attempt
SUMMARY_BACKOFF_LIMIT_SECONDS = knob("SUMMARY_BACKOFF_LIMIT_SECONDS", 3_600, low=1, high=86_400)  # seconds
MAX_CONTEXT_MESSAGES = knob("MAX_CONTEXT_MESSAGES", 20, low=1, high=1_000)  # messages that a context takes in
BUFFER_MESSAGES = knob("BUFFER_MESSAGES", 100, low=2, high=10_000)  # messages that a session's buffer holds
BUFFER_BYTES = knob("BUFFER_BYTES", 4_194_304, low=65_536, high=1_073_741_824)  # bytes of it; older messages go first
SESSION_THOUGHTS = knob("SESSION_THOUGHTS", 100, low=1, high=10_000)  # thoughts that a session keeps
SESSION_VALUES = knob("SESSION_VALUES", 200, low=1, high=100_000)  # context values that a session holds at once
SESSION_VALUE_BYTES = knob("SESSION_VALUE_BYTES", 65_536, low=1_024, high=1_048_576)  # bytes of one, or of a thought
SESSION_VALUE_TTL_SECONDS = knob("SESSION_VALUE_TTL_SECONDS", 3_600, low=1, high=604_800)  # seconds, unless it says
SESSION_IDLE_MINUTES = knob("SESSION_IDLE_MINUTES", 30, low=1, high=10_080)  # minutes without a turn: fallen idle

TIER_VALUE_BYTES = knob("TIER_VALUE_BYTES", 65_536, low=1_024, high=1_048_576)  # bytes of one keyed value, any tier
AGENT_MEMORY_TTL_SECONDS = knob("AGENT_MEMORY_TTL_SECONDS", 3_600, low=1, high=604_800)  # seconds, unless it says
AGENT_MEMORY_VALUES = knob("AGENT_MEMORY_VALUES", 1_000, low=1, high=100_000)  # values of one agent's working memory
SHORT_TERM_TTL_SECONDS = knob("SHORT_TERM_TTL_SECONDS", 3_600, low=1, high=2_592_000)  # seconds, unless it says
POOL_LIMIT_BYTES = knob("POOL_LIMIT_BYTES", 1_048_576, low=1_024, high=8_388_608)  # bytes of one pool's data, as JSON
TOOL_CACHE_TTL_SECONDS = knob("TOOL_CACHE_TTL_SECONDS", 3_600, low=1, high=2_592_000)  # seconds, unless it says
ACCESS_LOG_LINES = knob("ACCESS_LOG_LINES", 1_000_000, low=1, high=100_000_000)  # lines waiting in Redis; more are lost
ACCESS_LOG_RETENTION_DAYS = knob("ACCESS_LOG_RETENTION_DAYS", 365, low=1, high=36_500)  # days

DUPLICATE_SIMILARITY = number(
    "MEMORY_DUPLICATE_SIMILARITY", 0.92, low=0.5, high=1.0
)  # 1 - cosine distance, from then on
STALE_FROM = number("MEMORY_STALE_FROM", 0.9, low=0.0, high=1.0)  # staleness of a context entry, then it is archived
PROMOTE_CONFIDENCE = number("MEMORY_PROMOTE_CONFIDENCE", 0.85, low=0.0, high=1.0)  # of a fact, to go to _global
PROMOTE_ACCESS_COUNT = knob("PROMOTE_ACCESS_COUNT", 5, low=0, high=1_000_000)  # reads of it
PROMOTE_CONVERSATIONS = knob("PROMOTE_CONVERSATIONS", 2, low=0, high=1_000)  # conversations that it was learnt in

EXTRACTION_ATTEMPTS = knob("EXTRACTION_ATTEMPTS", 8, low=1, high=1_000)  # of its own failing, then staff decides
SUMMARY_ATTEMPTS = knob("SUMMARY_ATTEMPTS", 8, low=1, high=1_000)  # of its own failing, then staff decides
EXTRACTION_INPUT_TOKENS = knob("EXTRACTION_INPUT_TOKENS", 6_000, low=500, high=1_000_000)  # tokens of turns, a call
EXTRACTION_BATCH = knob("EXTRACTION_BATCH", 4, low=1, high=32)  # conversations looked through side by side
EXTRACTION_LEASE_SECONDS = knob("EXTRACTION_LEASE_SECONDS", 60, low=15, high=3_600)  # seconds, renewed meanwhile
EXTRACTION_TIMEOUT_SECONDS = knob("EXTRACTION_TIMEOUT_SECONDS", 100, low=1, high=3_600)  # seconds to an answer
EXTRACTION_BACKOFF_SECONDS = knob("EXTRACTION_BACKOFF_SECONDS", 30, low=1, high=3_600)  # seconds, doubled
EXTRACTION_BACKOFF_LIMIT_SECONDS = knob("EXTRACTION_BACKOFF_LIMIT_SECONDS", 3_600, low=1, high=86_400)  # seconds
CONTRADICTIONS = choice("MEMORY_CONTRADICTIONS", "prefer_new", ("prefer_new", "prefer_old", "flag_review"))
GRAPH_NODES = knob("GRAPH_NODES", 200, low=1, high=5_000)  # nodes that a walk answers with at most
GRAPH_FANOUT = knob("GRAPH_FANOUT", 50, low=1, high=1_000)  # neighbours of one node that a walk goes on to

COMPRESS_AFTER_HOURS = knob("COMPRESS_AFTER_HOURS", 168, low=0, high=876_000)  # hours since a structured turn
COMPRESS_KEEP_RECORDS = knob("COMPRESS_KEEP_RECORDS", 10, low=0, high=10_000)  # of a conversation, never touched
MERGE_AFTER_HOURS = knob("MERGE_AFTER_HOURS", 336, low=0, high=876_000)  # hours, unless the goal is closed
ARCHIVE_WORK_AFTER_DAYS = knob("ARCHIVE_WORK_AFTER_DAYS", 90, low=0, high=36_500)  # days since the goal was closed
WORK_EPISODE_TOKENS = knob("WORK_EPISODE_TOKENS", 800, low=100, high=8_000)  # tokens a work episode is to have
COMPRESSION_INPUT_TOKENS = knob("COMPRESSION_INPUT_TOKENS", 6_000, low=500, high=1_000_000)  # tokens shown at once
COMPRESSION_TIMEOUT_SECONDS = knob("COMPRESSION_TIMEOUT_SECONDS", 100, low=1, high=3_600)  # seconds to an answer
COMPRESSION_BACKOFF_SECONDS = knob("COMPRESSION_BACKOFF_SECONDS", 3_600, low=1, high=86_400)  # seconds, doubled
COMPRESSION_BACKOFF_LIMIT_SECONDS = knob("COMPRESSION_BACKOFF_LIMIT_SECONDS", 604_800, low=1, high=2_592_000)  # seconds

RECALL_TECHNIQUES = names("MEMORY_RECALL_TECHNIQUES")  # of recall; `-name` switches one off; empty: all
# room for working memory, three summaries of 500 tokens, and 2,000 tokens of evidence
CONTEXT_TOKENS = knob("CONTEXT_TOKENS", 4_000, low=100, high=1_000_000)  # tokens of a context, unless a request says
# with what was said around them, 20 hold 4 to 8 % more of the evidence than 10, and 50 need twice the tokens
CONTEXT_RESULTS = knob("CONTEXT_RESULTS", 20, low=1, high=200)  # memories of a context, unless a request says
RECALL_DEADLINE_MS = knob("RECALL_DEADLINE_MS", 5_000, low=1, high=600_000)  # milliseconds, unless a request says

# the documented names of the session's settings, which carry no prefix
SESSION_STORES = ("memory", "redis", "hybrid")
SESSION_STORE_TYPE = choice("SESSION_STORE_TYPE", "hybrid", SESSION_STORES)
SESSION_MAX_TTL_HOURS = whole_number("SESSION_MAX_TTL_HOURS", 168, low=1, high=168)  # hours
SESSION_TTL_HOURS = whole_number("SESSION_TTL_HOURS", 24, low=1, high=168)  # hours, refreshed
SESSION_MAX_MESSAGES_BEFORE_SUMMARY = whole_number("SESSION_MAX_MESSAGES_BEFORE_SUMMARY", 30, low=1, high=10_000)

if BUFFER_MESSAGES <= SUMMARY_THRESHOLD:
    raise SettingError(
        f"MEMORY_BUFFER_MESSAGES must be above MEMORY_SUMMARY_THRESHOLD, {SUMMARY_THRESHOLD}, not {BUFFER_MESSAGES}: "
        "messages would leave the buffer before they are summarized."
    )
if MAX_CONTEXT_MESSAGES > BUFFER_MESSAGES:
    raise SettingError(
        f"MEMORY_MAX_CONTEXT_MESSAGES must be at most MEMORY_BUFFER_MESSAGES, {BUFFER_MESSAGES}, "
        f"not {MAX_CONTEXT_MESSAGES}: messages are taken from the buffer."
    )
if SESSION_TTL_HOURS > SESSION_MAX_TTL_HOURS:
    raise SettingError(
        f"SESSION_TTL_HOURS must be at most SESSION_MAX_TTL_HOURS, {SESSION_MAX_TTL_HOURS}, not {SESSION_TTL_HOURS}."
    )
if SESSION_VALUE_TTL_SECONDS > SESSION_MAX_TTL_HOURS * 3_600:
    raise SettingError(
        f"MEMORY_SESSION_VALUE_TTL_SECONDS must be at most {SESSION_MAX_TTL_HOURS * 3_600}, SESSION_MAX_TTL_HOURS, "
        f"not {SESSION_VALUE_TTL_SECONDS}."
    )
