"""Working memories of agents: those in Redis, reached from the agent's page, and those saved in the database."""

from datetime import UTC, datetime
from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import urlencode

from memory.admin.base import AuditedAdmin, staff_owner
from memory.admin.columns import column, text_column
from memory.admin.fields import ExternalIdField
from memory.admin.live import MAX_SCANS, LiveRow, NameForm, ValueForm, describe_deletion, json_box, read_cursor
from memory.admin.object_actions import ObjectAction, ObjectActionAdmin
from memory.admin.text import mark_invisible, render_json
from memory.errors import MemoryServiceError
from memory.models import Agent, SavedWorkingMemory
from memory.owner import Owner
from memory.services.working_memory import clear_values, correct_value, remove_value, working_memory_at
from memory.tiers.agent_working import WorkingMemoryService
from memory.tiers.base import from_json
from memory_project.admin_lists import AccountFilter
from memory_project.redis import AgentMemoryRef, scan_agents

MAX_VALUES = 50
MAX_SAVED = 50
VIEW, CHANGE = "memory.view_savedworkingmemory", "memory.change_savedworkingmemory"


class TaskForm(forms.Form):
    """One working memory of an agent: its general one, or the one for a task, a workflow run, or both."""

    task = ExternalIdField(required=False, label="Task")
    run = ExternalIdField(required=False, label="Workflow run")


def name_working_memory(ref: AgentMemoryRef) -> str:
    task = f"task {mark_invisible(ref.task_id)}" if ref.task_id else ""
    run = f"workflow run {mark_invisible(ref.workflow_run_id)}" if ref.workflow_run_id else ""
    return ", ".join(filter(None, [task, run])) or "general"


def place_of(ref: AgentMemoryRef) -> dict[str, str]:
    """Return the parameters of addresses that name a working memory of an agent."""
    return {name: id_ for name, id_ in (("task", ref.task_id), ("run", ref.workflow_run_id)) if id_}


def values_url(agent: Agent, ref: AgentMemoryRef) -> str:
    page = reverse("admin:memory_agent_working-memory/values", args=[agent.pk])
    query = urlencode(place_of(ref))
    return f"{page}?{query}" if query else page


def working_memory_ref(
    row: Agent | SavedWorkingMemory, *, task_id: str = "", workflow_run_id: str = ""
) -> AgentMemoryRef:
    return AgentMemoryRef(
        account_id=row.account_id, agent_id=row.agent_id, task_id=task_id, workflow_run_id=workflow_run_id
    )


def saved_memory_ref(row: SavedWorkingMemory) -> AgentMemoryRef:
    return working_memory_ref(row, task_id=row.task_id, workflow_run_id=row.workflow_run_id)


def find_working_memories(agent: Agent, cursor: int) -> tuple[list[AgentMemoryRef], int]:
    """Return what a bounded scan of the account's working memories finds, and the next cursor; 0 is the end."""
    found: set[AgentMemoryRef] = set()
    for _ in range(MAX_SCANS):
        refs, cursor = scan_agents(account_id=agent.account_id, cursor=cursor)
        found |= {ref for ref in refs if ref.agent_id == agent.agent_id}
        if not cursor:
            break
    return sorted(found, key=lambda ref: (ref.task_id, ref.workflow_run_id)), cursor


def read_values(memory: WorkingMemoryService, names: list[str]) -> list[LiveRow]:
    """Read each value in a round trip of its own, since all of them may be long."""
    found = [(name, memory.find(name)) for name in names]
    return [
        LiveRow(name=name, value=json_box(stored.value), ttl_seconds=stored.ttl_seconds)
        for name, stored in found
        if stored is not None
    ]


def save_value(owner: Owner, ref: AgentMemoryRef, data: dict[str, Any]) -> str:
    name, ttl_seconds = data["name"], data["ttl_seconds"]
    correct_value(owner, ref, key=name, value=data["value"], ttl_seconds=ttl_seconds)
    return f"Saved {mark_invisible(name)}, which expires in {ttl_seconds} seconds."


def delete_value(owner: Owner, ref: AgentMemoryRef, data: dict[str, Any]) -> str:
    return describe_deletion(data["name"], remove_value(owner, ref, key=data["name"]))


def clear_memory(owner: Owner, ref: AgentMemoryRef, data: dict[str, Any]) -> str:
    return f"Values deleted: {clear_values(owner, ref)}."


def persist_values(owner: Owner, ref: AgentMemoryRef, data: dict[str, Any]) -> str:
    saved = working_memory_at(owner, ref).persist_to_database(now=datetime.now(UTC))
    return f"Values saved in the database: {saved.count}."


def load_values(owner: Owner, ref: AgentMemoryRef, data: dict[str, Any]) -> str:
    return f"Values restored from the database: {working_memory_at(owner, ref).load_from_database().count}."


