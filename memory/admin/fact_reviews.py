"""Reviews of facts that contradict each other: both side by side with their evidence, for staff to decide.

Tombstones of rejected facts: who rejected something, and how often it was extracted again, but never what.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from memory.admin.base import ReadOnlyAdmin
from memory.admin.beliefs import format_belief_time, format_validity, read_entities, read_quotes, state_now
from memory.admin.columns import change_url, column, excerpt_column, text_column
from memory.admin.diffs import compare_texts
from memory.admin.exports import ListExportAdmin
from memory.admin.filters import ConditionFilter, NarrowingFilter
from memory.admin.object_actions import EmptyForm, ObjectAction, ObjectActionAdmin
from memory.admin.text import mark_invisible, text_excerpt
from memory.models import Fact, FactReview, FactTombstone
from memory.owner import Owner
from memory.services.bulk.actions import BulkAction, BulkResult, change_each
from memory.services.facts.review import ValidityTimes, decide_review
from memory.services.facts.tombstones import lift_tombstone
from memory_project.admin_lists import AccountFilter

Status = FactReview.Status
CLAIMS = ("new_claim", "old_claim")


class DecisionFilter(NarrowingFilter):
    """A filter by decision. Without a choice the list shows the open reviews, which is what it is for."""

    title = "decision"
    parameter_name = "decision"
    which_rows, everything = "open {nouns}", "any"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        decided = [status for status in Status if status != Status.OPEN]
        return [*((status.value, status.label) for status in decided), (self.everything, "All")]

    def choices(self, changelist: Any) -> Any:
        first, *others = super().choices(changelist)
        return [{**first, "display": "Open"}, *others]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        chosen = self.value() or Status.OPEN
        return queryset if chosen == self.everything else queryset.filter(status=chosen)


class AcceptForm(forms.Form):
    changed_at = forms.DateTimeField(
        required=False,
        label="Changed at",
        help_text="YYYY-MM-DD HH:MM in UTC. If it is empty: when the new fact became true, or now.",
    )


class BothForm(forms.Form):
    old_valid_to = forms.DateTimeField(
        required=False, label="Old fact true until", help_text="If it is empty, the time stays as it is."
    )
    new_valid_from = forms.DateTimeField(
        required=False, label="New fact true from", help_text="If it is empty, the time stays as it is."
    )


def decide(decision: FactReview.Status, owner: Owner, review: FactReview, data: dict[str, Any]) -> str:
    times = ValidityTimes(**data) if decision == Status.BOTH_TRUE else None
    changed_at, now = data.get("changed_at"), datetime.now(UTC)
    decide_review(owner, review.pk, decision=decision, changed_at=changed_at, times=times, now=now)
    return f"Decided: {decision.label.lower()}."


FORMS = {Status.ACCEPTED_NEW: AcceptForm, Status.KEPT_OLD: EmptyForm, Status.BOTH_TRUE: BothForm}


@admin.register(FactReview)
class FactReviewAdmin(ListExportAdmin, ReadOnlyAdmin, ObjectActionAdmin):
    """The pages of reviews, which extraction opens if the policy is to ask. Deciding takes the change permission."""

    list_display = (*CLAIMS, "similarity_text", "status", "decided_by", "account", "created_at")
    list_filter = (AccountFilter, DecisionFilter)
    search_fields = ("decided_by__exact",)
    search_help_text = "Search for the complete name of the person or key that decided."
    object_actions = {
        status.value: ObjectAction(run=partial(decide, status), form=form) for status, form in FORMS.items()
    }

    def get_list_display(self, request: HttpRequest) -> Any:
        if request.user.has_perm("memory.view_fact"):
            return self.list_display
        return ("__str__", *(name for name in self.list_display if name not in CLAIMS))

    def get_queryset(self, request: HttpRequest) -> QuerySet[FactReview]:
        rows: QuerySet[FactReview] = super().get_queryset(request)
        return rows.annotate(**{f"{side}_claim": text_excerpt(f"{side}_fact__text") for side in ("old", "new")})

    new_claim = excerpt_column("New claim", "new_claim")
    old_claim = excerpt_column("Old claim", "old_claim")
    similarity_text = column(
        "Similarity", lambda review: "-" if review.similarity is None else f"{review.similarity:.3f}"
    )

    def may_act(self, request: HttpRequest, row: Any) -> bool:
        return bool(request.user.has_perm("memory.change_factreview"))

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show both facts and the buttons that decide, instead of a form."""
        review = self.find_row(request, object_id)
        failed: forms.Form | None = None
        if request.method == "POST":
            failed = self.perform_action(request, review)
            if failed is None:
                return HttpResponseRedirect(request.path)
        context = self.describe_review(request, review) | {
            "action_forms": self.action_forms(failed),
            "failed_form": failed,
        }
        return self.render_page(request, "factreview/review.html", "Which of two facts is true?", **context)

    def describe_review(self, request: HttpRequest, review: FactReview) -> dict[str, Any]:
        rows = Fact.objects.filter(account_id=review.account_id, pk__in=[review.old_fact_id, review.new_fact_id])
        facts = {fact.pk: fact for fact in rows}
        old, new = facts[review.old_fact_id], facts[review.new_fact_id]
        may_read_facts, may_read_turns, may_see_entities = (
            request.user.has_perm(f"memory.view_{model}") for model in ("fact", "turn", "entity")
        )
        quotes = read_quotes([old, new]) if may_read_facts and may_read_turns else {}
        entities = read_entities([old, new]) if may_read_facts and may_see_entities else {}
        sides = [describe_side(name, fact, quotes, entities) for name, fact in (("Old", old), ("New", new))]
        return {
            "review": review,
            "decided_by": mark_invisible(review.decided_by),
            "may_read": may_read_facts,
            "may_read_turns": may_read_turns,
            "sides": sides if may_read_facts else [],
            "diff": compare_texts(old.text, new.text) if may_read_facts else None,
            "is_open": review.status == Status.OPEN,
            "may_decide": self.may_act(request, review) and may_read_facts,
        }


