"""Files that are written whole or not at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def scratch_file(path: Path, content: bytes) -> Iterator[Path]:
    """Yield a file next to `path` that holds this content, on disk already and readable for its owner only.

    Renamed to `path`, it replaces that file whole; a crash leaves the former one. What is not renamed is removed.
    """
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.")
    scratch = Path(name)
    try:
        with open(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        yield scratch
    finally:
        scratch.unlink(missing_ok=True)
