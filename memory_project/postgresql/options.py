"""Settings of each session with PostgreSQL, and the time limits of those of web processes."""

from django.conf import settings

# custom plans: a generic one ignores how many rows an owner has; iterative scans: a filter never costs results
SESSION_OPTIONS = " ".join(
    f"-c {option}"
    for option in (
        "idle_in_transaction_session_timeout=5min",
        "plan_cache_mode=force_custom_plan",
        "jit=off",
        "hnsw.iterative_scan=relaxed_order",
        "hnsw.ef_search=100",
        "hnsw.max_scan_tuples=200000",
        "ivfflat.iterative_scan=relaxed_order",
        "ivfflat.probes=10",
    )
)


def limit_statements() -> None:
    """Limit the statements of this process and those forked from it. Call it before the first connection.

    Jobs and commands have no limits: their statements may take hours.
    """
    limits = {
        "statement_timeout": settings.STATEMENT_TIMEOUT_SECONDS,
        "lock_timeout": settings.LOCK_TIMEOUT_SECONDS,
    }
    given = " ".join(f"-c {name}={round(seconds * 1_000)}" for name, seconds in limits.items())
    settings.DATABASES["default"]["OPTIONS"]["options"] = f"{SESSION_OPTIONS} {given}"
