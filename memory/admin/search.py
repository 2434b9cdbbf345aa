"""The search for everything: an id leads to its page; other texts are searched for as names, as words and by meaning.

All of it stays within the accounts that the member of staff sees, and shows the kinds that the member may view. Nothing
is counted as read, and every part is bounded. Who sees all accounts and has chosen none searches for ids, and for names
in small tables alone.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import CharField, F, Model, QuerySet, UUIDField, Value, Window
from django.db.models.functions import RowNumber
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import path, reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache

from memory.admin.base import render_page, staff_owner
from memory.admin.beliefs import state_marks
from memory.admin.columns import change_url, list_url
from memory.admin.degradations import describe_degradation
from memory.admin.navigation import LABELS
from memory.admin.text import error_sentence, excerpt_of, mark_invisible
from memory.errors import MemoryServiceError
from memory.kinds import all_specs, spec_of
from memory.models import Account, AuditEntry, Kind, Memory
from memory.models.statements import fetch_rows
from memory.retrieval.hidden import MIN_SIMILARITY
from memory.retrieval.queries import Query
from memory.retrieval.retrievers.lexical import find_ids_by_words
from memory.services.recall.recall import RecallRequest, recall
from memory_project.admin_lists import read_uuid
from memory_project.staff import AccountLimitedAdmin, limit_rows, visible_accounts

SNIPPET_CHARACTERS = 160
LEAD_CHARACTERS = 50
"""Characters before the first match."""
MIN_WORD_CHARACTERS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class SnippetPart:
    """A part of a snippet. Parts that match are emphasized."""

    text: str
    is_match: bool


def cut_snippet(text: str, question: str) -> list[SnippetPart]:
    """Return a snippet of a text on one line, around the first word of the question, in parts.

    Without a match it is the beginning of the text. Invisible characters are marked.
    """
    line = " ".join(text.split())
    words = sorted({word for word in re.findall(r"\w+", question) if len(word) >= MIN_WORD_CHARACTERS}, key=len)
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, reversed(words))) or '(?!)'})", re.IGNORECASE)
    first = pattern.search(line)
    start = max(first.start() - LEAD_CHARACTERS, 0) if first and first.start() > LEAD_CHARACTERS else 0
    cut = line[start : start + SNIPPET_CHARACTERS]
    parts = [SnippetPart(text="…", is_match=False)] if start else []
    end = 0
    for match in pattern.finditer(cut):
        parts += [SnippetPart(text=cut[end : match.start()], is_match=False)]
        parts += [SnippetPart(text=match[0], is_match=True)]
        end = match.end()
    parts.append(SnippetPart(text=cut[end:] + ("…" if len(line) > start + len(cut) else ""), is_match=False))
    return [SnippetPart(text=mark_invisible(part.text), is_match=part.is_match) for part in parts if part.text]


MAX_QUESTION_CHARACTERS = 500
MAX_OF_A_KIND = 5
MAX_MATCHES = 2_000
"""Memories that match the words and of which the newest are shown."""
MAX_MEANT = 10
TEXT_CHARACTERS = 5_000
"""Characters of a text in which a snippet is looked for."""

NAMED = (
    "account", "conversation", "agent", "userprofile", "tool", "persistentcontext", "memorypool", "team", "workflowrun",
    "apikey",
)  # fmt: skip
"""Lists of what has a name, which are searched as their own search boxes do."""
NAMED_EVERYWHERE = ("account", "apikey", "tool", "team")
"""Those of them that are small, over all accounts too."""

# the texts of one statement, each cut in the database
TEXTS = """
SELECT id, account_id, kind, left(text, %(characters)s), user_id, agent_id,
    array_remove(ARRAY[CASE WHEN archived THEN 'archived' END, CASE WHEN quarantined THEN 'quarantined' END,
        CASE WHEN buried THEN 'buried' END], NULL),
    status, valid_from, valid_to