def describe_side(name: str, fact: Fact, quotes: Any, entities: Any) -> dict[str, Any]:
    """Return what the page shows of one of the two facts."""
    return {
        "name": name,
        "fact": fact,
        "state": state_now(fact),
        "claim": mark_invisible(fact.text),
        "valid": format_validity(fact.valid_from, fact.valid_to),
        "believed": format_belief_time(fact),
        "quotes": quotes.get(fact.pk, []),
        "entities": entities.get(fact.pk, []),
        "url": change_url("fact", fact.pk),
    }


class ExtractedAgainFilter(ConditionFilter):
    title = "extracted again"
    parameter_name = "met"
    options = {"yes": ("Yes", Q(met_count__gt=0)), "no": ("Not yet", Q(met_count=0))}


def describe_entities(tombstone: FactTombstone) -> str:
    count = len(tombstone.entity_digests)
    return f"{count} names, as keyed digests" if count else "no names"


def lift_rows(owner: Owner, row_ids: Sequence[UUID], now: datetime) -> BulkResult:
    rows = FactTombstone.objects.filter(account_id=owner.account_id, pk__in=row_ids).order_by("-pk")
    return change_each(rows, lambda tombstone: lift_tombstone(owner, tombstone.pk))


@admin.register(FactTombstone)
class FactTombstoneAdmin(ReadOnlyAdmin):
    """The pages of tombstones. Deleting one lifts it: the claim may be learned again, the fact stays rejected."""

    list_display = ("named", "account", "rejected_by_text", "rejected_at", "times_extracted", "last_met_at")
    list_filter = (AccountFilter, ExtractedAgainFilter)
    search_fields = ("rejected_by__exact", "fact_digest__startswith")
    search_help_text = (
        "Search for the complete name of the person or key that rejected it, or for the beginning of a digest."
    )
    bulk_deletion = False
    bulk_actions = (
        BulkAction(
            name="lift",
            label="Lift selected %(verbose_name_plural)s",
            done="Lifted",
            apply=lift_rows,
            permission="delete",
            explanation="The claims may be learned again.",
        ),
    )
    fields = (
        "named", "account", "rejected_by_text", "rejected_at", "entities", "times_extracted", "last_met_at",
        "claim_digest", "fact_digest", "id",
    )  # fmt: skip
    allow_delete = True
    deletion_note = "The claim may be learned again."

    named = column("Tombstone", lambda tombstone: tombstone.fact_digest[:12])
    rejected_by_text = text_column("Rejected by", "rejected_by")
    entities = column("Entities", describe_entities)
    times_extracted = column("Extracted again", lambda tombstone: f"{tombstone.met_count}×")

    def remove_row(self, owner: Owner, row: Any) -> None:
        lift_tombstone(owner, row.pk)
