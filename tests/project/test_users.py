"""Commands run as the servers' user succeed, or say why they did not."""

import os

import pytest

from memory_project.embedded.errors import EmbeddedServerError
from memory_project.embedded.users import ServerUser

OURSELVES = ServerUser(uid=os.geteuid(), gid=os.getegid(), must_switch=False)


def test_a_command_of_the_servers_user_gets_no_secrets_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_SECRET_KEY", "tulip")

    assert "tulip" not in OURSELVES.run(["/usr/bin/env"], seconds=60).stdout


def test_a_command_that_takes_too_long_is_reported_in_a_sentence() -> None:
    with pytest.raises(EmbeddedServerError, match=r"^/bin/sleep took longer than 0 s; try again\.$"):
        OURSELVES.run(["/bin/sleep", "60"], seconds=0.1)
