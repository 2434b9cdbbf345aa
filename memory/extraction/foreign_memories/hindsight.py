"""Hindsight: memory units of a bank, as its list or a recall returns them, or the archive that it exports.

An archive is a .zip with `manifest.json`, a file for each document with its facts, and one of observations. Facts have
no ids there: a fact is known by its document and its place in it.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import Any

from memory.extraction.foreign_memories.records import (
    ForeignMemory,
    Json,
    Records,
    SkippedRecord,
    keep_members,
    leave_out,
    list_of,
    parse_any_time,
)

MANIFEST, OBSERVATIONS, MENTAL_MODELS = "manifest.json", "observations.json", "mental_models.json"
DOCUMENT_FOLDER = "documents/"
KEPT = ("context", "tags", "entities", "document_id", "proof_count", "occurred_start", "occurred_end")


def read_hindsight(document: Any) -> Records:
    """Read the units. The list has invalidated ones as well."""
    if isinstance(document, Mapping) and MANIFEST in document:
        yield from read_archive(document)
        return
    bank_id = str(document.get("bank_id") or "") if isinstance(document, Mapping) else ""
    for unit in list_of(document, "items", "results", "memories"):
        if isinstance(unit, Mapping) and unit.get("state", "valid") == "invalidated":
            yield SkippedRecord("It was invalidated there.")
            continue
        yield partial(make_hindsight_note, unit, bank_id)


def read_archive(files: Mapping[str, Any]) -> Records:
    """Read the files of an archive, by their names in it."""
    bank_id = str(files[MANIFEST].get("source_bank_id") or "")
    for name in sorted(each for each in files if each.startswith(DOCUMENT_FOLDER)):
        document = files[name]
        if isinstance(document, Mapping):
            yield from make_numbered_notes(document.get("facts") or (), bank_id, str(document.get("id") or name))
        else:
            yield SkippedRecord("It does not have the documented shape.")
    rows = files.get(OBSERVATIONS) or ()
    observations = [{"fact_type": "observation", **each} if isinstance(each, Mapping) else each for each in rows]
    yield from make_numbered_notes(observations, bank_id, "")
    for model in files.get(MENTAL_MODELS) or ():
        yield partial(make_model_note, model, bank_id)
    yield from leave_out(files, ("directives.json",), "Directives are no memories.")


def make_numbered_notes(units: Iterable[Json], bank_id: str, document_id: str) -> Records:
    for index, unit in enumerate(units):
        if not isinstance(unit, Mapping):
            yield SkippedRecord("It does not have the documented shape.")
            continue
        own = {"document_id": document_id} if document_id else {}
        # observations are rewritten in place and have no document: what they say is what they are
        place = (document_id, str(index)) if document_id else ("observation", str(unit.get("text")))
        yield partial(make_hindsight_note, {"id": "\n".join((bank_id, *place)), **own, **unit}, bank_id)


def make_hindsight_note(unit: Json, bank_id: str) -> ForeignMemory:
    kept = keep_members(unit, KEPT)
    kind = unit.get("type") or unit.get("fact_type")
    return ForeignMemory(
        source_id=str(unit["id"]),
        text=str(unit.get("text") or ""),
        agent_id=str(unit.get("bank_id") or bank_id),
        metadata=dict(unit.get("metadata") or {}) | {"hindsight": kept | ({"type": kind} if kind else {})},
        event_time=time_of_unit(unit),
    )


def time_of_unit(unit: Json) -> datetime | None:
    """Return when it happened, else when it was mentioned or stored. What was a plan then did not happen yet."""
    names = ("occurred_start", "mentioned_at", "event_date", "date", "created_at")
    times = [time for time in map(parse_any_time, map(unit.get, names)) if time is not None]
    return min(times[:2], default=None)


def make_model_note(model: Json, bank_id: str) -> ForeignMemory:
    """Make a note of a mental model, which is a text that Hindsight wrote about a subject."""
    content = str(model.get("content") or "")
    return ForeignMemory(
        source_id=f"{bank_id}\nmental model\n{model['id']}",
        text=f"{model.get('name') or 'Mental model'}: {content}" if content.strip() else "",
        agent_id=bank_id,
        metadata={"hindsight": keep_members(model, ("tags", "source_query")) | {"type": "mental_model"}},
        event_time=parse_any_time(model.get("last_refreshed_at") or model.get("created_at")),
    )
