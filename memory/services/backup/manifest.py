"""The manifest of a backup: versions, counts and the digest of each file."""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

FORMAT = 1
"""Format that this version writes. It reads this and all earlier ones."""
MANIFEST = "manifest.json"
DATABASE, LIVE, KEYS = "database.sql.gz", "redis.jsonl.gz", "keys.json"
"""Names of the files of a backup; the last one is absent in a backup without keys."""


class BackupError(Exception):
    """A backup that cannot be made or restored. The text is a whole sentence: what is wrong and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDigest:
    """The size and the SHA-256 of a file of a backup."""

    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Contents of a backup. `migrations` are the applied ones by app, `rows` the counts by table.

    `encryption_keys` are fingerprints of the keys that the data needs.
    """

    created_at: str
    version: str
    postgresql: int
    migrations: Mapping[str, list[str]]
    rows: Mapping[str, int]
    live_keys: int
    encryption_keys: list[str]
    files: Mapping[str, FileDigest]


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest into the folder, with a digest of itself."""
    body = {"format": FORMAT, **asdict(manifest)}
    text = json.dumps(body | {"sha256": digest_of_body(body)}, indent=2, sort_keys=True)
    with (folder / MANIFEST).open("w") as stream:
        stream.write(text + "\n")
        stream.flush()
        os.fsync(stream.fileno())


def digest_of_body(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of a backup, once it and all files that it names are verified. Raises BackupError."""
    try:
        body = json.loads((folder / MANIFEST).read_text())
    except FileNotFoundError as err:
        raise BackupError(f"{folder} holds no {MANIFEST}: it is not a complete backup.") from err
    except ValueError as err:
        raise BackupError(f"{folder / MANIFEST} is damaged.") from err
    if not isinstance(body, dict) or not isinstance(body.get("format"), int):
        raise BackupError(f"{folder / MANIFEST} is damaged.")
    if body["format"] > FORMAT:
        raise BackupError(
            f"The backup has format {body['format']}, and this version reads up to {FORMAT}: restore it with the "
            "version that made it."
        )
    digest = body.pop("sha256", "")
    if digest != digest_of_body(body):
        raise BackupError(f"{folder / MANIFEST} was altered: its digest differs.")
    del body["format"]
    files = {name: FileDigest(**each) for name, each in body.pop("files").items()}
    check_files(folder, files)
    return Manifest(files=files, **body)


def check_files(folder: Path, files: Mapping[str, FileDigest]) -> None:
    """Check that each file is there and is as it was written. Raises BackupError."""
    for name, expected in files.items():
        path = folder / name
        if not path.is_file():
            raise BackupError(f"{path} is missing: the backup is not complete.")
        if digest_of_file(path) != expected:
            raise BackupError(f"{path} was altered or damaged: its digest is not the manifest's. Nothing was changed.")


def digest_of_file(path: Path) -> FileDigest:
    """Return the size and the SHA-256 of a file, read in pieces."""
    with path.open("rb") as stream:
        return FileDigest(size_bytes=path.stat().st_size, sha256=hashlib.file_digest(stream, "sha256").hexdigest())