FROM memories
WHERE id = ANY(%(ids)s::uuid[]) AND (%(accounts)s::uuid[] IS NULL OR account_id = ANY(%(accounts)s::uuid[]))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A row that was found: its text in parts, of which some match, and whose it is.

    `state` says why agents are not told it as it stands, such as "retracted"; "" if they are.
    """

    url: str
    parts: Sequence[SnippetPart]
    account: str
    note: str = ""
    state: str = ""
    holder: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundGroup:
    """The rows found in one list, and the address of that list with the same search."""

    name: str
    rows: Sequence[Found]
    more_url: str = ""


@never_cache
def show_search(request: HttpRequest) -> HttpResponse:
    """Search for `q`. An id that one row has leads to its page at once."""
    question = request.GET.get("q", "").replace("\x00", "").strip()[:MAX_QUESTION_CHARACTERS]
    row_id = read_uuid(question)
    context: dict[str, Any] = {"question": question}
    if row_id is not None:
        addresses = find_by_id(request, row_id)
        if len(addresses) == 1:
            return HttpResponseRedirect(addresses[0][1])
        context |= {"addresses": addresses, "is_id": True, "audit_url": audit_url(request, row_id)}
    elif question:
        accounts = searched_accounts(request)
        is_everywhere = accounts is None
        context["names"] = list(search_names(request, question, NAMED_EVERYWHERE if is_everywhere else NAMED))
        context["words"] = [] if is_everywhere else search_words(request, question, accounts)
        context |= {"is_everywhere": is_everywhere, **search_meaning(request, question, accounts)}
    return render_page(request, "search.html", "Search", maximum=MAX_OF_A_KIND, **context)


def searched_accounts(request: HttpRequest) -> frozenset[UUID] | None:
    """Return the accounts to search: those that the request may see, or the only one that there is. None for all."""
    visible = visible_accounts(request)
    if visible is not None:
        return visible
    existing = frozenset(Account.objects.order_by("pk").values_list("pk", flat=True)[:2])
    return existing if len(existing) == 1 else None


def page_of(name: str) -> Any:
    """Return the registered pages of a model."""
    return next(pages for model, pages in admin.site._registry.items() if model._meta.model_name == name)


def label_of(model: type[Model]) -> str:
    name = str(model._meta.verbose_name_plural)
    return LABELS.get(model._meta.label_lower, name[:1].upper() + name[1:])


def find_by_id(request: HttpRequest, row_id: UUID) -> list[tuple[str, str]]:
    """Return the lists that have a row of this id which the user may view, and the addresses of its pages."""
    pages = [each for each in admin.site._registry.values() if has_own_ids(each) and each.has_view_permission(request)]
    found = [
        limit_rows(each.model._base_manager.filter(pk=row_id), request).order_by()
        .values_list(Value(each.model._meta.model_name, output_field=CharField()), kind_column(each.model))
        for each in pages
    ]  # fmt: skip
    if not found:
        return []
    names = (spec_of(kind).admin_page if kind else name for name, kind in found[0].union(*found[1:], all=True))
    shown = [name for name in names if page_of(name).has_view_permission(request)]
    return [(label_of(page_of(name).model), page_address(name, row_id)) for name in shown]


def has_own_ids(pages: Any) -> bool:
    """Return True for lists of rows with ids of their own. The log of audits is kept by day, and found from objects."""
    model = pages.model
    is_kind = model._meta.db_table == Memory._meta.db_table and model is not Memory
    is_row = isinstance(pages, AccountLimitedAdmin) and isinstance(model._meta.pk, UUIDField)
    return is_row and not (model._meta.proxy or is_kind or model is AuditEntry)


def kind_column(model: type[Model]) -> Any:
    return F("kind") if model is Memory else Value("", output_field=CharField())


def page_address(name: str, row_id: object) -> str:
    return reverse(f"admin:{page_of(name).model._meta.app_label}_{name}_change", args=[row_id])


def audit_url(request: HttpRequest, row_id: UUID) -> str:
    allowed = request.user.has_perm("memory.view_auditentry")
    return list_url("auditentry", affected=row_id, since="month") if allowed else ""


def search_names(request: HttpRequest, question: str, names: Sequence[str]) -> Iterator[FoundGroup]:
    """Yield rows of the lists of these models. One statement for each."""
    for name in names:
        pages = page_of(name)
        if not pages.has_view_permission(request):
            continue
        rows, _ = pages.get_search_results(request, pages.get_queryset(request), question)
        rows = rows.order_by("-pk").defer(*pages.long_columns)
        if name != "account":
            rows = rows.select_related("account")
        if found := [named_row(pages, row, question) for row in rows[:MAX_OF_A_KIND]]:
            yield FoundGroup(name=label_of(pages.model), rows=found, more_url=list_url(name, q=question))


def named_row(pages: Any, row: Any, question: str) -> Found:
    account = "" if isinstance(row, Account) else excerpt_of(row.account.name)
    url = change_url(pages.opts.model_name, row.pk)
    return Found(url=url, parts=cut_snippet(pages.name_row(row), question), account=account)


def readable_kinds(request: HttpRequest) -> list[str]:
    return [spec.name for spec in all_specs() if request.user.has_perm(f"memory.view_{spec.admin_page}")]


def search_words(request: HttpRequest, question: str, accounts: frozenset[UUID] | None) -> list[FoundGroup]:
    """Return the newest memories of each kind that hold all words. Four statements."""
    kinds = readable_kinds(request)
    matching = find_ids_by_words(question, accounts=accounts, kinds=kinds, limit=MAX_MATCHES)
    place = Window(RowNumber(), partition_by=[F("kind")], order_by=F("pk").desc())
    newest: QuerySet[Any] = limit_rows(Memory.objects.filter(pk__in=matching), request).annotate(place=place)
    ids = list(newest.filter(place__lte=MAX_OF_A_KIND).values_list("pk", flat=True)) if matching else []
    by_kind: dict[str, list[Found]] = {kind: [] for kind in kinds}
    for kind, found in read_found(request, ids, question).values():
        by_kind[kind].append(found)
    return [
        FoundGroup(name=capitalized(spec_of(kind).plural), rows=rows, more_url=kind_list_url(kind, question))
        for kind, rows in by_kind.items()
        if rows
    ]


def capitalized(name: str) -> str:
    return name[:1].upper() + name[1:]


def kind_list_url(kind: str, question: str) -> str:
    page = spec_of(kind).admin_page
    return list_url(page, q=question, **({"kind__exact": kind} if page == "memory" else {}))


def read_found(request: HttpRequest, ids: Collection[UUID], question: str) -> dict[UUID, tuple[str, Found]]:
    """Return the kind and the row on the page of memories, newest first. Two statements."""
    if not ids:
        return {}
    visible = visible_accounts(request)
    given = {"ids": list(ids), "characters": TEXT_CHARACTERS, "accounts": None if visible is None else list(visible)}
    rows = sorted(fetch_rows(TEXTS, given), reverse=True)
    names = dict(Account.objects.filter(pk__in={account_id for _, account_id, *_ in rows}).values_list("pk", "name"))
    now = timezone.now()
    return {
        id_: (
            kind,
            Found(
                url=change_url(spec_of(kind).admin_page, id_),
                parts=cut_snippet(text, question),
                account=excerpt_of(names.get(account_id, "")),
                state=", ".join([*(state_marks(*belief, now=now) if kind == Kind.FACT else []), *marks]),
                holder=describe_holder(user_id, agent_id),
            ),
        )
        for id_, account_id, kind, text, user_id, agent_id, marks, *belief in rows
    }


def describe_holder(user_id: str, agent_id: str) -> str:
    named = [("user", user_id), ("agent", agent_id)]
    return ", ".join(f"{label} {excerpt_of(name)}" for label, name in named if name)


def search_meaning(request: HttpRequest, question: str, accounts: frozenset[UUID] | None) -> dict[str, Any]:
    """Return what a recall for the account finds that is similar, most similar first.

    It needs one account, and counts nothing as read.
    """
    if accounts is None or len(accounts) != 1:
        return {"needs_account": True}
    (account_id,) = accounts
    kinds = [Kind(kind) for kind in readable_kinds(request)]
    if not kinds:
        return {}
    asked = RecallRequest(query=Query(text=question, top_k=MAX_MEANT, kinds=kinds))
    try:
        bundle = recall(staff_owner(request, account_id), asked, now=timezone.now())
    except MemoryServiceError as err:
        return {"remarks": [error_sentence(err)]}
    found = read_found(request, [result.id for result in bundle.results], question)
    results = sorted(filter(is_similar, bundle.results), key=lambda each: -(each.similarity or 0))
    rows = [describe_meant(result, *found[result.id]) for result in results if result.id in found]
    return {"meant": rows, "remarks": [describe_degradation(code) for code in bundle.degraded]}


def is_similar(result: Any) -> bool:
    """Return True for results that are near the question, and for those that have no vector to compare yet."""
    return result.similarity is None or result.similarity >= MIN_SIMILARITY


def describe_meant(result: Any, kind: str, found: Found) -> Found:
    similarity = "" if result.similarity is None else f", similarity {result.similarity:.2f}"
    note = f"{capitalized(spec_of(kind).label)}{similarity}"
    return replace(found, note=note)


app_name = "search"
urlpatterns = [path("", admin.site.admin_view(show_search), name="page")]
