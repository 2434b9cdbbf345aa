"""The user of the parts: where root starts them, an unprivileged one that can read what they need."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from memory_project.counters import FOLDER as COUNTERS
from memory_project.embedded.environment import SECRETS
from memory_project.embedded.errors import EmbeddedServerError
from memory_project.embedded.paths import PROJECT, data_folder
from memory_project.embedded.users import ServerUser, user_for

ROOT = 0
FIRST_UNPRIVILEGED_PORT = 1024
HOME = "home"
WRITTEN_FOLDERS = (COUNTERS, "models", HOME)
"""Folders within the data that the parts write to."""
TRIAL_SECONDS = 60
TRIAL = "from memory_project import settings; settings.ENCRYPTION_KEYS or settings.ENCRYPTION_KEYS_FILE.read_text()"
"""Reads code, packages and secrets."""


class CannotSwitchError(Exception):
    """The parts cannot run as an unprivileged user; the text is a reason that follows "because"."""


def find_part_user(environ: Mapping[str, str], ports: tuple[int | None, ...]) -> ServerUser | None:
    """Return the user that the parts are to run as, and give it what they write; None for the current user.

    It is the user of the embedded servers, whose sockets nobody else may open. Raises CannotSwitchError.
    """
    if os.geteuid() != ROOT:
        return None
    folder = data_folder(environ)
    if any(port is not None and port < FIRST_UNPRIVILEGED_PORT for port in ports):
        raise CannotSwitchError(f"only root may listen on ports below {FIRST_UNPRIVILEGED_PORT}")
    try:
        user = user_for(folder / "postgres")
    except EmbeddedServerError as err:
        raise CannotSwitchError(str(err)) from err
    if not user.can_enter(PROJECT) or not user.can_enter(folder):
        raise CannotSwitchError(f"user {user.uid} cannot enter {PROJECT} and {folder}")
    give_written_files(user, folder)
    try_to_start(user, environ)
    return user


def give_written_files(user: ServerUser, folder: Path) -> None:
    """Give the user the folders that the parts write to and the secrets next to the data, where root has them."""
    for name in WRITTEN_FOLDERS:
        written = folder / name
        written.mkdir(exist_ok=True)
        # what root owns, only root has written to: no link of others is followed
        if written.lstat().st_uid == ROOT:
            for path in (*written.rglob("*"), written):
                os.chown(path, user.uid, user.gid, follow_symlinks=False)
    for secret in SECRETS:
        kept = folder / secret.file_name
        if kept.is_file() and kept.lstat().st_uid == ROOT:
            os.chown(kept, user.uid, user.gid, follow_symlinks=False)


def try_to_start(user: ServerUser, environ: Mapping[str, str]) -> None:
    """Raise CannotSwitchError unless the user can load the settings and read the secrets.

    It tries, as modes, access lists and mounts matter.
    """
    try:
        done = subprocess.run(  # noqa: S603  our own command line
            [sys.executable, "-c", TRIAL],
            cwd=PROJECT,
            env=environ_of(user, environ),
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TRIAL_SECONDS,
            **user.switch(),
        )
    except (OSError, subprocess.TimeoutExpired) as err:
        raise CannotSwitchError(f"user {user.uid} cannot run {sys.executable}") from err
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise CannotSwitchError(f"user {user.uid} cannot load the service: {reason}")


def environ_of(user: ServerUser, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a process of that user: root's home is closed to it."""
    return {**environ, "HOME": str(data_folder(environ) / HOME)}
