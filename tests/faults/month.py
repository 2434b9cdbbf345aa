"""`python -m tests.faults.month`: one month twice, in calm weather and in a storm, and both come to the same.

In the storm a real worker does the jobs, is killed with -9 at random moments of them, and PostgreSQL and Valkey are
stopped in their midst and started again. What people do is done between the jobs: clients, not the service, would have
to repeat it.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import django
from django.core.management import call_command

from tests.faults.servers import durable_servers

VARIABLES = {
    "EMBEDDING_PROVIDER": "tiny",
    "MEMORY_ALLOW_TINY_EMBEDDINGS": "1",
    # an index of neighbours is built by chance, and finds by it
    "MEMORY_EXACT_SEARCH_ROWS": "1000000",
    "MEMORY_JOB_LEASE_SECONDS": "1",
    "MEMORY_EXTRACTION_LEASE_SECONDS": "15",
    "MEMORY_SUMMARY_LEASE_SECONDS": "15",
    "MEMORY_EMBED_LEASE_SECONDS": "10",
    "MEMORY_TASK_LOG_LEVEL": "WARNING",
    "DJANGO_SETTINGS_MODULE": "memory_project.settings",
}


def main(arguments: Sequence[str]) -> int:
    options = read_options(arguments)
    with durable_servers(**VARIABLES) as servers:
        # Django may only be loaded once the environment names the servers
        django.setup()
        call_command("migrate", verbosity=0, skip_checks=True)
        from tests.faults.weathers import compare  # noqa: PLC0415

        result = compare(options, servers)
    json.dump(result, sys.stdout, indent=2)
    return 0 if result["is_same"] and not result["unexplained"] else 1


def read_options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("conversations", 1_000), ("agents", 20), ("days", 30), ("seed", 7)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--kills", type=int, default=50, help="of the worker, with -9")
    parser.add_argument("--stops", type=int, default=3, help="of PostgreSQL, and as many of Valkey")
    parser.add_argument("--states", type=Path, metavar="FOLDER", help="keep both end states there, as JSON")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    os.environ.setdefault("MEMORY_LOG_LEVEL", "WARNING")
    sys.exit(main(sys.argv[1:]))
