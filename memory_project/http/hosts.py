"""The hosts by which this machine calls itself. Every process reads them with the settings: it imports little."""

from collections.abc import Mapping

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
EVERY_ADDRESS = frozenset({"", "0.0.0.0", "::"})  # noqa: S104  compared only


def own_hosts(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the hosts by which this machine calls itself, with the address that its web server listens on."""
    address = environ.get("MEMORY_HOST", "")
    spelt = f"[{address}]" if ":" in address else address
    return LOOPBACK if address in EVERY_ADDRESS else tuple(dict.fromkeys((*LOOPBACK, spelt)))
