"""The knobs of the domain: one line each, read once from the environment under the same name with MEMORY_ before it."""

from memory_project.knobs import choice, whole_number


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
JOB_RUN_RETENTION_DAYS = knob("JOB_RUN_RETENTION_DAYS", 30, low=1, high=3_650)  # days
AUDIT_RETENTION_DAYS = knob("AUDIT_RETENTION_DAYS", 365, low=1, high=36_500)  # days
AUDIT_PARTITIONS_AHEAD = knob("AUDIT_PARTITIONS_AHEAD", 7, low=1, high=60)  # days
EPISODES_IN_CONTEXT = knob("EPISODES_IN_CONTEXT", 3, low=0, high=20)  # episodes
AUDIT_LEVELS = ("off", "writes", "reads", "verbose")  # each keeps what the ones before it keep
AUDIT_LEVEL = choice("MEMORY_AUDIT_LEVEL", "writes", AUDIT_LEVELS)
