"""Working memory of agents: from an agent's page, which there are in Redis and what they hold; and those saved."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from memory import conf
from memory.admin.base import AuditedAdmin, BoundedAdmin, staff_owner
from memory.admin.documents import show_json
from memory.admin.fields import ExternalIdField, JSONValueField
from memory.admin.live import MOST_SCANS, read_cursor
from memory.admin.text import mark_invisible
from memory.errors import MemoryServiceError
from memory.models import Agent, SavedWorkingMemory
from memory.owner import Owner
from memory.services.working_memory.staff_edits import clear_values, correct_value, memory_at, remove_value
from memory.tiers.agent_working import MOST_TTL_SECONDS, WorkingMemoryService, scan_agents
from memory.tiers.base import NAME_LENGTH, from_json
from memory_project.admin_lists import AccountFilter
from memory_project.redis import AgentPlace

MOST_VALUES = 50
MOST_SAVED = 50
VIEW, CHANGE = "memory.view_savedworkingmemory", "memory.change_savedworkingmemory"


class PlaceForm(forms.Form):
    """Which of an agent's working memories: its own, or that for a task, a workflow run, or both."""

    task = ExternalIdField(required=False, label="Task")
    run = ExternalIdField(required=False, label="Workflow run")


class NothingForm(forms.Form):
    """An action that needs no more than its name."""


class NameForm(forms.Form):
    name = forms.CharField(max_length=NAME_LENGTH, strip=False)


