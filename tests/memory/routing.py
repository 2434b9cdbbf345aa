"""Helpers for tests of the router: values written to a tier, and looked up in each."""

from typing import Any

from memory.errors import NotFound
from memory.services.router import TIERS, MemoryRouter
from memory.tiers.base import NewValue
from tests.memory.episodes import NOW


def write(router: MemoryRouter, value: Any, *tiers: str, key: str = "k", **where: str) -> None:
    for tier in tiers:
        router.write(key, NewValue(value=value), tier=tier, now=NOW, **where)


def write_names(router: MemoryRouter, *tiers: str) -> None:
    """Write to each tier its own name."""
    for tier in tiers:
        write(router, tier, tier)


def tiers_with(router: MemoryRouter, key: str = "k", **where: str) -> list[str]:
    """Asked one by one."""
    return [tier for tier in TIERS if has(router, key, tier=tier, **where)]


def has(router: MemoryRouter, key: str, **where: str) -> bool:
    try:
        router.read(key, now=NOW, **where)
    except NotFound:
        return False
    return True
