"""Samples out of a file, in whichever format it has."""

from collections.abc import Callable, Mapping
from pathlib import Path

from memory.management.evaluation import locomo, native
from memory.management.evaluation.datasets import BadDatasetError, Sample

Reader = Callable[[bytes], list[Sample]]

FORMATS: Mapping[str, Reader] = {"locomo": locomo.read_samples, "native": native.read_samples}


def read_file(path: Path, file_format: str = "") -> list[Sample]:
    """Without a format it is guessed: LoCoMo's files are lists. Raises BadDatasetError, OSError."""
    document = path.read_bytes()
    samples = FORMATS[file_format or guess_format(document)](document)
    names = [sample.name for sample in samples]
    for name in names:
        if names.count(name) > 1:
            raise BadDatasetError(f"two samples are named {name!a}")
    if not any(sample.questions for sample in samples):
        raise BadDatasetError("there is no question whose answers are known")
    return samples


def guess_format(document: bytes) -> str:
    return "locomo" if document.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[") else "native"
