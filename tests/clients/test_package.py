"""The Python client as a package: what it needs, and what a build has in it."""

import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2] / "clients" / "python"


def test_the_client_needs_an_http_library_and_nothing_else() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]

    assert [each.partition("~")[0] for each in project["dependencies"]] == ["httpx2"]


@pytest.mark.slow
def test_a_wheel_and_a_source_archive_have_all_modules_and_the_types(tmp_path: Path) -> None:
    source = shutil.copytree(PROJECT, tmp_path / "python", ignore=shutil.ignore_patterns("*.egg-info", "build", "dist"))
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(tmp_path), str(source)]
    subprocess.run(command, check=True, capture_output=True, timeout=110)
    modules = {path.name for path in (PROJECT / "src" / "agent_memory_client").iterdir() if path.is_file()}

    [wheel], [archive] = tmp_path.glob("*.whl"), tmp_path.glob("*.tar.gz")

    assert {Path(name).name for name in zipfile.ZipFile(wheel).namelist()} >= modules | {"LICENSE"}
    with tarfile.open(archive) as names:
        assert {Path(name).name for name in names.getnames()} >= modules | {"LICENSE", "README.md", "pyproject.toml"}
