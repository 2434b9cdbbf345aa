"""Actions of staff on a conversation's page."""

from datetime import UTC, datetime
from functools import partial
from typing import Any

from django import forms
from django.db import transaction

from memory.admin.fields import JSONObjectField
from memory.admin.object_actions import ObjectAction
from memory.models import Conversation
from memory.owner import Owner
from memory.services.conversations.lifecycle import change_conversation, end_conversation
from memory.services.conversations.staff_edits import (
    EXTRACTION_JOB,
    SUMMARIZE_JOB,
    archive_conversation,
    request_extraction_as_staff,
    request_summary_as_staff,
    retry_summary,
    unarchive_conversation,
)
from memory.tasks import notify_job_worker, run_soon

MAX_TITLE_CHARACTERS = 200


class CorrectForm(forms.Form):
    title = forms.CharField(
        max_length=MAX_TITLE_CHARACTERS, required=False, strip=False, widget=forms.TextInput(attrs={"dir": "auto"})
    )
    metadata = JSONObjectField(required=False, label="Metadata as JSON")


class EndForm(forms.Form):
    outcome = forms.ChoiceField(required=False, choices=[("", "no outcome"), *Conversation.Outcome.choices])


def correct(owner: Owner, conversation: Conversation, data: dict[str, Any]) -> str:
    changes = {name: value for name, value in data.items() if value != getattr(conversation, name)}
    if not changes:
        return "Nothing to save: title and metadata are the same."
    change_conversation(owner, conversation.conversation_id, changes=changes, now=datetime.now(UTC))
    return f"Saved: {', '.join(sorted(changes))}."


def end(owner: Owner, conversation: Conversation, data: dict[str, Any]) -> str:
    ended = end_conversation(owner, conversation.conversation_id, outcome=data["outcome"], now=datetime.now(UTC))
    if ended.summarize_to is not None:
        run_soon(SUMMARIZE_JOB)
    if ended.cleared_at is None:
        return "The conversation is ended. Redis does not answer: its live data is cleared as soon as Redis does."
    return "The conversation is ended. Its session, working memory and ledger are cleared."


def summarize(owner: Owner, conversation: Conversation, data: dict[str, Any]) -> str:
    requested = request_summary_as_staff(owner, conversation.conversation_id, now=datetime.now(UTC))
    transaction.on_commit(partial(notify_job_worker, SUMMARIZE_JOB))
    is_queued = requested.summarize_to is not None
    return "A summary of all turns is queued." if is_queued else "The summary covers all turns already."


def retry(owner: Owner, conversation: Conversation, data: dict[str, Any]) -> str:
    retry_summary(owner, conversation.conversation_id, now=datetime.now(UTC))
    transaction.on_commit(partial(notify_job_worker, SUMMARIZE_JOB))
    return "The summary is queued and tried again now."


def extract(owner: Owner, conversation: Conversation, data: dict[str, Any]) -> str:
    requested = request_extraction_as_staff(owner, conversation.conversation_id, now=datetime.now(UTC))
    if requested.extracted_count == requested.turn_count:
        return "Knowledge was already extracted from all turns."
    run_soon(EXTRACTION_JOB)
    return "Extraction from the remaining turns is queued."


def archive(owner: Owner, conversation: Conversation, data: dict[str, Any]) -> str:
    archive_conversation(owner, conversation.conversation_id, now=datetime.now(UTC))
    return "The conversation and its turns are archived: they can be read, but searches no longer find them."


def unarchive(owner: Owner, conversation: Conversation, data: dict[str, Any]) -> str:
    unarchive_conversation(owner, conversation.conversation_id, now=datetime.now(UTC))
    return "The conversation and its turns are no longer archived."


CONVERSATION_ACTIONS = {
    "correct": ObjectAction(run=correct, form=CorrectForm),
    "end": ObjectAction(run=end, form=EndForm),
    "summarize": ObjectAction(run=summarize),
    "retry": ObjectAction(run=retry),
    "extract": ObjectAction(run=extract),
    "archive": ObjectAction(run=archive),
    "unarchive": ObjectAction(run=unarchive),
}
