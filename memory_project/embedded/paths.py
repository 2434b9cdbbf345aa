"""The folders and files of the embedded servers: data, sockets and logs.

The data lies in `.data/` of the clone. If root runs the servers as a user who cannot reach it (a clone under /root),
it lies in a folder of ours below /var/lib, and `.data/` holds links to it: no folder that we did not make is ever
opened to others. Locks and sockets belong to the real folder, so a copied link shares the servers instead of
fighting over them. Sockets lie in a short private folder, since their paths may not exceed 107 bytes.
"""

import hashlib
import logging
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from memory_project.embedded.errors import EmbeddedServerError
from memory_project.embedded.programs import Programs, make_shared_folder, programs_for
from memory_project.embedded.users import ServerUser, user_for
from memory_project.installation import PROJECT as PROJECT
from memory_project.installation import default_data_folder

logger = logging.getLogger(__name__)

SYSTEM_DATA = Path("/var/lib")
PROGRAM_COPIES = "agent-memory-programs"
SERVER_FOLDERS = ("postgres", "valkey")
MAX_SOCKET_PATH_BYTES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPaths:
    """The folders of one pair of servers. `dies_with_parent` for servers that nobody is to adopt (tests)."""

    base: Path
    sockets: Path
    user: ServerUser
    programs: Programs
    dies_with_parent: bool = False

    def log_of(self, server: str) -> Path:
        """Return the path of a server's log."""
        return self.base / "log" / f"{server}.log"

    def lock_of(self, holder: str) -> Path:
        """Return the path of a lock file next to the data."""
        return self.base / f"{holder}.lock"


def data_folder(environ: Mapping[str, str]) -> Path:
    """Return MEMORY_DATA_DIR, by default `.data`. A relative path is resolved against the project's folder."""
    return PROJECT / (environ.get("MEMORY_DATA_DIR") or default_data_folder())


def secrets_folder(environ: Mapping[str, str]) -> Path:
    """Return MEMORY_SECRETS_DIR, by default the data folder. A relative path is resolved as that is."""
    return PROJECT / (environ.get("MEMORY_SECRETS_DIR") or data_folder(environ))


def make_data_folder(folder: Path) -> None:
    """Make it if it is missing: open to pass through only where another user has a part of it."""
    if not folder.exists():
        folder.mkdir(parents=True)
        folder.chmod(0o755 if os.geteuid() == 0 else 0o700)


def make_server_paths(folder: Path, *, socket_parent: Path, system_data: Path = SYSTEM_DATA) -> ServerPaths:
    """Return the paths of the servers whose data is in `folder`, or behind its links in `system_data`.

    Makes the folders.
    """
    make_data_folder(folder)
    user = user_for(folder / "postgres")
    base = _base_of(folder, user, system_data)
    (base / "log").mkdir(mode=0o700, exist_ok=True)
    return ServerPaths(
        base=base,
        sockets=_socket_folder(base, user, socket_parent),
        user=user,
        programs=programs_for(user, copies=system_data / PROGRAM_COPIES),
    )


def _base_of(folder: Path, user: ServerUser, system_data: Path) -> Path:
    """Return the folder that really holds the data: `folder`, or the one that its links lead to."""
    link = folder / SERVER_FOLDERS[0]
    if link.is_symlink():
        base = link.resolve().parent
        make_shared_folder(base)
        return base
    if not user.must_switch or user.can_enter(folder):
        return folder.resolve()
    if link.exists():
        raise EmbeddedServerError(
            f"User {user.uid}, to whom {link} belongs, cannot get there; move the data or its folder."
        )
    return _base_elsewhere(folder.resolve(), system_data)


def _base_elsewhere(folder: Path, system_data: Path) -> Path:
    base = system_data / f"agent-memory-{_digest_of_path(folder)}"
    make_shared_folder(base)
    for name in SERVER_FOLDERS:
        link = folder / name
        if not link.is_symlink():
            link.symlink_to(base / name)
    logger.warning("the servers run as an unprivileged user, who cannot reach %s: the data is in %s", folder, base)
    return base


def make_socket_folder(place: ServerPaths) -> None:
    """Create the private folder of the sockets and check its owner and mode: anybody may create folders there."""
    folder, user = place.sockets, place.user
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() != user.uid:
        # made by us, just now or by one of us who was killed here
        user.own(folder)
        found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != user.uid or found.st_mode & 0o077:
        raise EmbeddedServerError(
            f"{folder} is not a private folder of user {user.uid}; remove it, or set MEMORY_SOCKET_DIR."
        )


def _socket_folder(base: Path, user: ServerUser, parent: Path) -> Path:
    folder = parent / f"agent-memory-{_digest_of_path(base)}-{user.uid}"
    if len(os.fsencode(folder / ".s.PGSQL.5432.lock")) > MAX_SOCKET_PATH_BYTES:
        raise EmbeddedServerError(f"{parent} is too long for a socket; set MEMORY_SOCKET_DIR to a shorter path.")
    return folder


def _digest_of_path(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:12]
