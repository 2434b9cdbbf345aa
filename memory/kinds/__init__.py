"""The kinds of memory: one module each, with everything that code for all kinds asks about the kind.

Services, retrieval, API, admin and lab ask `spec_of(kind)`, `all_kinds()` or `kinds_where(...)` instead of keeping
tables by kind. Code that belongs to one kind names it by a constant of `Kind`.

To add a kind of memory:

1. Add its constant to `Kind` in `base.py`, and a module of the same name here with its `SPEC`. The defaults of
   `KindSpec` suit plain knowledge. A kind that no code of this app names, such as one of another Django app, needs
   neither: call `register(SPEC)` before the first request, in `AppConfig.ready`.
2. If it has columns of its own, add an unmanaged model over `memories` with the base `MemoryRow` in `memory/models` and
   name it as `model`: the table gets its columns, NULL in rows of other kinds (`memory.models.table`). Run
   `makemigrations`, which also finds constraints and indexes that name kinds: those of the audience CONTEXT_READERS and
   those with `merging`.
3. Add a service that stores it by `memory.services.memories.store.store_memories`.
4. If other rows repeat its text or depend on its state, add a subclass of `services.memories.lifecycle.Lifecycle`
   to the package of that service and name it in `lifecycles`.
5. If its memories belong in every channel once they are prominent, write the two functions that `globalizing` names.
6. If it has an admin page of its own, name the page's model as `admin_page`.

Embedding, recall, prompt contexts, the timeline, decay, corrections, marks, erasure, the audit log and metrics need
nothing else. `tests/memory/test_kinds.py` adds a kind in this way.
"""

from importlib import import_module

from memory.kinds.base import (
    Audience,
    Globalizing,
    Kind,
    KindSpec,
    Merging,
    all_kinds,
    all_specs,
    kind_choices,
    kinds_of_types,
    kinds_seen_by,
    kinds_where,
    register,
    spec_of,
    unregister,
)

for _kind in Kind:
    register(import_module(f"{__name__}.{_kind.value}").SPEC)
