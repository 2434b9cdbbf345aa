"""The release command: what it makes of the changelog and the version, and what it refuses."""

import gzip
import re
import subprocess
from datetime import date
from pathlib import Path

import pytest
from django.conf import settings

from lab.release import PROJECT, ReleaseError, headed_changelog, release, versioned_settings

CHANGELOG = (
    "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A thing.\n\n## [0.2.0] - 2026-01-01\n\n- An older thing.\n"
)


def git(project: Path, *command: str) -> str:
    author = ("-c", "user.name=Ana", "-c", "user.email=ana@example.org")
    return subprocess.run(["git", *author, *command], cwd=project, check=True, stdout=subprocess.PIPE, text=True).stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a repository with unreleased lines and no tag."""
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    (tmp_path / "pyproject.toml").write_text('version = "0.3.0"\n')
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message", "Add a thing")
    return tmp_path


def test_unreleased_lines_move_under_the_new_version() -> None:
    text = headed_changelog(CHANGELOG, "0.3.0", date(2026, 2, 3))

    assert "## [Unreleased]\n\n## [0.3.0] - 2026-02-03\n\n### Added\n\n- A thing." in text
    assert text.endswith("## [0.2.0] - 2026-01-01\n\n- An older thing.\n")


@pytest.mark.parametrize(
    ("text", "version", "reason"),
    [
        (CHANGELOG, "0.3", "is not a version"),
        (CHANGELOG, "0.2.0", "has a version 0.2.0 already"),
        ("# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-01-01\n", "0.3.0", "no unreleased lines"),
        ("# Changelog\n", "0.3.0", "no unreleased lines"),
    ],
)
def test_an_invalid_release_is_refused(text: str, version: str, reason: str) -> None:
    with pytest.raises(ReleaseError, match=reason):
        headed_changelog(text, version, date(2026, 2, 3))


def test_only_the_projects_own_version_is_set() -> None:
    text = '[project]\nversion = "0.2.0"\n\n[tool.other]\nversion = "1.0.0"\n'

    assert versioned_settings(text, "0.3.0") == '[project]\nversion = "0.3.0"\n\n[tool.other]\nversion = "1.0.0"\n'


def test_the_projects_present_version_is_released_or_can_be() -> None:
    changelog = (PROJECT / "CHANGELOG.md").read_text()
    latest = re.search(r"^## \[([0-9.]+)\] - [0-9]{4}-[0-9]{2}-[0-9]{2}$", changelog, flags=re.MULTILINE)

    assert latest
    assert latest[1] == settings.VERSION or headed_changelog(changelog, settings.VERSION, date(2026, 2, 3))


def test_a_dry_run_says_what_it_would_do_and_changes_nothing(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    release("0.3.0", dry_run=True, project=project)

    printed = capsys.readouterr().out
    assert "## [0.3.0] - " in printed
    assert "tag it v0.3.0" in printed
    assert git(project, "status", "--porcelain") == git(project, "tag") == ""


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_version_with_a_tag_is_refused_before_anything_is_changed(project: Path, dry_run: bool) -> None:
    git(project, "tag", "v0.3.0")

    with pytest.raises(ReleaseError, match=r"tag v0\.3\.0 exists"):
        release("0.3.0", dry_run=dry_run, project=project)
    assert git(project, "status", "--porcelain") == ""


@pytest.mark.parametrize("dry_run", [True, False])
def test_uncommitted_changes_are_refused(project: Path, dry_run: bool) -> None:
    (project / "thing.py").write_text("")

    with pytest.raises(ReleaseError, match="uncommitted changes"):
        release("0.3.0", dry_run=dry_run, project=project)


@pytest.mark.parametrize("dumped", [None, "0001_initial"])
def test_a_version_whose_dump_lacks_a_migration_is_refused(project: Path, dumped: str | None) -> None:
    for name in ("0001_initial", "0002_shade"):
        file = project / "memory" / "migrations" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
    if dumped:
        add_dump(project, dumped)
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--message", "Add migrations")

    with pytest.raises(ReleaseError, match=r"0\.3\.0\.sql\.gz lacks memory\.000[12]_\w+, so the next version"):
        release("0.3.0", dry_run=True, project=project)

    add_dump(project, "0001_initial", "0002_shade")
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--message", "Add a dump")
    release("0.3.0", dry_run=True, project=project)


def add_dump(project: Path, *names: str) -> None:
    file = project / "tests" / "upgrades" / "0.3.0.sql.gz"
    file.parent.mkdir(parents=True, exist_ok=True)
    rows = "".join(f"{number}\tmemory\t{name}\t2026-01-01 00:00:00+00\n" for number, name in enumerate(names))
    file.write_bytes(gzip.compress(rows.encode()))
