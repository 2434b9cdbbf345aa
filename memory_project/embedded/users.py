"""As whom the servers run: as ourselves, or, since PostgreSQL refuses root, as an unprivileged user."""

import os
import pwd
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from memory_project.embedded.errors import EmbeddedServerError

UNPRIVILEGED = "nobody"
TRIAL_SECONDS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerUser:
    """The user that owns the data and runs the servers. `must_switch` where that is not who we are."""

    uid: int
    gid: int
    must_switch: bool

    def can_enter(self, folder: Path) -> bool:
        """Found out by trying, as that user: modes, access lists and mounts all have a say."""
        return self._succeeds(["/bin/sh", "-c", 'cd -- "$1"', "sh", str(folder)])

    def can_run(self, program: Path) -> bool:
        """Found out by trying, shared libraries included."""
        return self._succeeds([str(program), "--version"])

    def own(self, path: Path) -> None:
        """Hand over something that we have just made."""
        if self.must_switch:
            os.chown(path, self.uid, self.gid)

    def _succeeds(self, command: Sequence[str]) -> bool:
        switch = self.must_switch
        try:
            done = subprocess.run(
                command,
                cwd="/",
                env={},
                check=False,
                capture_output=True,
                timeout=TRIAL_SECONDS,
                user=self.uid if switch else None,
                group=self.gid if switch else None,
                extra_groups=[] if switch else None,
            )
        except OSError:
            return False
        return done.returncode == 0


def user_for(existing_data: Path) -> ServerUser:
    """The owner of the data if there is any yet; else ourselves, or `nobody` for root."""
    if existing_data.exists():
        return _owner_of(existing_data)
    if os.geteuid() != 0:
        return ServerUser(uid=os.geteuid(), gid=os.getegid(), must_switch=False)
    return _unprivileged()


def _owner_of(data: Path) -> ServerUser:
    owner = data.stat()
    if owner.st_uid == 0:
        raise EmbeddedServerError(
            f"{data} belongs to root, as which PostgreSQL refuses to run; chown it to {UNPRIVILEGED}."
        )
    if os.geteuid() == 0:
        return ServerUser(uid=owner.st_uid, gid=owner.st_gid, must_switch=True)
    if owner.st_uid != os.geteuid():
        raise EmbeddedServerError(
            f"{data} belongs to {_name_of(owner.st_uid)}: run as that user or as root, or set MEMORY_DATA_DIR to another folder."
        )
    return ServerUser(uid=owner.st_uid, gid=os.getegid(), must_switch=False)


def _unprivileged() -> ServerUser:
    try:
        entry = pwd.getpwnam(UNPRIVILEGED)
    except KeyError as err:
        raise EmbeddedServerError(
            f"Run by root, the servers run as the user {UNPRIVILEGED}, which does not exist."
        ) from err
    return ServerUser(uid=entry.pw_uid, gid=entry.pw_gid, must_switch=True)


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
