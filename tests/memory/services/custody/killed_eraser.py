"""A process that continues an erasure, to be killed: `python -m … ACCOUNT ERASURE`. It says so before each batch."""

import os
import sys
from uuid import UUID

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memory_project.settings")
django.setup()

from django.utils import timezone  # noqa: E402

from memory.services.custody.subjects import continue_erasure  # noqa: E402


def main(account_id: UUID, erasure_id: UUID) -> None:
    status = ""
    while status != "completed":
        print("batch", flush=True)  # noqa: T201
        status = continue_erasure(account_id, erasure_id, now=timezone.now()).status


if __name__ == "__main__":
    main(UUID(sys.argv[1]), UUID(sys.argv[2]))
