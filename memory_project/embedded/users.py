"""The user that runs the servers: the current one, or an unprivileged one, since PostgreSQL refuses root."""

import os
import pwd
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory_project.embedded.errors import EmbeddedServerError

UNPRIVILEGED = "nobody"
TRIAL_SECONDS = 30
# none of our secrets, and no PG* variable that would change what a server does
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": "/"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerUser:
    """The user that owns the data and runs the servers. `must_switch` where that is not who we are."""

    uid: int
    gid: int
    must_switch: bool

    def can_enter(self, folder: Path) -> bool:
        """Return True if that user can enter the folder. It tries, as modes, access lists and mounts all matter."""
        return self._succeeds(["/bin/sh", "-c", 'cd -- "$1"', "sh", str(folder)])

    def can_run(self, program: Path) -> bool:
        """Return True if that user can run the program with its shared libraries. It tries."""
        return self._succeeds([str(program), "--version"])

    def own(self, path: Path) -> None:
        """Give the user a file or folder that this process has just made."""
        if self.must_switch:
            os.chown(path, self.uid, self.gid)

    def switch(self) -> dict[str, Any]:
        """Return the options of `subprocess` that start a process as that user."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []} if self.must_switch else {}

    def run(self, command: Sequence[str], *, seconds: float) -> "subprocess.CompletedProcess[str]":
        """Run something short as that user, outside of any folder and without our environment.

        Raises EmbeddedServerError when it takes longer.
        """
        try:
            return subprocess.run(  # noqa: S603  our own command lines
                command,
                cwd="/",
                env=dict(ENVIRONMENT),
                check=False,
                capture_output=True,
                text=True,
                timeout=seconds,
                **self.switch(),
            )
        except subprocess.TimeoutExpired as err:
            raise EmbeddedServerError(f"{command[0]} took longer than {seconds:.0f} s; try again.") from err

    def _succeeds(self, command: Sequence[str]) -> bool:
        try:
            return self.run(command, seconds=TRIAL_SECONDS).returncode == 0
        except OSError:
            return False


def user_for(existing_data: Path) -> ServerUser:
    """Return the owner of the data, if any exists yet; else the current user, or `nobody` for root."""
    if existing_data.exists():
        return _owner_of(existing_data)
    if os.geteuid() != 0:
        return ServerUser(uid=os.geteuid(), gid=os.getegid(), must_switch=False)
    try:
        entry = pwd.getpwnam(UNPRIVILEGED)
    except KeyError as err:
        raise EmbeddedServerError(
            f"Run by root, the servers run as the user {UNPRIVILEGED}, which does not exist."
        ) from err
    return ServerUser(uid=entry.pw_uid, gid=entry.pw_gid, must_switch=True)


def _owner_of(data: Path) -> ServerUser:
    owner = data.stat()
    if owner.st_uid == 0:
        raise EmbeddedServerError(
            f"{data} belongs to root, as which PostgreSQL refuses to run; chown it to {UNPRIVILEGED}."
        )
    try:
        # the user's own group: the data may lie in a folder of root's
        name, _, _, gid, *_ = pwd.getpwuid(owner.st_uid)
    except KeyError:
        name, gid = f"user {owner.st_uid}", owner.st_gid
    if os.geteuid() == 0:
        return ServerUser(uid=owner.st_uid, gid=gid, must_switch=True)
    if owner.st_uid != os.geteuid():
        raise EmbeddedServerError(f"{data} belongs to {name}: run as that user or root, or set MEMORY_DATA_DIR.")
    return ServerUser(uid=owner.st_uid, gid=os.getegid(), must_switch=False)
