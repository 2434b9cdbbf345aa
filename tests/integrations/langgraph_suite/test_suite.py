"""The store tests of langgraph's own packages on our store, over HTTP. They are fetched by pip, never committed."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.integrations.environments import make_environment, unpack_source
from tests.web_server import SharedServers, database_url

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow, pytest.mark.timeout(900)]

CHECKPOINT, POSTGRES = "langgraph-checkpoint==4.3.2", "langgraph-checkpoint-postgres==3.2.0"
PACKAGES = ("pytest", "pytest-asyncio", "pytest-mock", "psycopg[binary]", "httpx2~=2.16", "redis", CHECKPOINT)
REPLACEMENTS = Path(__file__).with_name("replacements.py")
OUTCOME = re.compile(r"^(PASSED|FAILED|ERROR|SKIPPED) (?:\[\d+\] )?tests/test_store\.py(?:::|:)(.*?)(?: - .*)?$", re.M)

EXPECTED_FAILURES = {
    CHECKPOINT: {
        # InMemoryStore fills a search by meaning up with what has no vector, PostgresStore and ours do not
        "test_embed_with_path",
    },
    POSTGRES: {
        *(f"test_scores[{query}-halfvec-l2]" for query in ("aaa", "bbb", "ccc", "abcd", "poisson")),
        "test_omit_expired_disabled_preserves_expired_rows",
    },
}
"""Tests that ask for what our store does not do, by the beginning of their names; docs/guides/langgraph.md says why."""


@pytest.mark.parametrize("package", [CHECKPOINT, POSTGRES])
def test_langgraphs_store_tests_pass(
    package: str, shared_server: SharedServers, api_key: str, empty_redis: None, tmp_path: Path
) -> None:
    url = f"http://127.0.0.1:{shared_server({}).port}"
    tests = tmp_path / "tests"
    tests.mkdir()
    for name in ("__init__.py", "embed_test_utils.py", "test_store.py"):
        shutil.copy(unpack_source(package) / "tests" / name, tests)
    shutil.copy(REPLACEMENTS, tests / "conftest.py")
    python = make_environment("langgraph", *PACKAGES)
    environ = {"AGENT_MEMORY_BASE_URL": url, "AGENT_MEMORY_API_KEY": api_key, "DATABASE_URL": database_url()}
    # the modes of connections to PostgreSQL are one to us
    command = [str(python), "-m", "pytest", "-q", "-rA", "--tb=short", "-o", "asyncio_mode=auto", "tests"]

    done = subprocess.run(
        [*command, "-k", "not pipe and not pool", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], **environ},
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )

    outcomes = {(outcome, name) for outcome, name in OUTCOME.findall(done.stdout)}
    failed = {name for outcome, name in outcomes if outcome in ("FAILED", "ERROR")}
    assert len(outcomes) > 40, done.stdout[-3_000:] + done.stderr
    unexpected = {name for name in failed if not name.startswith(tuple(EXPECTED_FAILURES[package]))}
    assert unexpected == set(), done.stdout[-20_000:]
