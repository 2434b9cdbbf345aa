"""Bodies of requests that store or change entries of persistent contexts, and the drafts made of them."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from rest_framework import serializers

from memory.api.fields import Fraction, Metadata, NonBlankText, OwnerFields, draft_fields
from memory.api.vectors import VectorFields, read_vector
from memory.models import ContextEntry
from memory.owner import Owner
from memory.services.contexts.entries import NOT_GIVEN, EntryDraft, EntryEdit, searchable_text
from memory.services.memories.store import VectorInput
from memory_project.http.serializers import ActingFields, BoundedList, ExternalId, FiniteFloat

MAX_CONTENT_CHARACTERS = 100_000
MAX_KEY_CHARACTERS = 200
MAX_ENTRIES = 1_000
ENTRY_TYPES, SOURCE_TYPES = ContextEntry.EntryType.choices, ContextEntry.SourceType.choices
MEMORY_TYPES = ContextEntry.MemoryType.choices


class ContentFields(VectorFields):
    """The content of an entry, a value, or both."""

    content = NonBlankText(
        required=False,
        max_length=MAX_CONTENT_CHARACTERS,
        help_text="Text to find. Default: `value`.",
    )
    value = serializers.JSONField(required=False, allow_null=True, help_text="Any JSON value, stored with the content.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not attrs.keys() & {"content", "value"}:
            raise serializers.ValidationError("Send `content`, `value`, or both.")
        return attrs


class EntryFields(ContentFields):
    """One entry."""

    key = ExternalId(
        required=False,
        max_length=MAX_KEY_CHARACTERS,
        help_text="Unique name in the context. Storing under a key that exists makes the entry's next version.",
    )
    entry_type = serializers.ChoiceField(ENTRY_TYPES, required=False, help_text="Default: observation.")
    source_type = serializers.ChoiceField(SOURCE_TYPES, required=False, help_text="Default: agent.")
    memory_type = serializers.ChoiceField(MEMORY_TYPES, required=False, help_text="Default: factual.")
    importance = Fraction(required=False, help_text="Importance from 0 to 1. Default: 0.5.")
    confidence = Fraction(required=False, help_text="Confidence from 0 to 1. Default: 1.")
    metadata = Metadata(required=False, help_text="Facts of your own about the entry.")


class NewEntries(OwnerFields, EntryFields):
    """One entry, or many as `entries`."""

    entries = BoundedList(
        child=EntryFields(),
        min_length=1,
        max_length=MAX_ENTRIES,
        required=False,
        help_text="Many entries, instead of the fields of one.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "entries" not in attrs:
            return super().validate(attrs)
        if attrs.keys() & EntryFields._declared_fields.keys():
            raise serializers.ValidationError("Send the fields of one entry, or `entries`, but not both.")
        keys = Counter(entry["key"] for entry in attrs["entries"] if "key" in entry)
        if repeated := [key for key, count in keys.items() if count > 1]:
            raise serializers.ValidationError({"entries": [f'The key "{repeated[0]}" is there twice. Send it once.']})
        return attrs


class NewContent(ContentFields, ActingFields):
    editor = ExternalId(required=False, help_text="Author of the new version. Default: the acting agent, else the key.")


class VersionToRestore(ActingFields):
    editor = ExternalId(required=False, help_text="Author of the new version. Default: the acting agent, else the key.")


class ImportanceChange(ActingFields):
    by = FiniteFloat(default=0.1, max_value=1, help_text="Amount above 0. The importance stays from 0 to 1.")

    def validate_by(self, by: float) -> float:
        if by <= 0:
            raise serializers.ValidationError("Must be greater than 0.")
        return by


def choose_editor(owner: Owner, body: dict[str, Any]) -> str:
    return str(body.get("editor") or owner.agent_id or owner.actor)


def entry_drafts_from_body(owner: Owner, entries: Sequence[dict[str, Any]]) -> list[EntryDraft]:
    """Make the drafts of checked entries. Raises as `VectorInput.validate` and `searchable_text` do."""
    vector_input = VectorInput(owner=owner)
    drafts = []
    for entry in entries:
        own = None
        if "embedding" in entry:
            own = vector_input.validate(model=entry.get("embedding_model", ""), vector=entry["embedding"])
        drafts.append(EntryDraft(**draft_fields(EntryDraft, entry), own=own))
    return drafts


def edit_from_body(owner: Owner, body: dict[str, Any]) -> EntryEdit:
    """Make the edit of a checked NewContent. Raises as `read_vector` and `searchable_text` do."""
    value = body.get("value", NOT_GIVEN)
    return EntryEdit(
        content=body.get("content") or searchable_text(value),
        value=value,
        editor=choose_editor(owner, body),
        own=read_vector(owner, body),
    )
