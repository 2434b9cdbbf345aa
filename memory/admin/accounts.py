"""Accounts and what belongs to them: agents, teams and members of teams."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from memory.admin.access_matrix import show_access
from memory.admin.account_deletion import may_delete_accounts, show_deletion
from memory.admin.agent_working import AgentWorkingMemoryAdmin
from memory.admin.base import MAX_INLINE_ROWS, AuditedAdmin, Inline, staff_owner
from memory.admin.columns import list_link
from memory.admin.exports import ListExportAdmin
from memory.admin.fields import ExternalIdField
from memory.models import Account, Agent, Team, TeamMember
from memory.models.accounts import DEFAULT_TRACE_TOKENS
from memory.services.accounts.register import add_member, remove_member
from memory.services.audit import set_audit_level, update_audited_row
from memory.services.records.reasoning import MAX_TRACE_TOKENS, set_policy
from memory_project.admin_lists import AccountFilter
from memory_project.staff import StaffGroup, is_limited

if TYPE_CHECKING:
    FormSet = forms.BaseInlineFormSet[Any, Any, Any]
else:
    FormSet = forms.BaseInlineFormSet

POLICY_COLUMNS = frozenset({"reasoning_tier", "raw_trace_tokens"})
"""Columns that the service of reasoning sets."""
AUDIT_LEVEL = "audit_level"
"""The column that the audit service sets."""


class AccountForm(forms.ModelForm):  # type: ignore[type-arg]
    raw_trace_tokens = forms.IntegerField(
        min_value=0,
        max_value=MAX_TRACE_TOKENS,
        initial=DEFAULT_TRACE_TOKENS,
        help_text="Longest raw trace that is kept, in tokens. Longer traces are not kept.",
    )


@admin.register(Account)
class AccountAdmin(AuditedAdmin):
    """The pages of accounts. Django's page would delete everything in one in a request; a job does it instead.

    The language is chosen when the account is added: later there may be memories, which a change has to index again.
    """

    memory_type = "account"
    row_pages = {"access": show_access, "delete-all": show_deletion}
    form = AccountForm
    list_display = ("name", "language", "reasoning_tier", "created_at", "lists")
    list_select_related = False
    search_fields = ("name",)
    ordering = ("name", "pk")
    readonly_fields = ("id", "created_at", "lists")
    fixed_fields = ("language",)
    allow_delete = False
    changed_by = StaffGroup.OPERATOR
    fieldsets = (
        (None, {"fields": ("name", "settings", "id", "created_at", "lists")}),
        (
            "Language",
            {
                "fields": ("language",),
                "description": "The language in which words are searched. `manage.py set_language` changes it and "
                "indexes again what is stored.",
            },
        ),
        (
            "Facts",
            {
                "fields": ("contradictions",),
                "description": "“Prefer new” ends the old fact, “prefer old” drops the new one, and “flag review” asks "
                "staff. Clients may say otherwise for a single fact.",
            },
        ),
        (
            "Instructions in memories",
            {
                "fields": ("quarantines_instructions",),
                "description": "Texts that give orders to the model (“ignore all previous instructions”) are found by "
                "rules, which miss some, and rarely catch an ordinary text. Staff can release what is quarantined.",
            },
        ),
        (
            "Secrets in what is written",
            {
                "fields": ("secrets",),
                "description": "Keys, passwords and numbers of cards are found by rules (docs/custody.md), in what "
                "clients send over HTTP from the change on. “Mask” cannot be undone.",
            },
        ),
        (
            "Retention",
            {
                "fields": (
                    "legal_hold",
                    *("archive_after_days", "archive_by", "erase_after_days", "entity_days"),
                    *("tool_days", "strategy_days", "journal_days", "usage_days"),
                ),
                "description": "What the job `cleanup` archives and deletes every night (docs/lifecycle.md). "
                "`manage.py preview_retention` says what it would, and why.",
            },
        ),
        (
            "Reasoning",
            {
                "fields": ("reasoning_tier", "raw_trace_tokens"),
                "description": "How much of the agents' reasoning is kept and returned. A lower tier immediately hides "
                "what is stored already, and a higher tier shows it again. `manage.py set_reasoning_policy` destroys "
                "raw traces.",
            },
        ),
        (
            "Audit log",
            {
                "fields": ("audit_level",),
                "description": "“Writes” logs what changed. “Reads” also logs what was found, by whom and with which "
                "words. “Verbose” also logs what was sent. A change of the level is logged at every level.",
            },
        ),
    )

    def describe_row(self, request: HttpRequest, row: Account) -> dict[str, Any]:
        return {"may_erase_account": may_delete_accounts(request)}

    def has_add_permission(self, request: HttpRequest) -> bool:
        return not is_limited(request) and super().has_add_permission(request)

    def get_readonly_fields(self, request: HttpRequest, obj: Any | None = None) -> tuple[str, ...]:
        # a name that is taken would be refused, which says that there is such an account
        hidden = ("name",) if is_limited(request) else ()
        return (*super().get_readonly_fields(request, obj), *hidden)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        if not change:
            super().save_model(request, obj, form, change)
            return
        owner, columns = self.owner_of(request, obj), set(form.changed_data)
        if columns & POLICY_COLUMNS:
            set_policy(owner, tier=obj.reasoning_tier, trace_tokens=obj.raw_trace_tokens)
        if AUDIT_LEVEL in columns:
            set_audit_level(owner, level=obj.audit_level)
        if others := sorted(columns - POLICY_COLUMNS - {AUDIT_LEVEL}):
            update_audited_row(owner, obj, columns=others, memory_type=self.memory_type)

    @admin.display(description="Lists of the account")
    def lists(self, account: Account) -> SafeString | str:
        """Link to every list that can be narrowed to an account."""
        if account._state.adding:
            return "-"
        models = [
            model._meta for model, pages in self.admin_site._registry.items() if AccountFilter in pages.list_filter
        ]
        links = [
            (reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist"), account.id, meta.verbose_name_plural)
            for meta in models
        ]
        return format_html_join(" · ", '<a href="{}?account={}">{}</a>', links)


class AgentForm(forms.ModelForm):  # type: ignore[type-arg]
    agent_id = ExternalIdField()


@admin.register(Agent)
class AgentAdmin(ListExportAdmin, AgentWorkingMemoryAdmin, AuditedAdmin):
    """The pages of agents. An agent's id cannot be changed, since memories name their agent by it."""

    memory_type = "agent"
    changed_by = StaffGroup.OPERATOR
    form = AgentForm
    list_display = ("agent_id", "account", "description", "created_at")
    list_filter = (AccountFilter,)
    search_fields = ("agent_id", "description")
    autocomplete_fields = ("account",)
    fields = ("account", "agent_id", "description", "created_at", "memories", "working_memory")
    readonly_fields = ("created_at", "memories", "working_memory")
    fixed_fields = ("account", "agent_id")

    @admin.display(description="Memories")
    def memories(self, agent: Agent) -> SafeString | str:
        if agent._state.adding:
            return "-"
        query = {"account": agent.account_id, "agent_id__exact": agent.agent_id}
        return list_link("memory", "Memories of this agent", **query)

    @admin.display(description="Working memory")
    def working_memory(self, agent: Agent) -> SafeString | str:
        if agent._state.adding:
            return "-"
        url = reverse("admin:memory_agent_working-memory", args=[agent.pk])
        return format_html('<a href="{}">Working memory of this agent</a>', url)


