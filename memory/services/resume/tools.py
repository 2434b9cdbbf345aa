"""Tools whose last call in the resumed conversations failed: open ends of the work."""

from collections.abc import Iterator, Sequence

from memory.extraction.work_notes import NoteKind
from memory.models import ToolInvocation
from memory.owner import Owner
from memory.redaction import redact
from memory.retrieval.resume import ResumedLineage
from memory.retrieval.timeline_events import of_user
from memory.services.resume.items import NOTES, PacketItem, PacketSection, short_line

MAX_SCANNED_CALLS = 200
MAX_FAILED_TOOLS = 3
MAX_ERROR_CHARACTERS = 200
FAILED_TOOL_WEIGHT = 2.0
"""As much as a blocker: whoever goes on will call the tool again."""


def read_failed_tools(owner: Owner, lineage: ResumedLineage) -> list[ToolInvocation]:
    """Return the last call of each tool that failed at last, the latest first, among the last calls of the lineage."""
    if not lineage.conversations:
        return []
    rows = of_user(ToolInvocation.objects.visible_to(owner), owner)
    rows = rows.filter(conversation_id__in=list(lineage.conversations), success__isnull=False)
    # without the sealed columns, which are opened for what is shown only
    calls = rows.order_by("-timestamp", "-id").values_list("id", "tool_name", "success")[:MAX_SCANNED_CALLS]
    last = {name: (row_id, success) for row_id, name, success in reversed(calls)}
    failed = {row_id for row_id, success in last.values() if not success}
    if not failed:
        return []
    shown = rows.filter(id__in=failed).defer("tool_input", "tool_output")
    return list(shown.order_by("-timestamp", "-id")[:MAX_FAILED_TOOLS])


def failed_tool_items(failed: Sequence[ToolInvocation]) -> Iterator[PacketItem]:
    """Return an item for each failed tool: its name, and what it said."""
    for rank, call in enumerate(failed):
        error = call.error_message if isinstance(call.error_message, str) else ""
        said = short_line(redact(error), MAX_ERROR_CHARACTERS) if error.strip() else ""
        yield PacketItem(
            section=PacketSection.OPEN_ENDS,
            item_type=NoteKind.ERROR,
            text=f"{call.tool_name} failed: {said}" if said else f"{call.tool_name} failed",
            label="tool: ",
            source_text=error,
            weight=FAILED_TOOL_WEIGHT,
            position=(NOTES, call.timestamp, rank, 0),
            id=call.id,
            channel=call.channel,
            conversation_id=call.conversation_id,
            event_time=call.timestamp,
            reasons=["the last call of this tool failed"],
            is_distinct=True,
            details={"source": "tool"},
        )
