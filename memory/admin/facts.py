"""Facts: as memories are, with who believed them when and what says so; corrected, retracted, rejected, superseded."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from memory.admin.base import staff_owner
from memory.admin.beliefs import (
    read_entities,
    read_history,
    read_quotes,
    read_reviews,
    read_successions,
    tell_span,
    tell_time,
)
from memory.admin.deeds import ClaimField, Deed, DeedPages
from memory.admin.episodes import NOT_YET, MeaningChangeList
from memory.admin.fading import tell_value
from memory.admin.meanings import MeaningPages
from memory.admin.memories import MemoryForm, MemoryPages
from memory.admin.text import mark_invisible
from memory.errors import MemoryServiceError
from memory.models import Fact
from memory.models.facts import Temporal, true_at
from memory.owner import GLOBAL_CHANNEL, Owner
from memory.retrieval.facts import search_facts
from memory.services.embedding.embed import embed_texts
from memory.services.facts.learn import LONGEST_CLAIM, FactDraft
from memory.services.facts.supersede import correct_fact, promote_fact, reject_fact, retract_fact, supersede_fact
from memory.services.memories.correct import correct_memory
from memory_project.admin_lists import AccountFilter

BELIEFS = {
    "text": "claim", "confidence": "confidence", "temporal": "temporal", "valid_from": "valid_from",
    "valid_to": "valid_to",
}  # fmt: skip
"""The columns that another belief is about, as the service calls them."""


class FactChangeList(MeaningChangeList):
    search = staticmethod(search_facts)


class FactForm(MemoryForm):
    """Whose it is stays. What it claims, how sure it is and when it is true are its next belief."""

    user_id = None  # type: ignore[assignment]
    channel = None  # type: ignore[assignment]
    text = ClaimField(label="Claim", max_length=LONGEST_CLAIM)
    confidence = forms.FloatField(min_value=0, max_value=1)


class TruthFilter(admin.SimpleListFilter):
    """By whether they are true at this moment, as far as is believed."""

    title = "truth"
    parameter_name = "truth"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        return (("now", "True now"), ("past", "No longer true"), ("future", "Not yet true"))

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        now = datetime.now(UTC)
        believed = Q(recorded_at__isnull=False, retracted_at=None)
        conditions = {
            "now": true_at(now),
            "past": believed & Q(valid_to__lte=now),
            "future": believed & Q(valid_from__gt=now),
        }
        condition = conditions.get(self.value() or "")
        return queryset if condition is None else queryset.filter(condition)


class SupersedeForm(forms.Form):
    claim = ClaimField(label="Claim", max_length=LONGEST_CLAIM)
    confidence = forms.FloatField(min_value=0, max_value=1, initial=1.0)
    temporal = forms.ChoiceField(choices=Temporal.choices, initial=Temporal.CURRENT)
    valid_from = forms.DateTimeField(
        required=False,
        label="True since",
        help_text="YYYY-MM-DD HH:MM, UTC. Empty: from now on. The old one ends then.",
    )


class PromoteForm(forms.Form):
    reason = forms.CharField(max_length=500, label="Why", widget=forms.TextInput(attrs={"size": 60, "dir": "auto"}))


def supersede(owner: Owner, fact: Fact, data: dict[str, Any]) -> str:
    embedded = embed_texts([data["claim"]])
    draft = FactDraft(source="staff", **data)
    new = supersede_fact(owner, fact.pk, draft, embedded=embedded, now=datetime.now(UTC))
    return f"Superseded, by the fact {new.pk}."


def promote(owner: Owner, fact: Fact, data: dict[str, Any]) -> str:
    embedded = embed_texts([fact.text])
    copy = promote_fact(owner, fact.pk, reason=data["reason"], embedded=embedded, now=datetime.now(UTC))
    return f"Promoted: known in every channel as the fact {copy.pk}."


def retract(owner: Owner, fact: Fact, data: dict[str, Any]) -> str:
    retract_fact(owner, fact.pk, now=datetime.now(UTC))
    return "Retracted: believed no longer. It may be learnt again."


def reject(owner: Owner, fact: Fact, data: dict[str, Any]) -> str:
    reject_fact(owner, fact.pk, now=datetime.now(UTC))
    return "Rejected: believed no longer, and not learnt again until its tombstone is lifted."


@admin.register(Fact)
class FactAdmin(MeaningPages, DeedPages, MemoryPages):
    """Correcting one says that we were wrong about it; superseding it, that the world has changed."""

    form = FactForm
    change_form_template = "admin/memory/fact/change_form.html"
    list_display = (
        "excerpt", "status", "sure", "valid", "temporal", "believed", "state", "agent_id", "user_id",
        "channel", "account",
    )  # fmt: skip
    list_filter = (AccountFilter, "status", TruthFilter, "temporal", "certainty", *MemoryPages.list_filter[1:])
    correctable = (*BELIEFS, "event_time", "expires_at", "salience", "trust", "source", "metadata")
    shown = ("status", "certainty", "user_id", "channel", *MemoryPages.shown)
    unbelieved = ("claim", "sure", "temporal", "valid")
    actions = ("embed", "retract_selected", "reject_selected")
    deeds = {
        "supersede": Deed(run=supersede, form=SupersedeForm),
        "promote": Deed(run=promote, form=PromoteForm),
        "retract": Deed(run=retract),
        "reject": Deed(run=reject),
    }

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return FactChangeList

    def deed_owner(self, request: HttpRequest, row: Any) -> Owner:
        return staff_owner(request, row.account_id)

    def get_fieldsets(self, request: HttpRequest, obj: Any | None = None) -> Any:
        if is_believed(obj):
            return super().get_fieldsets(request, obj)
        others = tuple(name for name in self.correctable if name not in BELIEFS)
        return (
            ("What it says", {"fields": (*self.unbelieved, *others, "seen_version")}),
            ("What it is", {"fields": self.shown}),
        )

    def get_readonly_fields(self, request: HttpRequest, obj: Any | None = None) -> tuple[str, ...]:
        if is_believed(obj):
            return self.shown
        # what nobody believes is not corrected
        return (*self.shown, *self.unbelieved, *BELIEFS)

    @admin.display(description="Claim")
    def claim(self, fact: Fact) -> str:
        return mark_invisible(fact.text)

    @admin.display(description="Confidence")
    def sure(self, fact: Fact) -> str:
        told = tell_value(fact.confidence, base=fact.base_confidence, faded=fact.faded_confidence)
        return f"{told} ({fact.certainty})" if fact.certainty else told

    @admin.display(description="True")
    def valid(self, fact: Fact) -> str:
        return tell_span(fact.valid_from, fact.valid_to)

    @admin.display(description="Believed")
    def believed(self, fact: Fact) -> str:
        if fact.recorded_at is None:
            return "not yet" if fact.status == Fact.Status.PENDING else "never"
        if fact.retracted_at is None:
            return f"since {tell_time(fact.recorded_at)}"
        return f"until {tell_time(fact.retracted_at)}"

    def describe(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """Turns and entities only for who may look at them."""
        may_read_turns, may_see_entities = (
            request.user.has_perm(f"memory.view_{model}") for model in ("turn", "entity")
        )
        return {
            "history": read_history(row),
            "successions": read_successions(row),
            "reviews": read_reviews(row),
            "may_read_turns": may_read_turns,
            "quotes": read_quotes([row]).get(row.pk, []) if may_read_turns else [],
            "entities": read_entities([row]).get(row.pk, []) if may_see_entities else [],
            "is_active": row.status == Fact.Status.ACTIVE,
            "is_believed": is_believed(row),
            "is_global": row.channel == GLOBAL_CHANNEL,
            "told": {"believed": self.believed(row), "valid": self.valid(row), "sure": self.sure(row)},
        }

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Of two that change at once, whoever has seen the other's version."""
        given = {name: form.cleaned_data[name] for name in form.changed_data if name in self.correctable}
        beliefs = {BELIEFS[name]: value for name, value in given.items() if name in BELIEFS}
        others = {name: value for name, value in given.items() if name not in BELIEFS}
        owner, now = staff_owner(request, obj.account_id), datetime.now(UTC)
        version = form.cleaned_data["seen_version"] or 0
        if others:
            correct_memory(owner, obj.pk, changes=others, version=version, now=now)
            version += 1
        if beliefs:
            correct_fact(owner, obj.pk, changes=beliefs, embedded=NOT_YET, expected=version, now=now)

    @admin.action(description="Retract selected facts", permissions=["change"])
    def retract_selected(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        self.do_all(request, queryset, retract_fact, "Retracted")

    @admin.action(description="Reject selected facts: they are not learnt again", permissions=["change"])
    def reject_selected(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        self.do_all(request, queryset, reject_fact, "Rejected")

    def do_all(self, request: HttpRequest, facts: QuerySet[Any], change: Callable[..., Fact], word: str) -> None:
        done, refusals = 0, set()
        for fact in facts.only("id", "account_id"):
            try:
                change(staff_owner(request, fact.account_id), fact.pk, now=datetime.now(UTC))
            except MemoryServiceError as err:
                refusals.add(str(err))
            else:
                self.log_change(request, fact, f"{word}.")
                done += 1
        self.message_user(request, f"{word}: {done}.", messages.SUCCESS)
        for refusal in sorted(refusals):
            self.message_user(request, f"Not all: {refusal}.", messages.WARNING)


def is_believed(fact: Any) -> bool:
    return fact is not None and fact.recorded_at is not None and fact.retracted_at is None
