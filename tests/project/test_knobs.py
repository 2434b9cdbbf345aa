"""Settings from the environment: nonsense stops the start with one sentence that names the variable."""

import os
import runpy
import subprocess
import sys

import pytest

from memory_project.embedded.places import PROJECT
from memory_project.knobs import SettingError

NONSENSE = [
    ("MEMORY_WEB_THREADS", "abc"),
    ("MEMORY_WEB_THREADS", "0"),
    ("MEMORY_WEB_WORKERS", "１"),
    ("MEMORY_WEB_WORKERS", ""),
    ("MEMORY_WORKER_PROCESSES", "2.5"),
    ("MEMORY_RATE_LIMIT_PER_MINUTE", "x"),
    ("MEMORY_RETRIEVAL_RATE_LIMIT_PER_MINUTE", "0"),
    ("MEMORY_IDEMPOTENCY_HOURS", "-1"),
    ("MEMORY_BODY_LIMIT_BYTES", "8MB"),
    ("MEMORY_CLIENT_TIMEOUT_SECONDS", "nan"),
    ("REDIS_TIMEOUT_SECONDS", "inf"),
    ("EMBEDDING_DIMENSIONS", "x"),
    ("EMBEDDING_TIMEOUT_SECONDS", "soon"),
    ("EMBEDDING_THREADS", "-1"),
    ("MEMORY_DEBUG", "maybe"),
    ("MEMORY_LOG_FORMAT", "xml"),
    ("MEMORY_LOG_LEVEL", "loud"),
    ("DATABASE_URL", "localhost"),
    ("REDIS_URL", "localhost:6379"),
]


@pytest.mark.parametrize(("name", "text"), NONSENSE)
def test_nonsense_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    monkeypatch.setenv(name, text)

    with pytest.raises(SettingError, match=f"^{name} must be .+[.]$"):
        runpy.run_path(str(PROJECT / "memory_project" / "settings.py"))


@pytest.mark.parametrize(("name", "text"), [("MEMORY_AUDIT_LEVEL", "loud"), ("MEMORY_JOB_ATTEMPTS", "many")])
def test_nonsense_of_the_domain_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    monkeypatch.setenv(name, text)

    with pytest.raises(SettingError, match=f"^{name} must be .+[.]$"):
        runpy.run_path(str(PROJECT / "memory" / "conf.py"))


def test_a_url_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "mysql://memory:secret@127.0.0.1/memory")

    with pytest.raises(SettingError) as refused:
        runpy.run_path(str(PROJECT / "memory_project" / "settings.py"))

    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("command", [("-m", "memory_project.up"), ("manage.py", "check")], ids=["make up", "manage.py"])
@pytest.mark.parametrize(("name", "text"), [("MEMORY_WEB_THREADS", "abc"), ("MEMORY_AUDIT_LEVEL", "loud")])
def test_nonsense_is_one_sentence_and_exit_code_1(command: tuple[str, ...], name: str, text: str) -> None:
    ended = subprocess.run(
        [sys.executable, *command],
        cwd=PROJECT,
        env=os.environ | {name: text},
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert (ended.returncode, ended.stdout) == (1, "")
    [sentence] = ended.stderr.splitlines()
    assert sentence.startswith(f"{name} must be ")