class AgentWorkingMemoryAdmin(ObjectActionAdmin):
    """Two more pages for each agent. They need the permissions for saved working memories."""

    refusals = (ValueError, MemoryServiceError)
    object_actions = {
        "add": ObjectAction(run=save_value, form=ValueForm),
        "save": ObjectAction(run=save_value, form=ValueForm),
        "remove": ObjectAction(run=delete_value, form=NameForm),
        "clear": ObjectAction(run=clear_memory),
        "persist": ObjectAction(run=persist_values),
        "load": ObjectAction(run=load_values),
    }

    def may_act(self, request: HttpRequest, row: Any) -> bool:
        return request.user.has_perm(CHANGE)

    def memories_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        agent = self.find_agent(request, object_id)
        form = TaskForm(request.GET if {"task", "run"} & set(request.GET) else None)
        if form.is_valid():
            task, run = form.cleaned_data["task"], form.cleaned_data["run"]
            ref = working_memory_ref(agent, task_id=task, workflow_run_id=run)
            return HttpResponseRedirect(values_url(agent, ref))
        return self.unless_redis_is_down(request, lambda: self.list_memories(request, agent, form))

    def list_memories(self, request: HttpRequest, agent: Agent, form: TaskForm) -> HttpResponse:
        is_first_page = not read_cursor(request)
        refs, cursor = find_working_memories(agent, read_cursor(request))
        general = working_memory_ref(agent)
        refs = [general, *[ref for ref in refs if ref != general]] if is_first_page else refs
        saved = SavedWorkingMemory.objects.visible_to(Owner(account_id=agent.account_id, agent_id=agent.agent_id))
        rows = saved.order_by("task_id", "workflow_run_id").defer("values")[:MAX_SAVED]
        context = {
            "memories": [(name_working_memory(ref), values_url(agent, ref)) for ref in refs],
            "saved": [(name_working_memory(saved_memory_ref(row)), row) for row in rows],
            "form": form,
            "cursor": cursor,
            "is_first_page": is_first_page,
        }
        return self.render_agent_page(request, agent, "working_memories", context)

    def values_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        agent = self.find_agent(request, object_id)
        form = TaskForm(request.GET)
        if not form.is_valid():
            return HttpResponseRedirect(reverse("admin:memory_agent_working-memory", args=[agent.pk]))
        ref = working_memory_ref(agent, task_id=form.cleaned_data["task"], workflow_run_id=form.cleaned_data["run"])
        return self.unless_redis_is_down(request, lambda: self.show_values(request, agent, ref))

    def show_values(self, request: HttpRequest, agent: Agent, ref: AgentMemoryRef) -> HttpResponse:
        owner = staff_owner(request, agent.account_id, agent_id=agent.agent_id)
        failed: forms.Form | None = None
        if request.method == "POST":
            failed = self.perform_action(request, agent, target=ref, owner=owner, log_suffix=" in working memory")
            if failed is None:
                return HttpResponseRedirect(request.get_full_path())
        wanted, memory = request.GET.get("named", ""), working_memory_at(owner, ref)
        names = [name for name in memory.keys() if wanted in name]  # noqa: SIM118  no dict: one round trip
        context = {
            "place": place_of(ref),
            "memory_name": name_working_memory(ref),
            "rows": read_values(memory, names[:MAX_VALUES]),
            "row_count": len(names),
            "named": wanted,
            "form": failed if isinstance(failed, ValueForm) else ValueForm(),
            "may_write": request.user.has_perm(CHANGE),
        }
        return self.render_agent_page(request, agent, "working_values", context)

    row_pages = {"working-memory/values": values_view, "working-memory": memories_view}

    def find_agent(self, request: HttpRequest, object_id: str) -> Agent:
        agent: Agent | None = self.get_object(request, object_id)
        if not request.user.has_perm(VIEW):
            raise PermissionDenied
        if agent is None:
            raise Http404("There is no such agent.")
        return agent

    def render_agent_page(self, request: HttpRequest, agent: Agent, page: str, context: dict[str, Any]) -> HttpResponse:
        name = mark_invisible(agent.agent_id)
        title = f"Working memory of {name}"
        return self.render_page(request, f"agent/{page}.html", title, agent=agent, agent_name=name, **context)


def describe_saved_values(row: SavedWorkingMemory) -> dict[str, Any]:
    return {
        name: {"value": from_json(saved["json"]), "seconds_left": saved["ttl_ms"] / 1_000}
        for name, saved in row.values.items()
    }


@admin.register(SavedWorkingMemory)
class SavedWorkingMemoryAdmin(AuditedAdmin):
    """The pages of saved working memories, which agents or the agent's page save and load. Staff may delete them."""

    memory_type = "working"
    list_display = ("agent", "memory_name", "account", "saved_at")
    list_filter = (AccountFilter,)
    search_fields = ("agent_id__exact", "task_id__exact", "workflow_run_id__exact")
    search_help_text = "Search for a complete agent, task or workflow run."
    fields = ("agent", "memory_name", "values_json", "account", "saved_at", "created_at", "id")
    allow_add = allow_change = False

    agent = text_column("Agent", "agent_id")
    memory_name = column("Working memory", lambda row: name_working_memory(saved_memory_ref(row)))
    values_json = column("Values", lambda row: render_json(describe_saved_values(row)))

    def get_queryset(self, request: HttpRequest) -> QuerySet[SavedWorkingMemory]:
        """Leave the values out. A page that shows them loads them by itself."""
        return super().get_queryset(request).defer("values")
