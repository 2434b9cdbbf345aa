"""Reviews: two facts that contradict each other, side by side with what says so, for staff to decide on."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.db.models.functions import Left
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse

from memory.admin.base import ReadOnlyAdmin, staff_owner
from memory.admin.beliefs import read_entities, read_quotes, tell_span, tell_time
from memory.admin.deeds import say_refusal
from memory.admin.diffs import compare
from memory.admin.text import EXCERPT_CHARACTERS, mark_invisible, shorten
from memory.errors import MemoryServiceError
from memory.models import Fact, FactReview
from memory.services.facts.review import Spans, decide_review
from memory_project.admin_lists import AccountFilter

Status = FactReview.Status


class DecisionFilter(admin.SimpleListFilter):
    """Those that wait, unless told otherwise: they are what the list is for."""

    title = "decision"
    parameter_name = "decision"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        decided = [status for status in Status if status != Status.OPEN]
        return [*((status.value, status.label) for status in decided), ("any", "All")]

    def choices(self, changelist: Any) -> Any:
        first, *others = super().choices(changelist)
        return [{**first, "display": "Open"}, *others]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        asked = self.value() or Status.OPEN
        return queryset if asked == "any" else queryset.filter(status=asked)


class AcceptForm(forms.Form):
    changed_at = forms.DateTimeField(
        required=False,
        label="Changed at",
        help_text="YYYY-MM-DD HH:MM, UTC. Empty: since the new one holds, or now.",
    )


class BothForm(forms.Form):
    old_valid_to = forms.DateTimeField(required=False, label="The old one until", help_text="Empty: as it says.")
    new_valid_from = forms.DateTimeField(required=False, label="The new one from", help_text="Empty: as it says.")


class KeepForm(forms.Form):
    """Nothing more to say."""


FORMS: dict[str, type[forms.Form]] = {
    Status.ACCEPTED_NEW: AcceptForm,
    Status.KEPT_OLD: KeepForm,
    Status.BOTH_TRUE: BothForm,
}
"""What each decision asks for."""


CLAIMS = ("new_claim", "old_claim")


@admin.register(FactReview)
class FactReviewAdmin(ReadOnlyAdmin):
    """Opened by extraction where the policy is to ask. Deciding takes the permission to change reviews."""

    list_display = (*CLAIMS, "similarity", "status", "decided_by", "account", "created_at")
    list_filter = (AccountFilter, DecisionFilter)
    list_select_related = ("account",)
    search_fields = ("decided_by__exact",)
    search_help_text = "Who decided, in full."

    def get_list_display(self, request: HttpRequest) -> Any:
        may_read = request.user.has_perm("memory.view_fact")
        return (
            self.list_display if may_read else ("__str__", *(name for name in self.list_display if name not in CLAIMS))
        )

    def get_queryset(self, request: HttpRequest) -> QuerySet[FactReview]:
        rows: QuerySet[FactReview] = super().get_queryset(request)
        return rows.annotate(
            **{f"{side}_claim": Left(f"{side}_fact__text", EXCERPT_CHARACTERS + 1) for side in ("old", "new")}
        )

    @admin.display(description="New claim")
    def new_claim(self, review: Any) -> str:
        return shorten(review.new_claim)

    @admin.display(description="Old claim")
    def old_claim(self, review: Any) -> str:
        return shorten(review.old_claim)

    def may_decide(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm("memory.change_factreview"))

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Instead of a form: both facts, and the buttons that decide."""
        review: FactReview | None = self.get_object(request, object_id)
        if not self.has_view_permission(request, review):
            raise PermissionDenied
        if review is None:
            raise Http404("no such review")
        tried: forms.Form | None = None
        if request.method == "POST":
            tried = self.decide(request, review)
            if tried is None:
                return HttpResponseRedirect(request.path)
        context = self.describe(request, review, tried)
        return TemplateResponse(request, "admin/memory/factreview/review.html", context)

    def decide(self, request: HttpRequest, review: FactReview) -> forms.Form | None:
        """Answers the form when there is something to mend in it, after saying what."""
        if not self.may_decide(request):
            raise PermissionDenied
        decision = request.POST.get("decision", "")
        if decision not in FORMS:
            raise Http404("no such decision")
        form = FORMS[decision](request.POST, auto_id=f"id_{decision}_%s")
        if not form.is_valid():
            self.message_user(request, "Not decided: see what is said beside it.", messages.ERROR)
            return form
        owner = staff_owner(request, review.account_id)
        try:
            decide(owner, review, Status(decision), form.cleaned_data)
        except MemoryServiceError as err:
            self.message_user(request, f"Not decided: {say_refusal(err)}", messages.ERROR)
            return form
        self.log_change(request, review, f"Decided: {Status(decision).label.lower()}.")
        self.message_user(request, f"Decided: {Status(decision).label.lower()}.", messages.SUCCESS)
        return None

    def describe(self, request: HttpRequest, review: FactReview, tried: forms.Form | None) -> dict[str, Any]:
        rows: Any = Fact.objects.filter(account_id=review.account_id, pk__in=[review.old_fact_id, review.new_fact_id])
        facts = {fact.pk: fact for fact in rows}
        old, new = facts[review.old_fact_id], facts[review.new_fact_id]
        may_read_facts, may_read_turns, may_see_entities = (
            request.user.has_perm(f"memory.view_{model}") for model in ("fact", "turn", "entity")
        )
        quotes = read_quotes([old, new]) if may_read_facts and may_read_turns else {}
        entities = read_entities([old, new]) if may_read_facts and may_see_entities else {}
        return {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": "Which of two facts is true?",
            "review": review,
            "decided_by": mark_invisible(review.decided_by),
            "may_read": may_read_facts,
            "may_read_turns": may_read_turns,
            "sides": [show_side(name, fact, quotes, entities) for name, fact in (("Old", old), ("New", new))]
            if may_read_facts
            else [],
            "diff": compare(old.text, new.text) if may_read_facts else None,
            "is_open": review.status == Status.OPEN,
            "may_decide": self.may_decide(request) and may_read_facts,
            "forms": {name: form_of(name, tried) for name in FORMS},
        }


def form_of(decision: str, tried: forms.Form | None) -> forms.Form:
    """As it was typed, where it was."""
    form = FORMS[decision]
    return tried if tried is not None and type(tried) is form else form(auto_id=f"id_{decision}_%s")


def decide(owner: Any, review: FactReview, decision: FactReview.Status, data: dict[str, Any]) -> None:
    """Raises MemoryServiceError."""
    now = datetime.now(UTC)
    spans = Spans(**data) if decision == Status.BOTH_TRUE else None
    changed_at = data.get("changed_at")
    decide_review(owner, review.pk, decision=decision, changed_at=changed_at, spans=spans, now=now)


def show_side(name: str, fact: Fact, quotes: Any, entities: Any) -> dict[str, Any]:
    """One of the two facts, ready for the page."""
    believed = "not yet" if fact.recorded_at is None else f"since {tell_time(fact.recorded_at)}"
    return {
        "name": name,
        "fact": fact,
        "claim": mark_invisible(fact.text),
        "valid": tell_span(fact.valid_from, fact.valid_to),
        "believed": f"until {tell_time(fact.retracted_at)}" if fact.retracted_at else believed,
        "quotes": quotes.get(fact.pk, []),
        "entities": entities.get(fact.pk, []),
        "url": reverse("admin:memory_fact_change", args=[fact.pk]),
    }
