"""The command `agent-memory` of an installed service.

    agent-memory up                     everything, with servers of its own where none are configured
    agent-memory serve ROLE             one role: web, worker, beat, mcp or all
    agent-memory manage COMMAND …       a command of Django or of the service, such as migrate
    agent-memory make-secrets FOLDER    the secrets that all nodes share

Other words are for the package `agent-memory-integrations`, if it is installed: it has a command of this name as well.
"""

import runpy
import sys
from importlib.util import find_spec

MODULES = {
    "up": "memory_project.up",
    "serve": "memory_project.serve",
    "manage": "memory_project.manage",
    "make-secrets": "memory_project.make_secrets",
}
OTHERS = "agent_memory_integrations"


def main() -> None:
    """Run the command that the first argument names."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if module := MODULES.get(name):
        sys.argv[:2] = [f"agent-memory {name}"]
    elif name not in {"", "-h", "--help"} and find_spec(OTHERS) is not None:
        module = f"{OTHERS}.hooks"
    else:
        sys.stdout.write(__doc__ or "")
        sys.exit(0 if name in {"-h", "--help"} else 2)
    runpy.run_module(module, run_name="__main__", alter_sys=False)


if __name__ == "__main__":
    main()
