"""Erasures for tests."""

from datetime import UTC, datetime, timedelta


def later() -> datetime:
    """Return a time at which requests of now have settled."""
    return datetime.now(UTC) + timedelta(hours=1)
