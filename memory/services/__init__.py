"""Use cases by noun: every write and read that HTTP, admin, commands, jobs and `AgentMemory` share.

Functions take an `Owner` first, for whom they run. The docstring of each package names its public functions.

- what was said: `conversations`, `turns`, `sessions`, `summaries`, `prompt_context`
- what is known: `facts`, `entities`, `goals`, `strategies`, `learnings`, `profiles`, `tools`, `extraction`
- what was done: `records`, `compression`, `work_episodes`, `artifacts`, `resume`, `replay`
- keyed values: `working_memory`, `short_term`, `contexts`, `items`, `pools`, `router`, `storage`
- memories of any kind: `memories`, `notes`, `forgetting`, `embedding`, `recall`, `duplicates`
- the installation: `accounts`, `audit`, `bulk`, `operations`, `retention`, `backup`

To add a noun, add a package with such a docstring; what several nouns need belongs to `memories`.
"""
