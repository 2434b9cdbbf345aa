"""Environments of their own for packages that conflict with the locks, or that change how pytest works.

They are made by pip in `.environments/` at the first use and kept. Where pip cannot get the packages, tests that
need them are skipped, and the summary of the run says so.
"""

import fcntl
import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".environments"
OURS = (ROOT / "clients" / "python" / "src", ROOT / "integrations" / "src")
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
INSTALL_SECONDS = 600
UNREACHABLE = (
    *("No matching distribution", "Connection", "connection", "timed out", "Temporary failure"),
    *("ENOTFOUND", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "EAI_AGAIN"),
)
"""Parts of what pip and npm say where they cannot get a package. Whatever else goes wrong fails the test."""


def make_environment(name: str, *requirements: str) -> Path:
    """Return the Python of an environment with these packages, and with our clients on its path."""
    digest = hashlib.sha256("\n".join(requirements).encode()).hexdigest()[:8]
    folder = FOLDER / f"{name}-{digest}"
    FOLDER.mkdir(exist_ok=True)
    # the processes of one test run may want it at once
    with (FOLDER / f".{name}").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if not (folder / "made").exists():
            install(folder, requirements)
    return folder / "bin" / "python"


def install(folder: Path, requirements: tuple[str, ...]) -> None:
    python = folder / "bin" / "python"
    run(sys.executable, "-m", "venv", "--clear", "--without-pip", str(folder))
    run(*PIP[:3], "--python", str(python), *PIP[3:], "install", *requirements)
    [packages] = (folder / "lib").glob("python*/site-packages")
    (packages / "ours.pth").write_text("".join(f"{path}\n" for path in OURS))
    (folder / "made").touch()


def unpack_source(requirement: str) -> Path:
    """Return the unpacked source archive of a package, which has its own tests."""
    folder = FOLDER / requirement.replace("==", "-")
    if not folder.exists():
        archives = FOLDER / "archives"
        # --no-build-isolation would need its build tools, which are not ours
        run(*PIP, "download", "--no-binary", ":all:", "--no-deps", "--dest", str(archives), requirement)
        name = requirement.replace("-", "_").replace("==", "-")
        folder.mkdir()
        run("tar", "xzf", str(archives / f"{name}.tar.gz"), "--strip-components", "1", "-C", str(folder))
    return folder


def run(*command: str) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=INSTALL_SECONDS)
    if any(sign in done.stderr for sign in UNREACHABLE) and done.returncode:
        pytest.skip(f"no environment: {' '.join(command)}: {done.stderr[-500:]}")
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr[-2_000:]}"
