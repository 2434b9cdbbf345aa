"""Generators that come from PyPI make clients of the OpenAPI document, and these compile and can be imported.

docs/generated-clients.md has the runs of the tools that do not come from there.
"""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.integrations.environments import make_environment
from tests.openapi import read_document

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

RUN_SECONDS = 400
CONFIGURATION = """
content_type_overrides:
  application/x-ndjson: application/octet-stream
  application/zip: application/octet-stream
post_hooks: []
"""
SMALLEST = {
    "openapi": "3.1.0",
    "info": {"title": "The smallest document", "version": "1"},
    "paths": {"/pets": {"get": {"operationId": "listPets", "responses": {"200": {"description": "Pets."}}}}},
    "components": {"schemas": {"Pet": {"type": "object", "properties": {"name": {"type": "string"}}}}},
}
"""A document with one property. openapi-generator warns of it as of every other one."""
WARNING = re.compile(r"^.*\b(?:WARN|WARNING|ERROR)\b.*$", re.M)


@pytest.fixture
def document(tmp_path: Path) -> Path:
    path = tmp_path / "openapi.json"
    path.write_text(json.dumps(read_document()))
    return path


def run(*command: str, folder: Path) -> str:
    """Run a command to its end, and return what it printed."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=RUN_SECONDS, check=False)
    assert done.returncode == 0, done.stdout[-3_000:] + done.stderr[-3_000:]
    return done.stdout + done.stderr


def import_package(python: Path, name: str, folder: Path) -> None:
    run(str(python), "-m", "compileall", "-q", name, folder=folder)
    run(str(python), "-c", f"import {name}, {name}.api", folder=folder)


def test_openapi_python_client_warns_of_nothing(document: Path, tmp_path: Path) -> None:
    python = make_environment("openapi-python-client", "openapi-python-client==0.29.1")
    (tmp_path / "config.yaml").write_text(CONFIGURATION)
    command = [str(python.with_name("openapi-python-client")), "generate", "--path", str(document)]

    printed = run(
        *command, "--output-path", "generated", "--meta", "none", "--config", "config.yaml", "--fail-on-warning",
        folder=tmp_path,
    )  # fmt: skip

    assert "Warning" not in printed
    import_package(python, "generated", tmp_path)


def test_openapi_generator_warns_of_nothing_that_it_does_not_warn_of_in_every_document(
    document: Path, tmp_path: Path
) -> None:
    if not shutil.which("java"):
        pytest.skip("openapi-generator needs Java")
    runtime = ("pydantic>=2", "urllib3>=2.1", "python-dateutil>=2.8", "typing-extensions>=4.7")
    python = make_environment("openapi-generator", "openapi-generator-cli==7.26.0", *runtime)
    smallest = tmp_path / "smallest.json"
    smallest.write_text(json.dumps(SMALLEST))
    command = [
        str(python.with_name("openapi-generator-cli")),
        "generate",
        "-g",
        "python",
        "--package-name",
        "memory_api",
    ]

    of_all = set(WARNING.findall(run(*command, "-i", str(smallest), "-o", "smallest", folder=tmp_path)))
    printed = run(*command, "-i", str(document), "-o", "generated", folder=tmp_path)

    assert [line for line in WARNING.findall(printed) if line not in of_all] == []
    import_package(python, "memory_api", tmp_path / "generated")
