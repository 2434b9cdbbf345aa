#!/usr/bin/env python
"""Django's commands, for the clone; `agent-memory manage` is the same for an installed wheel."""

from memory_project.manage import main

if __name__ == "__main__":
    main()
