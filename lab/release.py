"""Make a release: `.venv/bin/python -m lab.release 0.3.0`.

Asks for a dump of the version, runs the gate, moves the changelog's unreleased lines under the version, sets the
version, commits, tags, and packs the tagged tree into `dist/`: the service is run from its source tree. Nothing is
pushed. The version may be the one that `pyproject.toml` has already, as long as that has no tag.
"""

import argparse
import gzip
import re
import subprocess
import sys
from datetime import UTC, date, datetime
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+")
APPLIED = re.compile(r"^\d+\t(\w+)\t(\w+)\t", re.MULTILINE)
"""A row of `django_migrations` in a dump: app and name."""
UNRELEASED = "## [Unreleased]"
DRY_RUN = """\
Nothing is changed. A release would:
- run `make test`, and stop if it fails
- move the unreleased lines of CHANGELOG.md under "{heading}"
- set the version {version} in pyproject.toml
- commit that as "Release {version}" and tag it v{version}
- pack the tagged tree into dist/"""


class ReleaseError(Exception):
    """A reason not to release, as a whole sentence."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m lab.release", description=__doc__)
    parser.add_argument("version", help="the new version, such as 0.3.0")
    parser.add_argument("--dry-run", action="store_true", help="check all but the tests, and print what would be done")
    options = parser.parse_args()
    try:
        release(options.version, dry_run=options.dry_run)
    except ReleaseError as error:
        sys.exit(str(error))


def release(version: str, *, dry_run: bool, project: Path = PROJECT) -> None:
    """Make the release `version`. Raises ReleaseError before anything is changed."""
    changelog, settings, today = project / "CHANGELOG.md", project / "pyproject.toml", datetime.now(UTC).date()
    texts = {
        changelog: headed_changelog(changelog.read_text(), version, today),
        settings: versioned_settings(settings.read_text(), version),
    }
    if run("git", "tag", "--list", f"v{version}", project=project).strip():
        raise ReleaseError(f"The tag v{version} exists: the version is released already.")
    if run("git", "status", "--porcelain", project=project).strip():
        raise ReleaseError("There are uncommitted changes: commit or remove them first.")
    if missing := find_migrations_without_dump(version, project):
        raise ReleaseError(
            f"tests/upgrades/{version}.sql.gz lacks {missing[0]}, so the next version would not be compared with this "
            "one: make it with `pytest -n 0 tests/upgrades/make_dump.py`, and commit it."
        )
    if dry_run:
        print(DRY_RUN.format(version=version, heading=heading(version, today)))  # noqa: T201
        return
    run("make", "test", project=project)
    for path, text in texts.items():
        path.write_text(text)
    run("git", "commit", "--all", "--message", f"Release {version}", project=project)
    run("git", "tag", "--annotate", f"v{version}", "--message", f"Release {version}", project=project)
    pack(version, project)


def find_migrations_without_dump(version: str, project: Path) -> list[str]:
    """Return the project's migrations that the version's dump does not have: all of them if there is no dump."""
    dump = project / "tests" / "upgrades" / f"{version}.sql.gz"
    text = gzip.decompress(dump.read_bytes()).decode() if dump.exists() else ""
    applied = {f"{app}.{name}" for app, name in APPLIED.findall(text)}
    present = {f"{path.parent.parent.name}.{path.stem}" for path in project.glob("*/migrations/[0-9]*.py")}
    return sorted(present - applied)


def pack(version: str, project: Path) -> None:
    name = f"agent-memory-service-{version}"
    (project / "dist").mkdir(exist_ok=True)
    archive = f"--output=dist/{name}.tar.gz"
    run("git", "archive", "--format=tar.gz", f"--prefix={name}/", archive, f"v{version}", project=project)


def headed_changelog(text: str, version: str, today: date) -> str:
    """Return the changelog with its unreleased lines under a heading of the new version. Raises ReleaseError."""
    if not VERSION.fullmatch(version):
        raise ReleaseError(f"{version!r} is not a version; use three numbers, such as 0.3.0.")
    if f"## [{version}]" in text:
        raise ReleaseError(f"The changelog has a version {version} already.")
    _, found, rest = text.partition(UNRELEASED)
    if not found or not rest.partition("\n## ")[0].strip():
        raise ReleaseError("The changelog has no unreleased lines: there is nothing to release.")
    return text.replace(UNRELEASED, f"{UNRELEASED}\n\n{heading(version, today)}", 1)


def heading(version: str, today: date) -> str:
    return f"## [{version}] - {today}"


def versioned_settings(text: str, version: str) -> str:
    """Return `pyproject.toml` with the new version."""
    return re.sub(r'^version = ".*"$', f'version = "{version}"', text, count=1, flags=re.MULTILINE)


def run(*command: str, project: Path) -> str:
    """Run a command in the project and return what it printed. Raises ReleaseError if it fails."""
    done = subprocess.run(command, cwd=project, stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603
    if done.returncode != 0:
        raise ReleaseError(f"`{' '.join(command)}` failed with exit code {done.returncode}.")
    return done.stdout


if __name__ == "__main__":
    main()
