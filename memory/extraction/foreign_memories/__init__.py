"""Memories out of the exports of other memory services: `read_export` yields them one by one.

To add a service, write a module with a function that takes a parsed document and yields records, and name it in
`READERS`. What a file says is checked by the services that store it; here only its shape is. Nothing in a file stops
the reading.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from memory.extraction.foreign_memories.hindsight import read_hindsight
from memory.extraction.foreign_memories.langgraph import read_langgraph
from memory.extraction.foreign_memories.letta import read_letta
from memory.extraction.foreign_memories.mem0 import read_mem0
from memory.extraction.foreign_memories.records import ForeignMemory, Record, Records, SkippedRecord, check_record
from memory.extraction.foreign_memories.zep import read_zep

__all__ = ["READERS", "ForeignMemory", "Record", "SkippedRecord", "read_export"]

READERS: Mapping[str, Callable[[Any], Records]] = {
    "hindsight": read_hindsight,
    "langgraph": read_langgraph,
    "letta": read_letta,
    "mem0": read_mem0,
    "zep": read_zep,
}


def read_export(source: str, document: Any) -> Iterator[Record]:
    """Yield the records of an export. `source` is a key of READERS, `document` the parsed JSON.

    Raises ValueError for a document in which records cannot be found.
    """
    try:
        for record in READERS[source](document):
            yield record if isinstance(record, SkippedRecord) else make_record(record)
    except (AttributeError, KeyError, TypeError) as err:
        raise ValueError("The file does not have the documented shape.") from err


def make_record(make: Callable[[], ForeignMemory]) -> Record:
    try:
        return check_record(make())
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
        return SkippedRecord("It does not have the documented shape.")