class ValueForm(NameForm):
    value = JSONValueField(label="Value as JSON")
    ttl_seconds = forms.IntegerField(
        label="Seconds to live", min_value=1, max_value=MOST_TTL_SECONDS, initial=conf.AGENT_MEMORY_TTL_SECONDS
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownValue:
    """A value with the form that corrects it."""

    name: str
    ttl_seconds: int
    form: ValueForm

    @property
    def shown_name(self) -> str:
        return mark_invisible(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPlace:
    """One of an agent's working memories, by name and address."""

    name: str
    url: str

    @classmethod
    def of(cls, place: AgentPlace, agent: Agent) -> Self:
        return cls(name=tell_place(place), url=address_of(agent, place))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Where staff work: an agent's working memory, as the agent."""

    owner: Owner
    place: AgentPlace

    @property
    def memory(self) -> WorkingMemoryService:
        return memory_at(self.owner, self.place)


def tell_place(place: AgentPlace) -> str:
    task = f"task {mark_invisible(place.task_id)}" if place.task_id else ""
    run = f"workflow run {mark_invisible(place.workflow_run_id)}" if place.workflow_run_id else ""
    return ", ".join(filter(None, [task, run])) or "its own"


def address_of(agent: Agent, place: AgentPlace) -> str:
    page = reverse("admin:memory_agent_working_values", args=[agent.pk])
    narrowed = {"task": place.task_id, "run": place.workflow_run_id}
    query = urlencode({name: value for name, value in narrowed.items() if value})
    return f"{page}?{query}" if query else page


def place_of(agent: Agent, *, task_id: str = "", workflow_run_id: str = "") -> AgentPlace:
    return AgentPlace(
        account_id=agent.account_id, agent_id=agent.agent_id, task_id=task_id, workflow_run_id=workflow_run_id
    )


def find_places(agent: Agent, cursor: int) -> tuple[list[AgentPlace], int]:
    """Those that a bounded walk through the account's working memories meets, and where to go on; 0 is the end."""
    found: set[AgentPlace] = set()
    for _ in range(MOST_SCANS):
        places, cursor = scan_agents(agent.account_id, cursor)
        found |= {place for place in places if place.agent_id == agent.agent_id}
        if not cursor:
            break
    return sorted(found, key=lambda place: (place.task_id, place.workflow_run_id)), cursor


def read_values(memory: WorkingMemoryService, names: list[str]) -> list[ShownValue]:
    """One round trip each, since all of them may be long: those of a page only."""
    found = [(name, memory.find(name)) for name in names]
    return [
        ShownValue(name=name, ttl_seconds=stored.ttl_seconds, form=form_of(name, stored.value, stored.ttl_seconds))
        for name, stored in found
        if stored is not None
    ]


def form_of(name: str, value: Any, ttl_seconds: int) -> ValueForm:
    return ValueForm(initial={"name": name, "value": value, "ttl_seconds": ttl_seconds})


def save(bench: Bench, data: dict[str, Any]) -> str:
    name, ttl_seconds = data["name"], data["ttl_seconds"]
    correct_value(bench.owner, bench.place, key=name, value=data["value"], ttl_seconds=ttl_seconds)
    return f"Saved {mark_invisible(name)}: it lives for {ttl_seconds} seconds."


def remove(bench: Bench, data: dict[str, Any]) -> str:
    was_there = remove_value(bench.owner, bench.place, key=data["name"])
    return f"Removed {mark_invisible(data['name'])}." if was_there else "It was gone already."


def clear(bench: Bench, data: dict[str, Any]) -> str:
    return f"Removed: {clear_values(bench.owner, bench.place)}."


def persist(bench: Bench, data: dict[str, Any]) -> str:
    saved = bench.memory.persist_to_database(now=datetime.now(UTC))
    return f"Saved in the database: {saved.count}."


def load(bench: Bench, data: dict[str, Any]) -> str:
    loaded = bench.memory.load_from_database()
    return f"Brought back from the database: {loaded.count}."


FORMS: Mapping[str, type[forms.Form]] = {
    "add": ValueForm,
    "save": ValueForm,
    "remove": NameForm,
    "clear": NothingForm,
    "persist": NothingForm,
    "load": NothingForm,
}
DEEDS: Mapping[str, Callable[[Bench, dict[str, Any]], str]] = {
    "add": save,
    "save": save,
    "remove": remove,
    "clear": clear,
    "persist": persist,
    "load": load,
}
"""A deed answers the sentence to show. It may raise ValueError and MemoryServiceError, whose messages are shown."""


class AgentWorkingPages(BoundedAdmin):
    """For the admin of agents: two pages more for each. Looking and writing need the permissions for saved ones."""

    def get_urls(self) -> list[URLPattern]:
        def page(address: str, view: Callable[..., HttpResponse], name: str) -> URLPattern:
            return path(f"<path:object_id>/{address}/", self.admin_site.admin_view(view), name=f"memory_agent_{name}")

        return [
            page("working-memory/values", self.values_view, "working_values"),
            page("working-memory", self.places_view, "working"),
            *super().get_urls(),
        ]

    def places_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        agent = self.find_agent(request, object_id)
        form = PlaceForm(request.GET if {"task", "run"} & set(request.GET) else None)
        if form.is_valid():
            chosen = place_of(agent, task_id=form.cleaned_data["task"], workflow_run_id=form.cleaned_data["run"])
            return HttpResponseRedirect(address_of(agent, chosen))
        return self.unless_redis_is_down(request, lambda: self.list_places(request, agent, form))

    def list_places(self, request: HttpRequest, agent: Agent, form: PlaceForm) -> HttpResponse:
        began = not read_cursor(request)
        places, cursor = find_places(agent, read_cursor(request))
        own = place_of(agent)
        shown = [own, *[place for place in places if place != own]] if began else places
        saved = SavedWorkingMemory.objects.visible_to(Owner(account_id=agent.account_id, agent_id=agent.agent_id))
        columns = saved.order_by("task_id", "workflow_run_id").defer("values")[:MOST_SAVED]
        context = {
            "places": [ShownPlace.of(place, agent) for place in shown],
            "saved": [(tell_place(place_of_saved(row)), row) for row in columns],
            "form": form,
            "cursor": cursor,
            "began": began,
        }
        return self.answer(request, agent, "working_places", context)

    def values_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        agent = self.find_agent(request, object_id)
        form = PlaceForm(request.GET)
        if not form.is_valid():
            return HttpResponseRedirect(reverse("admin:memory_agent_working", args=[agent.pk]))
        place = place_of(agent, task_id=form.cleaned_data["task"], workflow_run_id=form.cleaned_data["run"])
        bench = Bench(owner=staff_owner(request, agent.account_id, agent_id=agent.agent_id), place=place)
        return self.unless_redis_is_down(request, lambda: self.answer_values(request, agent, bench))

    def answer_values(self, request: HttpRequest, agent: Agent, bench: Bench) -> HttpResponse:
        tried: forms.Form | None = None
        if request.method == "POST":
            tried = self.act(request, agent, bench)
            if tried is None:
                return HttpResponseRedirect(request.get_full_path())
        wanted = request.GET.get("named", "")
        names = [name for name in bench.memory.keys() if wanted in name]  # noqa: SIM118  no dict: one round trip
        context = {
            "place": bench.place,
            "place_name": tell_place(bench.place),
            "rows": read_values(bench.memory, names[:MOST_VALUES]),
            "row_count": len(names),
            "named": wanted,
            "tried": tried,
            "form": tried if isinstance(tried, ValueForm) else ValueForm(),
            "may_write": request.user.has_perm(CHANGE),
        }
        return self.answer(request, agent, "working_values", context)

    def act(self, request: HttpRequest, agent: Agent, bench: Bench) -> forms.Form | None:
        """Do what was posted. Answers the form when there is something to mend in it, after saying what."""
        if not request.user.has_perm(CHANGE):
            raise PermissionDenied
        action = request.POST.get("action", "")
        if action not in DEEDS:
            raise Http404
        form = FORMS[action](request.POST)
        if not form.is_valid():
            return form
        try:
            done = DEEDS[action](bench, form.cleaned_data)
        except (ValueError, MemoryServiceError) as err:
            form.add_error(None, f"{str(err)[:1].upper()}{str(err)[1:]}.")
            return form
        self.log_change(request, agent, f"{action} in working memory")
        self.message_user(request, done, messages.SUCCESS)
        return None

    def find_agent(self, request: HttpRequest, object_id: str) -> Agent:
        agent: Agent | None = self.get_object(request, object_id)
        if not request.user.has_perm(VIEW):
            raise PermissionDenied
        if agent is None:
            raise Http404("no such agent")
        return agent

    def answer(self, request: HttpRequest, agent: Agent, page: str, context: dict[str, Any]) -> HttpResponse:
        name = mark_invisible(agent.agent_id)
        shared = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "agent": agent,
            "agent_name": name,
            "title": f"Working memory of {name}",
        }
        return TemplateResponse(request, f"admin/memory/agent/{page}.html", {**shared, **context})


def place_of_saved(row: SavedWorkingMemory) -> AgentPlace:
    return AgentPlace(
        account_id=row.account_id, agent_id=row.agent_id, task_id=row.task_id, workflow_run_id=row.workflow_run_id
    )


@admin.register(SavedWorkingMemory)
class SavedWorkingMemoryAdmin(AuditedAdmin):
    """Saved and loaded by agents, or on the page of an agent; here to look at, and to delete."""

    memory_type = "working"
    list_display = ("of_agent", "narrowed_to", "account", "saved_at")
    list_filter = (AccountFilter,)
    list_select_related = ("account",)
    search_fields = ("agent_id__exact", "task_id__exact", "workflow_run_id__exact")
    search_help_text = "An agent, a task or a workflow run, in full."
    fields = ("of_agent", "narrowed_to", "stored", "account", "saved_at", "created_at", "id")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any | None = None) -> bool:
        return False

    def get_queryset(self, request: HttpRequest) -> QuerySet[SavedWorkingMemory]:
        """The page loads the values by itself."""
        return super().get_queryset(request).defer("values")

    @admin.display(description="Agent")
    def of_agent(self, row: SavedWorkingMemory) -> str:
        return mark_invisible(row.agent_id)

    @admin.display(description="Of")
    def narrowed_to(self, row: SavedWorkingMemory) -> str:
        return tell_place(place_of_saved(row))

    @admin.display(description="Values")
    def stored(self, row: SavedWorkingMemory) -> SafeString:
        values = {
            name: {"value": from_json(saved["json"]), "seconds_left": saved["ttl_ms"] / 1_000}
            for name, saved in row.values.items()
        }
        return show_json(values)
