"""Entries as clients send them: new ones, other content of one, more or less importance."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from rest_framework import serializers

from memory.api.episodic import own_vector
from memory.api.fields import Metadata, OwnerFields, Prose
from memory.api.vectors import EmbeddingField
from memory.models import ContextEntry
from memory.owner import Owner
from memory.services.contexts.entries import NOT_GIVEN, Edit, EntryDraft, text_of
from memory.services.memories.store import Admission
from memory_project.http.serializers import ActingFields, BoundedList, ExternalId, FiniteFloat, StrictSerializer

LONGEST_CONTENT = 100_000
LONGEST_KEY = 200
MOST_ENTRIES = 1_000
ENTRY_TYPES, SOURCE_TYPES = ContextEntry.EntryType.choices, ContextEntry.SourceType.choices
MEMORY_TYPES = ContextEntry.MemoryType.choices
OWN_VECTOR = "A vector of your own, instead of the service's."
OWN_MODEL = "Of which model it is; the configured one by default."
DRAFTED = (
    *("content", "key", "value", "entry_type", "source_type", "memory_type", "importance", "confidence"),
    "metadata",
)
"""Fields of a body that a draft takes as they are."""


class Share(FiniteFloat):
    """A number from 0 to 1."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"min_value": 0, "max_value": 1, **options})


class EntryFields(StrictSerializer):
    """One entry: a content, a value, or both."""

    content = Prose(required=False, max_length=LONGEST_CONTENT, help_text="What is searched; the value by default.")
    value = serializers.JSONField(required=False, allow_null=True, help_text="Any JSON; the content under a key.")
    key = ExternalId(
        required=False, max_length=LONGEST_KEY, help_text="Its name here: stored again, it is its next version."
    )
    entry_type = serializers.ChoiceField(ENTRY_TYPES, required=False, help_text="observation by default.")
    source_type = serializers.ChoiceField(SOURCE_TYPES, required=False, help_text="agent by default.")
    memory_type = serializers.ChoiceField(MEMORY_TYPES, required=False, help_text="factual by default.")
    importance = Share(required=False, help_text="0.5 by default.")
    confidence = Share(required=False, help_text="1 by default.")
    metadata = Metadata(required=False)
    embedding = EmbeddingField(required=False, help_text=OWN_VECTOR)
    embedding_model = ExternalId(required=False, help_text=OWN_MODEL)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not attrs.keys() & {"content", "value"}:
            raise serializers.ValidationError("A content is needed, or a value.")
        return attrs


class NewEntries(OwnerFields, EntryFields):
    """One entry, or many as `entries`."""

    entries = BoundedList(
        child=EntryFields(), min_length=1, max_length=MOST_ENTRIES, required=False, help_text="In place of one."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "entries" not in attrs:
            return super().validate(attrs)
        if attrs.keys() & EntryFields._declared_fields.keys():
            raise serializers.ValidationError("One entry, or `entries`: not both.")
        keys = Counter(entry["key"] for entry in attrs["entries"] if "key" in entry)
        if any(count > 1 for count in keys.values()):
            raise serializers.ValidationError({"entries": ["A key is named twice: which of the two should last?"]})
        return attrs


class NewContent(ActingFields):
    content = Prose(required=False, max_length=LONGEST_CONTENT)
    value = serializers.JSONField(required=False, allow_null=True, help_text="Any JSON; the content under a key.")
    editor = ExternalId(required=False, help_text="Who wrote it: the acting agent by default, else the key.")
    embedding = EmbeddingField(required=False, help_text=OWN_VECTOR)
    embedding_model = ExternalId(required=False, help_text=OWN_MODEL)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not attrs.keys() & {"content", "value"}:
            raise serializers.ValidationError("A content is needed, or a value.")
        return attrs


class Restoring(ActingFields):
    editor = ExternalId(required=False, help_text="Who brings it back: the acting agent by default, else the key.")


class Weighing(ActingFields):
    by = FiniteFloat(default=0.1, max_value=1, help_text="Above 0; the importance stays from 0 to 1.")

    def validate_by(self, by: float) -> float:
        if by <= 0:
            raise serializers.ValidationError("Must be above 0.")
        return by


def editor_of(owner: Owner, body: dict[str, Any]) -> str:
    return str(body.get("editor") or owner.agent_id or owner.actor)


def drafts_of(owner: Owner, entries: Sequence[dict[str, Any]]) -> list[EntryDraft]:
    """Raises as `Admission.admit` and `text_of` do."""
    admission = Admission(owner=owner)
    drafts = []
    for entry in entries:
        own = None
        if "embedding" in entry:
            own = admission.admit(model=entry.get("embedding_model", ""), vector=entry["embedding"])
        drafts.append(EntryDraft(**{name: entry[name] for name in DRAFTED if name in entry}, own=own))
    return drafts


def edit_of(owner: Owner, body: dict[str, Any]) -> Edit:
    """Raises as `own_vector` and `text_of` do."""
    value = body.get("value", NOT_GIVEN)
    return Edit(
        content=body.get("content") or text_of(value),
        value=value,
        editor=editor_of(owner, body),
        own=own_vector(owner, body, "embedding"),
    )
