"""Turns: found by their words, shown as in the transcript, corrected and marked. Correcting the text erases it."""

from datetime import UTC, datetime
from functools import partial
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html

from memory.admin.columns import column, text_column, turn_url
from memory.admin.fields import ExternalIdField
from memory.admin.memories import LONG_COLUMNS, MemoryKindAdmin, OwnedMemoryForm
from memory.admin.object_actions import ChangeFormActionAdmin, ObjectAction
from memory.admin.transcripts import whole_turn
from memory.models import Turn
from memory.owner import Owner
from memory.services.memories.correct import MARKS, mark_memories


class TurnForm(OwnedMemoryForm):
    """The user and the channel are the conversation's."""

    name = ExternalIdField(required=False, label="Speaker")


def mark_turn(mark: str, owner: Owner, turn: Turn, data: dict[str, Any]) -> str:
    mark_memories(owner, [turn.pk], mark=mark, now=datetime.now(UTC))
    return f"Done: {mark}."


@admin.register(Turn)
class TurnAdmin(ChangeFormActionAdmin, MemoryKindAdmin):
    """The pages of turns. None is added or deleted here, since they are numbered without gaps."""

    form = TurnForm
    change_form_template = "admin/memory/turn/change_form.html"
    list_display = ("excerpt", "role", "speaker", "index", *MemoryKindAdmin.list_display[1:])
    list_filter = (*MemoryKindAdmin.list_filter, "role")
    long_columns = (*LONG_COLUMNS, "payload")
    editable_fields = ("text", "name", "metadata")
    detail_fields = ("transcript", "role", "index", "client_id", "model", *MemoryKindAdmin.detail_fields)
    object_actions = {mark: ObjectAction(run=partial(mark_turn, mark)) for mark in MARKS}
    allow_add = allow_delete = False

    speaker = text_column("Speaker", "name", empty="")
    transcript = column(
        "Transcript",
        lambda turn: format_html('<a href="{}">Open it in its conversation</a>', turn_url(turn.log_id, turn.index)),
    )

    def describe_row(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        marks = [name for name, columns in MARKS.items() if any(getattr(row, c) != v for c, v in columns.items())]
        return {
            "turn": whole_turn(row),
            "transcript_url": turn_url(row.log_id, row.index),
            "marks": marks,
            "is_summarized": row.index < row.log.summarized_count,
        }