class MemberForms(FormSet):
    """Members as the service takes them: added and removed, never renamed."""

    def clean(self) -> None:
        super().clean()
        kept = [form.cleaned_data.get("agent_id") for form in self.forms if not form.cleaned_data.get("DELETE")]
        named = [agent_id for agent_id in kept if agent_id]
        if len(named) != len(set(named)):
            raise forms.ValidationError("An agent can be a member of a team only once.")


class MemberForm(forms.ModelForm):  # type: ignore[type-arg]
    agent_id = ExternalIdField()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # another agent is another member: this one is removed and that one is added
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
        """Refuse a name that another team has, since forms leave out constraints over fields that they do not show."""
        name: str = self.cleaned_data["name"]
        team = self.instance
        others = Team.objects.filter(account_id=team.account_id, name=name).exclude(pk=team.pk)
        if not team._state.adding and others.exists():
            raise forms.ValidationError("Another team of the account has this name.")
        return name


@admin.register(Team)
class TeamAdmin(ListExportAdmin, AuditedAdmin):
    memory_type = "team"
    changed_by = StaffGroup.OPERATOR
    form = TeamForm
    list_display = ("name", "account", "size", "created_at")
    list_filter = (AccountFilter,)
    search_fields = ("name",)
    autocomplete_fields = ("account",)
    fields = ("account", "name", "created_at")
    readonly_fields = ("created_at",)
    fixed_fields = ("account",)
    inlines = (MemberInline,)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Team]:
        teams: QuerySet[Team] = super().get_queryset(request)
        members = TeamMember.objects.filter(account_id=OuterRef("account_id"), team_id=OuterRef("id"))
        # in a sub-select: a team's columns do not follow from its id, which is only a part of its key
        counted = members.values("team_id").annotate(size=Count("id")).values("size")
        return teams.annotate(size=Coalesce(Subquery(counted), 0))

    @admin.display(description="Members")
    def size(self, team: Team) -> int:
        return int(getattr(team, "size", 0))

    def get_inlines(self, request: HttpRequest, obj: Any | None) -> Any:
        return () if obj is not None and getattr(obj, "size", 0) > MAX_INLINE_ROWS else self.inlines

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        team: Team = form.instance
        owner = staff_owner(request, team.account_id)
        added = formset.save(commit=False)
        for member in formset.deleted_objects:
            remove_member(owner, team.id, agent_id=member.agent_id)
        for member in added:
            add_member(owner, team.id, agent_id=member.agent_id)


@admin.register(TeamMember)
class TeamMemberAdmin(ListExportAdmin, AuditedAdmin):
    """Members of all teams, including large ones. They are added on the page of the team."""

    memory_type = "team_member"
    changed_by = StaffGroup.OPERATOR
    list_display = fields = readonly_fields = ("agent_id", "team", "account", "created_at")
    list_filter = (AccountFilter,)
    list_select_related = ("account", "team")
    search_fields = ("agent_id__exact", "team__name")
    allow_add = allow_change = False
