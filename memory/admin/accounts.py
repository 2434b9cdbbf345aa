"""Accounts and who belongs to them: agents, teams and their members."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from memory.admin.agent_working import AgentWorkingPages
from memory.admin.base import AuditedAdmin, refuse_taken, staff_owner
from memory.admin.fields import ExternalIdField
from memory.models import Account, Agent, Team, TeamMember
from memory.models.accounts import DEFAULT_TRACE_TOKENS
from memory.services.accounts.register import add_member, remove_member
from memory.services.audit.log import set_audit_level
from memory.services.audit.staff_writes import change_row
from memory.services.records.reasoning import MOST_TRACE_TOKENS, set_policy
from memory_project.admin_lists import AccountFilter

if TYPE_CHECKING:
    Inline = admin.TabularInline[Any, Any]
    FormSet = forms.BaseInlineFormSet[Any, Any, Any]
else:
    Inline = admin.TabularInline
    FormSet = forms.BaseInlineFormSet

MOST_INLINE_MEMBERS = 100

LISTS_OF_AN_ACCOUNT = (
    *("memory", "conversation", "turn", "episodicmemory", "agent", "team", "apikey"),
    *("memorypool", "workflowrun", "agentshorttermmemory", "learning", "savedworkingmemory"),
    *("entity", "fact", "factreview", "facttombstone", "strategy", "strategyuse", "tool", "toolinvocation"),
    *("turnrecord", "turnslot", "workepisode", "artifact"),
    *("goal", "userprofile", "persistentcontext", "contextentry", "contextsnapshot", "contextaccesslog"),
    *("modelusage", "auditentry", "jobrun"),
)


POLICY = frozenset({"reasoning_tier", "raw_trace_tokens"})
"""Columns that the service of reasoning sets."""
AUDIT_LEVEL = "audit_level"
"""The column that the service of the audit log sets."""


class AccountForm(forms.ModelForm):  # type: ignore[type-arg]
    raw_trace_tokens = forms.IntegerField(
        min_value=0,
        max_value=MOST_TRACE_TOKENS,
        initial=DEFAULT_TRACE_TOKENS,
        help_text="Of a raw trace that is kept; a longer one is not.",
    )


@admin.register(Account)
class AccountAdmin(AuditedAdmin):
    """Deleting an account would delete everything in it, in one request: not here.

    Its language is chosen when it is added: after that there may be memories, which a change has to read anew.
    """

    memory_type = "account"
    form = AccountForm
    list_display = ("name", "language", "reasoning_tier", "created_at", "lists")
    search_fields = ("name",)
    ordering = ("name", "pk")
    readonly_fields = ("id", "created_at", "lists")
    fixed_fields = ("language",)
    fieldsets = (
        (
            None,
            {
                "fields": ("name", "language", "settings", "id", "created_at", "lists"),
                "description": "The language is what words are searched in. It is changed by `manage.py set_language`, "
                "which reads anew what is stored.",
            },
        ),
        (
            "Reasoning",
            {
                "fields": ("reasoning_tier", "raw_trace_tokens"),
                "description": "How much of its agents' reasoning is kept, and told. A lower tier holds at once for "
                "what is stored as well, which is told again once a tier allows it; `manage.py set_reasoning_policy` "
                "destroys raw traces.",
            },
        ),
        (
            "Audit log",
            {
                "fields": ("audit_level",),
                "description": "Writes are what changed; reads what was found, by whom and with which words; verbose "
                "adds what was sent. A change of it is in the log at every level.",
            },
        ),
    )

    def has_delete_permission(self, request: HttpRequest, obj: Any | None = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        if not change:
            super().save_model(request, obj, form, change)
            return
        owner, columns = self.owner_of(request, obj), set(form.changed_data)
        if columns & POLICY:
            set_policy(owner, tier=obj.reasoning_tier, trace_tokens=obj.raw_trace_tokens)
        if AUDIT_LEVEL in columns:
            set_audit_level(owner, level=obj.audit_level)
        if others := sorted(columns - POLICY - {AUDIT_LEVEL}):
            change_row(owner, obj, columns=others, memory_type=self.memory_type)

    @admin.display(description="What is in it")
    def lists(self, account: Account) -> SafeString | str:
        if account._state.adding:
            return "-"
        links = [
            (reverse(f"admin:memory_{model}_changelist"), account.id, name_of_model(self.admin_site, model))
            for model in LISTS_OF_AN_ACCOUNT
        ]
        return format_html_join(" · ", '<a href="{}?account={}">{}</a>', links)


def name_of_model(site: admin.AdminSite, model_name: str) -> str:
    names = {model._meta.model_name: str(model._meta.verbose_name_plural) for model in site._registry}
    return names[model_name]


class AgentForm(forms.ModelForm):  # type: ignore[type-arg]
    agent_id = ExternalIdField()


@admin.register(Agent)
class AgentAdmin(AgentWorkingPages, AuditedAdmin):
    """The id stays: memories name their agent by it."""

    memory_type = "agent"
    form = AgentForm
    list_display = ("agent_id", "account", "description", "created_at")
    list_filter = (AccountFilter,)
    list_select_related = ("account",)
    search_fields = ("agent_id", "description")
    autocomplete_fields = ("account",)
    fields = ("account", "agent_id", "description", "created_at", "memories", "working_memory")
    readonly_fields = ("created_at", "memories", "working_memory")
    fixed_fields = ("account", "agent_id")

    @admin.display(description="Memories")
    def memories(self, agent: Agent) -> SafeString | str:
        if agent._state.adding:
            return "-"
        url = reverse("admin:memory_memory_changelist")
        query = {"account": str(agent.account_id), "agent_id__exact": agent.agent_id}
        return format_html('<a href="{}?{}">What it remembers</a>', url, urlencode(query))

    @admin.display(description="Working memory")
    def working_memory(self, agent: Agent) -> SafeString | str:
        if agent._state.adding:
            return "-"
        url = reverse("admin:memory_agent_working", args=[agent.pk])
        return format_html('<a href="{}">Working memory of this agent</a>', url)


class MemberForms(FormSet):
    """Members as the service takes them: added and removed, never renamed."""

    def clean(self) -> None:
        super().clean()
        kept = [form.cleaned_data.get("agent_id") for form in self.forms if not form.cleaned_data.get("DELETE")]
        named = [agent_id for agent_id in kept if agent_id]
        if len(named) != len(set(named)):
            raise forms.ValidationError("An agent is in a team once.")


class MemberForm(forms.ModelForm):  # type: ignore[type-arg]
    agent_id = ExternalIdField()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # another agent is another member: remove this one, add that one
        self.fields["agent_id"].disabled = not self.instance._state.adding


class MemberInline(Inline):
    model = TeamMember
    form = MemberForm
    formset = MemberForms
    fields = ("agent_id",)
    extra = 1
    verbose_name = "member"
    verbose_name_plural = "members"
    ordering = ("agent_id",)


class TeamForm(forms.ModelForm):  # type: ignore[type-arg]
    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if not self.instance._state.adding:
            refuse_taken(Team, self.instance, account_id=self.instance.account_id, name=name)
        return name


@admin.register(Team)
class TeamAdmin(AuditedAdmin):
    memory_type = "team"
    form = TeamForm
    list_display = ("name", "account", "size", "created_at")
    list_filter = (AccountFilter,)
    list_select_related = ("account",)
    search_fields = ("name",)
    autocomplete_fields = ("account",)
    fields = ("account", "name", "created_at")
    readonly_fields = ("created_at",)
    fixed_fields = ("account",)
    inlines = (MemberInline,)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Team]:
        teams: QuerySet[Team] = super().get_queryset(request)
        return teams.annotate(size=Count("members"))

    @admin.display(description="Members")
    def size(self, team: Team) -> int:
        return int(getattr(team, "size", 0))

    def get_inlines(self, request: HttpRequest, obj: Any | None) -> Any:
        """A large team's members have a list of their own: a form takes only so many fields."""
        return () if obj is not None and getattr(obj, "size", 0) > MOST_INLINE_MEMBERS else self.inlines

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        team: Team = form.instance
        owner = staff_owner(request, team.account_id)
        added = formset.save(commit=False)
        for member in formset.deleted_objects:
            remove_member(owner, team.id, agent_id=member.agent_id)
        for member in added:
            add_member(owner, team.id, agent_id=member.agent_id)


@admin.register(TeamMember)
class TeamMemberAdmin(AuditedAdmin):
    """Members of all teams, large ones included. Adding goes through the team."""

    memory_type = "team_member"
    list_display = ("agent_id", "team", "account", "created_at")
    list_filter = (AccountFilter,)
    list_select_related = ("account", "team")
    search_fields = ("agent_id__exact", "team__name")
    fields = readonly_fields = ("agent_id", "team", "account", "created_at")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any | None = None) -> bool:
        return False
