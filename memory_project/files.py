"""Files that are written whole or not at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def scratch_file(path: Path, content: bytes) -> Iterator[Path]:
    """Yield a file next to `path` that holds this content, on disk already and readable for its owner only.

    Renamed to `path`, it replaces that file whole; a crash leaves the former one. What is not renamed is removed. Where
    root replaces a file of somebody else, it stays that user's.
    """
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.")
    scratch = Path(name)
    try:
        with open(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
            if os.geteuid() == 0 and path.exists():
                former = path.stat()
                os.fchown(stream.fileno(), former.st_uid, former.st_gid)
        yield scratch
    finally:
        scratch.unlink(missing_ok=True)
