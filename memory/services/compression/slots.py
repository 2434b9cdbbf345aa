"""The first level: each slot of a record in fewer words, a row of its own, derived from the one that it came as.

Prose may shrink. What tools were called with and gave back, the points of a rationale, and the data of a slot stay. A
slot that gets no shorter, one that is pinned, and a reasoning deeper than the account's policy stay the rows that they
were.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby
from typing import Any

from django.db import transaction

from memory import conf
from memory.extraction.compression import Passage
from memory.extraction.compressors import work_compressor
from memory.extraction.turn_slots import Call, Rationale
from memory.models import CompressionLevel, TurnRecord, TurnSlot
from memory.owner import Owner
from memory.providers.language_models import Usage
from memory.reasoning import ReasoningTier, is_deeper
from memory.services.compression.compress import (
    ACTOR,
    Line,
    Stretch,
    Task,
    Worked,
    archive_sources,
    carry_links,
    due_records,
    lock_log,
    lock_memories,
    lock_records,
    settled_columns,
)
from memory.services.embedding.embed import embed_texts
from memory.services.memories.links import DERIVED_FROM, NewLink, insert_links
from memory.services.memories.store import store_memories
from memory.services.records.reasoning import read_policy
from memory.tokens import estimate_tokens

RAW, SUMMARIZED = CompressionLevel.RAW, CompressionLevel.SLOT_SUMMARIZED
COPIED = (
    *("slot", "tier", "provenance", "record_id", "kind", "agent_id", "user_id", "channel", "conversation_id"),
    *("language", "salience", "event_time", "expires_at", "source", "trust", "metadata"),
)
"""Of a slot, what a shorter one has from it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotText:
    """A slot's text: prose, and behind it what stays whole. Corrected texts are prose."""

    slot: TurnSlot
    prose: str
    whole: str

    def told(self, prose: str) -> str:
        return "\n".join(filter(None, [prose, self.whole]))


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotsPiece:
    """A record whose slots are to be told in fewer words."""

    record: TurnRecord
    texts: Sequence[SlotText]
    usages: list[Usage] = field(default_factory=list)

    @property
    def records(self) -> Sequence[TurnRecord]:
        return [self.record]

    @property
    def passages(self) -> Sequence[Passage]:
        return [Passage(part=text.slot.slot, text=text.prose) for text in self.texts]


def compress_slots(stretch: Stretch) -> Worked:
    """Bring the raw records of a stretch to the first level."""
    after = timedelta(hours=conf.COMPRESS_AFTER_HOURS)
    due = due_records(RAW, older_than=after, now=stretch.now, account_id=stretch.account_id)
    rows = due if stretch.after is None else due.filter(id__gt=stretch.after)
    ids = list(rows.order_by("id").values_list("id", flat=True)[: stretch.limit])
    last = ids[-1] if len(ids) == stretch.limit else None
    if stretch.dry_run:
        return Worked(examined=len(ids), changed=len(ids), figures={}, last=last)
    store = partial(store_slots, now=stretch.now)
    line = Line(compressor=work_compressor(), read=read_slots, store=store, now=stretch.now)
    return Worked.of(list(line.work_off([[each] for each in ids], renew=stretch.renew)), last=last)


def read_slots(task: Task) -> Sequence[SlotsPiece]:
    """Three statements. Quarantined slots are left alone."""
    record = TurnRecord.objects.filter(id__in=task, level=RAW).first()
    if record is None:
        return []
    slots: Any = TurnSlot.objects
    rows = slots.filter(record=record, level=RAW, archived=False, quarantined=False)
    allowed = read_policy(record.account_id).tier
    return [SlotsPiece(record=record, texts=[split_text(slot, allowed) for slot in rows.order_by("id")])]


