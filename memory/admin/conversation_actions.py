"""What staff may do to a conversation on its page: each action's form, and its deed."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Self

from django import forms
from django.db import transaction

from memory.admin.fields import JSONObjectField
from memory.models import Conversation
from memory.owner import Owner
from memory.services.conversations.lifecycle import change_conversation, end_conversation
from memory.services.conversations.staff_edits import (
    CONSOLIDATE,
    SUMMARIZE,
    archive_conversation,
    ask_for_extraction,
    ask_for_summary,
    retry_summary,
    unarchive_conversation,
)
from memory.tasks import nudge_job, run_soon

TITLE_CHARACTERS = 200


class CorrectForm(forms.Form):
    """What clients may change later too."""

    title = forms.CharField(
        max_length=TITLE_CHARACTERS, required=False, strip=False, widget=forms.TextInput(attrs={"dir": "auto"})
    )
    metadata = JSONObjectField(required=False)

    @classmethod
    def of(cls, conversation: Conversation) -> Self:
        return cls(initial={"title": conversation.title, "metadata": conversation.metadata})


class EndForm(forms.Form):
    outcome = forms.ChoiceField(
        required=False, choices=[("", "no outcome"), *Conversation.Outcome.choices], label="Outcome"
    )


class NothingForm(forms.Form):
    """An action that needs no more than its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """`run` answers the sentence to show. It may raise MemoryServiceError, whose message is shown."""

    form: type[forms.Form]
    run: Callable[[Owner, Conversation, dict[str, Any]], str]


def correct(owner: Owner, conversation: Conversation, data: dict[str, Any]) -> str:
    changes = {name: value for name, value in data.items() if value != getattr(conversation, name)}
    if not changes:
        return "Nothing to save: it says that already."
    change_conversation(owner, conversation.conversation_id, changes=changes, now=datetime.now(UTC))
    return f"Saved: {', '.join(sorted(changes))}."


def end(owner: Owner, conversation: Conversation, data: dict[str, Any]) -> str:
    ended = end_conversation(owner, conversation.conversation_id, outcome=data["outcome"], now=datetime.now(UTC))
    if ended.summarize_to is not None:
        run_soon(SUMMARIZE)
    if ended.cleared_at is None:
        return "Ended. Redis gives no answer: its live side is cleared as soon as Redis does."
    return "Ended: its session, working memory and ledger are cleared."


def summarize(owner: Owner, conversation: Conversation, data: dict[str, Any]) -> str:
    asked = ask_for_summary(owner, conversation.conversation_id, now=datetime.now(UTC))
    transaction.on_commit(partial(nudge_job, SUMMARIZE))
    return "Queued: a summary of all turns." if asked.summarize_to is not None else "The summary covers all turns."


def retry(owner: Owner, conversation: Conversation, data: dict[str, Any]) -> str:
    retry_summary(owner, conversation.conversation_id, now=datetime.now(UTC))
    transaction.on_commit(partial(nudge_job, SUMMARIZE))
    return "Queued: the summary is tried again now."


def extract(owner: Owner, conversation: Conversation, data: dict[str, Any]) -> str:
    asked = ask_for_extraction(owner, conversation.conversation_id, now=datetime.now(UTC))
    if asked.extracted_count == asked.turn_count:
        return "All turns have been looked through."
    run_soon(CONSOLIDATE)
    return "Queued: extraction from all turns that nobody looked through yet."


def archive(owner: Owner, conversation: Conversation, data: dict[str, Any]) -> str:
    archive_conversation(owner, conversation.conversation_id, now=datetime.now(UTC))
    return "Archived with its turns: still read, no longer found by searches."


def unarchive(owner: Owner, conversation: Conversation, data: dict[str, Any]) -> str:
    unarchive_conversation(owner, conversation.conversation_id, now=datetime.now(UTC))
    return "Brought back with its turns."


DEEDS = {
    "correct": Deed(form=CorrectForm, run=correct),
    "end": Deed(form=EndForm, run=end),
    "summarize": Deed(form=NothingForm, run=summarize),
    "retry": Deed(form=NothingForm, run=retry),
    "extract": Deed(form=NothingForm, run=extract),
    "archive": Deed(form=NothingForm, run=archive),
    "unarchive": Deed(form=NothingForm, run=unarchive),
}
