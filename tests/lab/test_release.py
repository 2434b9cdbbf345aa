"""The release command: what it makes of the changelog and the version, and what it refuses."""

from datetime import date
from pathlib import Path

import pytest

from lab.release import ReleaseError, headed_changelog, release, versioned_settings

CHANGELOG = (
    "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A thing.\n\n## [0.2.0] - 2026-01-01\n\n- An older thing.\n"
)


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


def test_a_dry_run_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    (tmp_path / "pyproject.toml").write_text('version = "0.2.0"\n')

    release("0.3.0", dry_run=True, project=tmp_path)

    assert "## [0.3.0] - " in capsys.readouterr().out
    assert (tmp_path / "CHANGELOG.md").read_text() == CHANGELOG
