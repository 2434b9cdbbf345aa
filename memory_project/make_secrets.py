"""`python -m memory_project.make_secrets FOLDER`: makes the secrets that all nodes of an installation share.

Give the folder to each node (MEMORY_SECRETS_DIR), or what its files hold as variables.
"""

import sys
from argparse import ArgumentParser
from pathlib import Path

from memory_project.embedded.environment import SECRETS, make_secret


def main() -> int:
    parser = ArgumentParser(
        prog="python -m memory_project.make_secrets",
        description="Make the secrets that all nodes of an installation share, each in a file of its own that only its "
        "owner may read. Files that exist are left as they are.",
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="folder of the files, made if it is missing")
    folder: Path = parser.parse_args().folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for secret in SECRETS:
            made = "exists" if (folder / secret.file_name).exists() else "made"
            make_secret(secret, folder)
            sys.stdout.write(f"{folder / secret.file_name}  {secret.variable}  {made}\n")
    except OSError as err:
        sys.stderr.write(f"The secrets cannot be made in {folder}: {err.strerror}.\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
