"""Actions on many rows, which the pages of the admin declare, and the registry in which jobs find them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from memory.errors import MemoryServiceError, NotFound
from memory.models import Memory
from memory.owner import Owner

MAX_REFUSALS = 5
"""Different reasons of refusals that are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkResult:
    """The result of an action on some rows: those that it changed, and why it refused others."""

    changed: Sequence[UUID]
    refused: int = 0
    refusals: Sequence[str] = ()


Apply = Callable[[Owner, Sequence[UUID], datetime], BulkResult]
"""Changes those of the owner's rows that have these ids, in the caller's transaction. Idempotent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkAction:
    """An action that staff can do to many rows of a model.

    `label` names it in the list of actions, `done` begins the sentence that reports it, such as "Retracted". `undo`
    gets the ids of the rows that were changed; without one the action cannot be undone. `codename` is the permission
    that a member of staff needs for as long as the change runs; the list sets it.
    """

    name: str
    label: str
    done: str
    apply: Apply
    permission: str = "change"
    codename: str = ""
    undo: Apply | None = None
    explanation: str = ""
    is_destructive: bool = False


ACTIONS: dict[tuple[str, str], BulkAction] = {}
"""The actions by model and name."""


def register_action(model: str, action: BulkAction) -> None:
    ACTIONS[model, action.name] = action


def find_action(model: str, name: str) -> BulkAction:
    """Return the action of a model. Raises NotFound if this version has none of that name."""
    if (model, name) not in ACTIONS:
        raise NotFound(f"there is no bulk action {name!r} of {model!r}")
    return ACTIONS[model, name]


def change_each(rows: Iterable[Any], change: Callable[[Any], object]) -> BulkResult:
    """Change the rows one by one, each in a transaction of its own. A row counts unless `change` returns False."""
    changed: list[UUID] = []
    refused, refusals = 0, set()
    for row in rows:
        try:
            with transaction.atomic():
                is_changed = change(row) is not False
        except MemoryServiceError as err:
            refused += 1
            refusals.add(str(err))
        else:
            changed += [row.pk] if is_changed else []
    return BulkResult(changed=changed, refused=refused, refusals=sorted(refusals)[:MAX_REFUSALS])


def change_memories(owner: Owner, memory_ids: Sequence[UUID], change: Callable[[Sequence[UUID]], object]) -> BulkResult:
    """Change memories together, and count those whose version has changed or that are gone since."""
    rows = Memory.objects.visible_to(owner).filter(id__in=memory_ids)
    before = dict(rows.values_list("id", "version"))
    try:
        with transaction.atomic():
            change(memory_ids)
    except MemoryServiceError:
        # one of them was refused: find out which

        def change_one(row: Memory) -> bool:
            change([row.pk])
            return bool(not rows.filter(id=row.pk, version=before[row.pk]).exists())

        return change_each(rows.only("id", "account_id").order_by("id"), change_one)
    after = dict(rows.values_list("id", "version"))
    return BulkResult(changed=[id_ for id_ in before if after.get(id_) != before[id_]])