def split_text(slot: TurnSlot, allowed: ReasoningTier) -> SlotText:
    whole = "\n".join(lines) if (lines := whole_lines(slot)) else ""
    if slot.pinned or is_withheld(slot, allowed) or (whole and slot.text == whole):
        return SlotText(slot=slot, prose="", whole=slot.text)
    if whole and slot.text.endswith(f"\n{whole}"):
        return SlotText(slot=slot, prose=slot.text.removesuffix(f"\n{whole}"), whole=whole)
    return SlotText(slot=slot, prose=slot.text, whole="")


def is_withheld(slot: TurnSlot, allowed: ReasoningTier) -> bool:
    """Whether it tells more of a reasoning than the account allows now: that goes to no language model, and no shorter
    text of it to an embedder."""
    return slot.slot == TurnSlot.Slot.REASONING and is_deeper(slot.tier, allowed)


def whole_lines(slot: TurnSlot) -> list[str]:
    """What stays of a slot as it is: calls of tools, and the points of a rationale."""
    if slot.slot == TurnSlot.Slot.ACTION:
        return [Call(**call).tell() for call in slot.data.get("calls", [])]
    if slot.slot == TurnSlot.Slot.REASONING:
        return list(filter(None, [Rationale.of_json(slot.data.get("rationale", {})).tell()]))
    return []


def store_slots(piece: SlotsPiece, proses: Sequence[str], *, now: datetime) -> Mapping[str, int] | None:
    """None where the record, or one of its slots, has changed since it was read."""
    told = {text.slot.id: text.told(prose) for text, prose in zip(piece.texts, proses, strict=True)}
    slots = [text.slot for text in piece.texts]
    shorter = [slot for slot in slots if is_shorter(told[slot.id], slot)]
    # outside the transaction: it may take seconds
    embedded = embed_texts([told[slot.id] for slot in shorter])
    record = piece.record
    with transaction.atomic():
        if not lock_log(record.log_id) or not lock_records([record], RAW) or lock_memories(slots) is None:
            return None
        made = {slot: shorter_slot(slot, told[slot.id]) for slot in shorter}
        owner = Owner(account_id=record.account_id, channel=record.channel, actor=ACTOR)
        for holder, rows in groupby(made.values(), key=lambda row: (row.agent_id, row.user_id, row.channel)):
            writer = replace(owner, agent_id=holder[0], user_id=holder[1], channel=holder[2])
            store_memories(writer, list(rows), embedded=embedded, own={}, now=now)
        derive(record, {slot.id: row.id for slot, row in made.items()})
        archive_sources(owner, shorter, conversation_id=record.conversation_id, now=now)
        keep_as_they_are([slot for slot in slots if slot not in made])
        tokens = sum(made.get(slot, slot).token_count for slot in slots)
        TurnRecord.objects.filter(id=record.id).update(level=SUMMARIZED, tokens=tokens, **settled_columns(now))
    before = sum(slot.token_count for slot in slots)
    return {"tokens_before": before, "tokens_after": tokens, "slots": len(shorter)}


def is_shorter(text: str, slot: TurnSlot) -> bool:
    return bool(text.strip()) and estimate_tokens(text) < slot.token_count


def shorter_slot(slot: TurnSlot, text: str) -> TurnSlot:
    """Not stored yet."""
    row = TurnSlot(text=text, level=SUMMARIZED, data=slot.data, **{name: getattr(slot, name) for name in COPIED})
    row.identity = f"{slot.record_id}:{slot.slot}:{SUMMARIZED.value}"
    return row


def derive(record: TurnRecord, made_of: Mapping[Any, Any]) -> None:
    links = [NewLink(source_id=new, type=DERIVED_FROM, target_id=old) for old, new in made_of.items()]
    insert_links(record.account_id, links)
    carry_links(record.account_id, made_of)


def keep_as_they_are(slots: Sequence[TurnSlot]) -> None:
    """They are of the next level as they stand."""
    rows: Any = TurnSlot.objects.filter(pk__in=[slot.pk for slot in slots])
    if slots:
        rows.update(level=SUMMARIZED)
