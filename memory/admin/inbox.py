"""The inbox of curators: what people have to decide, in one queue, newest first, for the mouse and the keyboard.

A `Source` finds the items of one kind and says what can be done to them. To add one, write its functions in
`inbox_items` and put it into `SOURCES`. Services carry out what is decided; no decision deletes for good.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Model, Q
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import path, reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods

from memory.admin.base import REDIS_IS_DOWN, render_page, watching_owner
from memory.admin.columns import list_url
from memory.admin.forgotten import Forgotten, link_facts, link_turns, read_forgotten
from memory.admin.inbox_items import (
    RECENT_ROWS,
    Describe,
    Find,
    InboxItem,
    describe_memory,
    describe_merge,
    describe_parked,
    describe_review,
    newest_memories,
    open_forget_requests,
    open_reviews,
    parked_conversations,
    unconfirmed_merges,
)
from memory.admin.memories import NOT_YET_EMBEDDED
from memory.admin.text import error_sentence
from memory.errors import MemoryServiceError
from memory.models import Account, Conversation, Fact, FactReview, Link, Memory, Turn
from memory.owner import Owner
from memory.services.conversations.staff_edits import retry_failed
from memory.services.duplicates.merge import confirm_merge, undo_merge
from memory.services.extraction.forget import close_request
from memory.services.facts.review import decide_review
from memory.services.facts.supersede import correct_fact, reject_fact, retract_fact
from memory.services.memories.correct import clear_secret_mark, mark_memories
from memory.tasks import run_soon
from memory_project.admin_lists import read_uuid
from memory_project.http.problems import REDIS_ERRORS
from memory_project.staff import limit_rows

MAX_OF_A_KIND = 20
DOUBTFUL_BELOW = 0.5
"""Facts with less confidence are to be looked at."""

Decide = Callable[[Owner, Any, datetime], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Something that can be done to an item: the label of its button, its key, and the service that does it."""

    label: str
    key: str
    run: Decide
    done: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Items of one kind: rows of `model`, for staff who may view them, decided by those who may change them."""

    label: str
    model: type[Model]
    find: Find
    describe: Describe
    decisions: Mapping[str, Decision]
    watched: Callable[[Any], tuple[type[Model], Sequence[UUID]]] | None = None
    """The rows whose values before and after the audit log keeps, if they are not the item itself."""

    def is_allowed(self, user: Any, verb: str) -> bool:
        """Return True if the member of staff may `view` or `change` what the items are about."""
        model = Memory if self.model is Link else self.model
        allowed: bool = user.has_perm(f"memory.{verb}_{model._meta.model_name}")
        return allowed


def review_as(decision: FactReview.Status) -> Decide:
    return lambda owner, row, now: decide_review(owner, row.pk, decision=decision, now=now)


def mark_as(mark: str) -> Decide:
    return lambda owner, row, now: mark_memories(owner, [row.pk], mark=mark, now=now)


def trust_fact(owner: Owner, row: Any, now: datetime) -> None:
    """Make a fact certain, since somebody has confirmed it."""
    changes = {"confidence": 1.0}
    correct_fact(owner, row.pk, changes=changes, embedded=NOT_YET_EMBEDDED, expected=row.version, now=now)


def take_for_statement(owner: Owner, row: Any, now: datetime) -> None:
    """Let searches find a turn that asks for nothing."""
    close_request(owner, row.pk)
    mark_memories(owner, [row.pk], mark="unbury", now=now)


def retry_parked(owner: Owner, row: Any, now: datetime) -> None:
    for job in sorted(retry_failed(owner, row, now=now)):
        run_soon(job)


Status = FactReview.Status
ARCHIVE = Decision(label="Archive", key="a", run=mark_as("archive"), done="Archived: searches no longer find it.")

NO_REQUEST = "Searches find the turn “{text}” again. Facts that it had retracted stay retracted."

SOURCES: Mapping[str, Source] = {
    "contradictions": Source(
        label="Contradictions",
        model=FactReview,
        find=open_reviews,
        watched=lambda row: (Fact, [row.old_fact_id, row.new_fact_id]),
        describe=describe_review,
        decisions={
            "new": Decision(label="New is true", key="n", run=review_as(Status.ACCEPTED_NEW), done="It is believed."),
            "old": Decision(label="Old is true", key="e", run=review_as(Status.KEPT_OLD), done="The old one stays."),
            "both": Decision(label="Both are true", key="b", run=review_as(Status.BOTH_TRUE), done="Both are true."),
        },
    ),
    "duplicates": Source(
        label="Near-duplicates",
        model=Link,
        find=unconfirmed_merges,
        watched=lambda row: (Memory, [row.source_id, row.target_id]),
        describe=describe_merge,
        decisions={
            "same": Decision(
                label="They are the same",
                key="y",
                run=lambda owner, row, now: confirm_merge(owner, row.source_id, now=now),
                done="The merge is confirmed.",
            ),
            "apart": Decision(
                label="Keep them apart",
                key="u",
                run=lambda owner, row, now: undo_merge(owner, row.source_id, now=now),
                done="The merge is undone. The two are not merged again.",
            ),
        },
    ),
    "instructions": Source(
        label="Instructions",
        model=Memory,
        find=newest_memories(quarantined=True, archived=False),
        describe=describe_memory(
            "A {kind} is in quarantine, as one that gives orders", "No recall returns it while it is in quarantine."
        ),
        decisions={
            "release": Decision(label="Release", key="y", run=mark_as("release"), done="Released: recalls return it."),
            "archive": ARCHIVE,
        },
    ),
    "secrets": Source(
        label="Secrets",
        model=Memory,
        find=newest_memories(has_secret=True, archived=False, quarantined=False),
        describe=describe_memory("A {kind} seems to hold a secret"),
        decisions={
            "harmless": Decision(
                label="It is no secret",
                key="y",
                run=lambda owner, row, now: clear_secret_mark(owner, row.pk, now=now),
                done="It is no longer marked.",
            ),
            "quarantine": Decision(
                label="Quarantine", key="q", run=mark_as("quarantine"), done="In quarantine: no recall returns it."
            ),
            "archive": ARCHIVE,
        },
    ),
    "doubtful": Source(
        label="Doubtful facts",
        model=Fact,
        find=newest_memories(
            status=Fact.Status.ACTIVE, archived=False, quarantined=False, confidence__lt=DOUBTFUL_BELOW
        ),
        describe=describe_memory("A fact is doubtful", "Confidence {row.confidence:g}."),
        decisions={
            "true": Decision(label="It is true", key="y", run=trust_fact, done="Its confidence is 1 now."),
            "retract": Decision(
                label="Retract",
                key="r",
                run=lambda owner, row, now: retract_fact(owner, row.pk, now=now),
                done="Retracted. It may be learned again.",
            ),
            "reject": Decision(
                label="Reject",
                key="x",
                run=lambda owner, row, now: reject_fact(owner, row.pk, now=now),
                done="Rejected. It is not learned again until its tombstone is lifted.",
            ),
        },
    ),
    "forgetting": Source(
        label="Requests to forget",
        model=Turn,
        find=open_forget_requests,
        describe=describe_memory("A user asks to forget something"),
        decisions={
            "done": Decision(
                label="Done",
                key="y",
                run=lambda owner, row, now: close_request(owner, row.pk),
                done="The request is closed.",
            ),
            "none": Decision(label="It is no request", key="u", run=take_for_statement, done=NO_REQUEST),
        },
    ),
    "parked": Source(
        label="Parked work",
        model=Conversation,
        find=parked_conversations,
        describe=describe_parked,
        decisions={"retry": Decision(label="Try again", key="t", run=retry_parked, done="It is tried again now.")},
    ),
}  # fmt: skip

SWITCHES: Mapping[str, tuple[Q, str]] = {
    "instructions": (
        Q(quarantines_instructions=True),
        "No account shown here quarantines such memories. Its field “Quarantines instructions” switches that on.",
    ),
    "secrets": (
        Q(secrets="mark"),
        "No account shown here marks memories that seem to hold a secret. Its field “Secrets” switches that on.",
    ),
}
"""Accounts that look for items of a kind, which they do not by default, and what to say where none does."""


@require_http_methods(["GET", "HEAD", "POST"])
def show_inbox(request: HttpRequest) -> HttpResponse:
    """Show what is to be decided, or carry out a decision and show what is left."""
    user: Any = request.user
    seen = {name: each for name, each in SOURCES.items() if each.is_allowed(user, "view")}
    if not seen:
        raise PermissionDenied
    if request.method == "POST":
        return decide(request, seen)
    chosen = request.GET.get("kind", "")
    listed = {chosen: seen[chosen]} if chosen in seen else seen
    items = sorted(collect_items(request, listed), key=lambda each: each.at, reverse=True)
    counts = Counter(each.source for each in items)
    return render_page(
        request,
        "inbox.html",
        "Inbox",
        items=items,
        may_decide=any(each.decisions for each in items),
        kinds=[(name, each.label, counts[name]) for name, each in seen.items()],
        is_off=describe_switch(request, chosen) if chosen in seen and not items else "",
        chosen=chosen if chosen in seen else "",
        max_of_a_kind=MAX_OF_A_KIND,
        recent_rows=f"{RECENT_ROWS:,}",
    )


def describe_switch(request: HttpRequest, kind: str) -> str:
    """Return a sentence on a kind of which there are no items because no account looks for them; "" for others."""
    condition, sentence = SWITCHES.get(kind, (None, ""))
    is_on = condition is None or limit_rows(Account.objects.filter(condition), request).exists()
    return "" if is_on else sentence


def collect_items(request: HttpRequest, sources: Mapping[str, Source]) -> Iterable[InboxItem]:
    """Yield the newest items of each source with what the member of staff may decide about them."""
    user: Any = request.user
    now = datetime.now(UTC)
    for name, source in sources.items():
        may_decide = source.is_allowed(user, "change")
        wanted = source.find(limit_rows(source.model._default_manager.all(), request), now)
        rows = list(wanted.select_related("account").order_by("-pk")[:MAX_OF_A_KIND])
        is_about_facts = name == "forgetting" and user.has_perm("memory.view_fact")
        forgotten = read_forgotten(rows, now=now) if is_about_facts else {}
        for row in rows:
            decisions = list(source.decisions.items()) if may_decide else []
            item = add_links(request, replace(source.describe(row), source=name, decisions=decisions))
            yield add_forgotten(request, item, row, forgotten[row.pk]) if row.pk in forgotten else item


def add_forgotten(request: HttpRequest, item: InboxItem, asking: Turn, found: Forgotten) -> InboxItem:
    """Return the item of a request to forget with what became of it, for a user who may view facts."""
    user: Any = request.user
    may_see_turns = user.has_perm("memory.view_conversation")
    still_said = link_turns(found, asking) if may_see_turns else ()
    return replace(item, note=found.note, retracted=link_facts(found), still_said=still_said)


def add_links(request: HttpRequest, item: InboxItem) -> InboxItem:
    """Return the item with the addresses to which it leads besides its own page, as far as the user may view them."""
    user: Any = request.user
    memories = item.user_id and user.has_perm("memory.view_memory")
    conversation = item.conversation_id and user.has_perm("memory.view_conversation")
    may_erase = item.source == "forgetting" and item.user_id and user.has_perm("memory.add_erasure")
    # turns are not deleted, since they are numbered without gaps
    is_deletable = item.source == "secrets" and item.page != "turn" and user.has_perm(f"memory.delete_{item.page}")
    account = item.account_id
    named = urlencode({"account": str(account), "user": item.user_id})
    return replace(
        item,
        erase_url=f"{reverse('admin:memory_erasure_erase')}?{named}" if may_erase else "",
        memories_url=list_url("memory", account=account, user_id=item.user_id) if memories else "",
        conversation_url=list_url("conversation", account=account, q=item.conversation_id) if conversation else "",
        delete_url=reverse(f"admin:memory_{item.page}_delete", args=[item.id]) if is_deletable else "",
    )


def decide(request: HttpRequest, sources: Mapping[str, Source]) -> HttpResponse:
    """Carry out the posted decision, as long as the item is still to be decided."""
    user: Any = request.user
    source = sources.get(request.POST.get("source", ""))
    decision = source.decisions.get(request.POST.get("decision", "")) if source else None
    row_id = read_uuid(request.POST.get("id", ""))
    if source is None or decision is None or row_id is None:
        raise Http404("There is no such decision.")
    if not source.is_allowed(user, "change"):
        raise PermissionDenied
    now = datetime.now(UTC)
    row: Any = source.find(limit_rows(source.model._default_manager.all(), request), now).filter(pk=row_id).first()
    if row is None:
        messages.warning(request, "Nothing was changed. Somebody has decided it already.")
    else:
        try:
            model, ids = source.watched(row) if source.watched else (source.model, [row.pk])
            decision.run(watching_owner(request, row.account_id, model, ids), row, now)
        except MemoryServiceError as err:
            messages.error(request, f"Nothing was changed. {error_sentence(err)}")
        except REDIS_ERRORS:
            messages.error(request, REDIS_IS_DOWN)
        else:
            messages.success(request, decision.done.format(text=source.describe(row).texts[0]))
    kind = request.POST.get("kind", "")
    address = reverse("inbox:page")
    return HttpResponseRedirect(f"{address}?kind={kind}" if kind in sources else address)


app_name = "inbox"
urlpatterns = [path("", admin.site.admin_view(show_inbox), name="page")]
