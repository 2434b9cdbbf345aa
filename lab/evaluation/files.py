"""Samples out of a file, in whichever format it has."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from django.core.management.base import CommandError

from lab.evaluation import locomo, native
from lab.evaluation.datasets import BadDatasetError, EvaluationSample

Reader = Callable[[bytes], list[EvaluationSample]]

FORMATS: Mapping[str, Reader] = {"locomo": locomo.read_locomo_samples, "native": native.read_native_samples}


def open_file(path: Path, file_format: str = "") -> list[EvaluationSample]:
    """Read a file as `read_file` does, for commands. Raises CommandError."""
    try:
        return read_file(path, file_format)
    except OSError as err:
        raise CommandError(f"{path} cannot be read: {err.strerror}") from err
    except BadDatasetError as err:
        raise CommandError(f"{path}: {err}") from err


def read_file(path: Path, file_format: str = "") -> list[EvaluationSample]:
    """Read a data set; without a format it is guessed. Raises BadDatasetError, OSError."""
    document = path.read_bytes()
    samples = FORMATS[file_format or guess_format(document)](document)
    refuse_mixed(samples)
    if not any(sample.questions for sample in samples):
        raise BadDatasetError("there is no question whose answers are known")
    return samples


def refuse_mixed(samples: Sequence[EvaluationSample]) -> None:
    """Refuse samples that would see each other's memories: those of one agent, or of one user."""
    refuse_shared("name", [sample.name for sample in samples])
    refuse_shared("conversation", [talk.conversation_id for sample in samples for talk in sample.talks])
    users = [sample.user_id for sample in samples if sample.user_id]
    refuse_shared("user", users)
    if 0 < len(users) < len(samples):
        raise BadDatasetError("either every sample has a user, or none does")


def refuse_shared(noun: str, values: Sequence[str]) -> None:
    for value, count in Counter(values).items():
        if count > 1:
            raise BadDatasetError(f"{noun} {value!a} is there more than once")


def guess_format(document: bytes) -> str:
    return "locomo" if document.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[") else "native"
