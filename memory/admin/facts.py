"""Facts: with their history and evidence; corrected, superseded, retracted and rejected."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from memory.admin.beliefs import (
    format_belief_time,
    format_validity,
    read_entities,
    read_history,
    read_quotes,
    read_related_facts,
    read_reviews,
    state_now,
)
from memory.admin.columns import column, text_column
from memory.admin.fields import PlainTextField
from memory.admin.filters import ConditionFilter
from memory.admin.memories import NOT_YET_EMBEDDED, MeaningSearchAdmin, MemoryKindAdmin, OwnedMemoryForm
from memory.admin.object_actions import ChangeFormActionAdmin, ObjectAction
from memory.admin.text import excerpt_of, format_decayed
from memory.models import Fact
from memory.models.facts import Temporal, true_at
from memory.owner import GLOBAL_CHANNEL, Owner
from memory.retrieval.kind_searches import search_facts
from memory.services.bulk.actions import BulkAction, BulkResult, change_each
from memory.services.embedding.embed import embed_texts
from memory.services.facts.globalize import globalize_fact
from memory.services.facts.learn import MAX_CLAIM_CHARACTERS, FactDraft
from memory.services.facts.supersede import correct_fact, reject_fact, retract_fact, supersede_fact
from memory_project.admin_lists import AccountFilter

BELIEF_COLUMNS = {"text": "claim", **{name: name for name in ("confidence", "temporal", "valid_from", "valid_to")}}
"""Columns whose correction makes a new version of the fact, with their names in the service."""


class FactForm(OwnedMemoryForm):
    """A correction of the claim, its confidence or its validity makes a new version of the fact."""

    text = PlainTextField(rows=2, label="Claim", max_length=MAX_CLAIM_CHARACTERS)
    confidence = forms.FloatField(min_value=0, max_value=1)

    def clean(self) -> Any:
        cleaned = super().clean()
        start, end = (self.cleaned_data.get(name) for name in ("valid_from", "valid_to"))
        if start and end and end <= start:
            self.add_error("valid_to", "The end must be after the beginning.")
        return cleaned


BELIEVED = Q(recorded_at__isnull=False, retracted_at=None)


class TruthFilter(ConditionFilter):
    """A filter for facts that, as far as is believed, are true now, no longer or not yet."""

    title = "truth"
    parameter_name = "truth"
    options = {
        "now": ("True now", true_at),
        "past": ("No longer true", lambda now: BELIEVED & Q(valid_to__lte=now)),
        "future": ("Not yet true", lambda now: BELIEVED & Q(valid_from__gt=now)),
    }


class SupersedeForm(forms.Form):
    claim = PlainTextField(rows=2, label="Claim", max_length=MAX_CLAIM_CHARACTERS)
    confidence = forms.FloatField(min_value=0, max_value=1, initial=1.0)
    temporal = forms.ChoiceField(choices=Temporal.choices, initial=Temporal.CURRENT)
    valid_from = forms.DateTimeField(
        required=False,
        label="True since",
        help_text="YYYY-MM-DD HH:MM in UTC. If it is empty, the new fact is true from now on. The old one ends then.",
    )


class GlobalizeForm(forms.Form):
    reason = forms.CharField(max_length=500, widget=forms.TextInput(attrs={"size": 60, "dir": "auto"}))


def supersede(owner: Owner, fact: Fact, data: dict[str, Any]) -> str:
    embedded = embed_texts([data["claim"]])
    draft = FactDraft(source="staff", **data)
    new = supersede_fact(owner, fact.pk, draft, embedded=embedded, now=datetime.now(UTC))
    return f"The fact is superseded by the fact {new.pk}."


def globalize(owner: Owner, fact: Fact, data: dict[str, Any]) -> str:
    embedded = embed_texts([fact.text])
    copy = globalize_fact(owner, fact.pk, reason=data["reason"], embedded=embedded, now=datetime.now(UTC))
    return f"The fact is known in every channel now, as the fact {copy.pk}."


def retract(owner: Owner, fact: Fact, data: dict[str, Any]) -> str:
    retract_fact(owner, fact.pk, now=datetime.now(UTC))
    return "The fact is retracted: it is no longer believed. It may be learned again."


def reject(owner: Owner, fact: Fact, data: dict[str, Any]) -> str:
    reject_fact(owner, fact.pk, now=datetime.now(UTC))
    return "The fact is rejected: it is no longer believed, and not learned again until its tombstone is lifted."


def rows_to_change(owner: Owner, row_ids: Sequence[UUID]) -> QuerySet[Fact]:
    return Fact.objects.visible_to(owner).filter(id__in=row_ids).only("id", "account_id").order_by("-pk")


def retract_rows(owner: Owner, row_ids: Sequence[UUID], now: datetime) -> BulkResult:
    return change_each(rows_to_change(owner, row_ids), lambda fact: retract_fact(owner, fact.pk, now=now))


def reject_rows(owner: Owner, row_ids: Sequence[UUID], now: datetime) -> BulkResult:
    return change_each(rows_to_change(owner, row_ids), lambda fact: reject_fact(owner, fact.pk, now=now))


@admin.register(Fact)
class FactAdmin(MeaningSearchAdmin, ChangeFormActionAdmin):
    """The pages of facts. A correction says that we were wrong; superseding says that the world has changed."""

    form = FactForm
    meaning_search = staticmethod(search_facts)
    change_form_template = "admin/memory/fact/change_form.html"
    list_display = (
        "excerpt", "state", "confidence_text", "valid", "temporal_text", "believed", "agent_id", "user_id", "channel",
        "account",
    )  # fmt: skip
    list_filter = (AccountFilter, "status", TruthFilter, "temporal", "certainty", *MemoryKindAdmin.list_filter[1:])
    service_fields = BELIEF_COLUMNS
    editable_fields = (*BELIEF_COLUMNS, "event_time", "expires_at", "salience", "trust", "source", "metadata")
    detail_fields = ("certainty", "user_id", "channel", *MemoryKindAdmin.detail_fields)
    belief_fields = ("claim", "confidence_text", "temporal", "valid")
    """Columns that replace BELIEF_COLUMNS if the fact is not believed and therefore cannot be corrected."""
    bulk_actions = (
        BulkAction(
            name="retract_selected",
            label="Retract selected facts",
            done="Retracted",
            apply=retract_rows,
            explanation="They are no longer believed, and what they superseded is believed again. They may be learned "
            "again.",
        ),
        BulkAction(
            name="reject_selected",
            label="Reject selected facts, so that they are not learned again",
            done="Rejected",
            apply=reject_rows,
            explanation="They are no longer believed, and what they superseded is believed again. They are not learned "
            "again until their tombstones are lifted.",
            is_destructive=True,
        ),
    )
    object_actions = {
        "supersede": ObjectAction(run=supersede, form=SupersedeForm),
        "globalize": ObjectAction(run=globalize, form=GlobalizeForm),
        "retract": ObjectAction(run=retract),
        "reject": ObjectAction(run=reject),
    }
    allow_add = False

    def get_fieldsets(self, request: HttpRequest, obj: Any | None = None) -> Any:
        if is_believed(obj):
            return super().get_fieldsets(request, obj)
        others = tuple(name for name in self.editable_fields if name not in BELIEF_COLUMNS)
        return (
            ("Content", {"fields": (*self.belief_fields, *others, "seen_version")}),
            ("Details", {"fields": self.detail_fields}),
        )

    def get_readonly_fields(self, request: HttpRequest, obj: Any | None = None) -> tuple[str, ...]:
        return self.detail_fields if is_believed(obj) else (*self.detail_fields, *self.belief_fields, *BELIEF_COLUMNS)

    claim = text_column("Claim", "text")
    valid = column("Valid", lambda fact: format_validity(fact.valid_from, fact.valid_to))
    believed = column("Believed", format_belief_time)
    temporal_text = column("Temporal", lambda fact: fact.get_temporal_display() if is_true_now(fact) else "-")

    @admin.display(description="Confidence")
    def confidence_text(self, fact: Any) -> str:
        text = format_decayed(fact.confidence, base=fact.base_confidence, faded=fact.faded_confidence)
        return f"{text} ({fact.certainty})" if fact.certainty else text

    def describe_row(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        may_read_turns, may_see_entities = (
            request.user.has_perm(f"memory.view_{model}") for model in ("turn", "entity")
        )
        return {
            "subtitle": excerpt_of(row.text),
            "history": read_history(row, may_see_audit=request.user.has_perm("memory.view_auditentry")),
            "related_facts": read_related_facts(row),
            "reviews": read_reviews(row),
            "may_read_turns": may_read_turns,
            "quotes": read_quotes([row]).get(row.pk, []) if may_read_turns else [],
            "entities": read_entities([row]).get(row.pk, []) if may_see_entities else [],
            "is_active": row.status == Fact.Status.ACTIVE,
            "is_believed": is_believed(row),
            "is_global": row.channel == GLOBAL_CHANNEL,
            "fact_state": state_now(row),
            "believed": self.believed(row),
            "valid": self.valid(row),
            "confidence": self.confidence_text(row),
        }

    def correct_in_service(
        self, owner: Owner, memory_id: UUID, changes: dict[str, Any], *, version: int, now: datetime
    ) -> None:
        beliefs = {BELIEF_COLUMNS[name]: value for name, value in changes.items()}
        correct_fact(owner, memory_id, changes=beliefs, embedded=NOT_YET_EMBEDDED, expected=version, now=now)


def is_believed(fact: Any) -> bool:
    return fact is not None and fact.recorded_at is not None and fact.retracted_at is None


def is_true_now(fact: Any) -> bool:
    return is_believed(fact) and state_now(fact) == Fact.Status.ACTIVE
