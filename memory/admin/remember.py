"""Adding memories by hand: a form for each kind, which is stored by the service of that kind.

To add a kind, write its form with a method `store` and put it into `FORMS`.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import path
from django.views.decorators.http import require_http_methods

from memory.admin.account_choice import AccountChoiceForm
from memory.admin.base import REDIS_IS_DOWN, render_page, watching_owner
from memory.admin.columns import change_url
from memory.admin.fields import ExternalIdField, IdListField, JSONTextsField, NameField, PlainTextField
from memory.admin.text import error_sentence
from memory.errors import MemoryServiceError
from memory.kinds import spec_of
from memory.models import Kind, Team
from memory.models.entities import MAX_ENTITY_NAME_CHARACTERS, MAX_ENTITY_TYPE_CHARACTERS
from memory.models.facts import Temporal
from memory.models.memory import model_of
from memory.owner import GLOBAL_CHANNEL, Owner
from memory.services.embedding.embed import embed_texts
from memory.services.entities.learn import EntityDraft, entity_texts_to_embed, upsert_entity
from memory.services.facts.learn import MAX_CLAIM_CHARACTERS, FactDraft, learn_fact
from memory.services.goals.plan import MAX_PRIORITY, GoalDraft, add_goal
from memory.services.learnings import LearningDraft, publish_learning
from memory.services.notes import DEFAULT_IMPORTANCE, MAX_NOTE_CHARACTERS, NoteDraft, store_note
from memory.services.strategies.learn import StrategyDraft, learn_strategy
from memory_project.http.problems import REDIS_ERRORS

SOURCE = "staff"
TIME_HELP = "YYYY-MM-DD HH:MM in UTC. May be empty."


class RememberForm(AccountChoiceForm):
    """The owner of a memory; the forms of kinds add fields for the content."""

    agent = ExternalIdField(required=False, help_text="The agent that it belongs to. Empty: the account itself.")
    user = ExternalIdField(required=False, help_text="The user that it is about. May be empty.")
    channel = ExternalIdField(required=False, initial=GLOBAL_CHANNEL)

    @property
    def who(self) -> list[forms.BoundField]:
        return [self[name] for name in RememberForm.base_fields]

    @property
    def what(self) -> list[forms.BoundField]:
        return [field for field in self if field.name not in RememberForm.base_fields]

    def store(self, owner: Owner, given: Mapping[str, Any], now: datetime) -> Any:
        """Store what was typed and return its row."""
        raise NotImplementedError


class NewFactForm(RememberForm):
    claim = PlainTextField(rows=2, max_length=MAX_CLAIM_CHARACTERS)
    confidence = forms.FloatField(min_value=0, max_value=1, initial=1.0)
    temporal = forms.ChoiceField(choices=Temporal.choices, initial=Temporal.CURRENT)
    valid_from = forms.DateTimeField(required=False, label="True since", help_text=TIME_HELP)

    def store(self, owner: Owner, given: Mapping[str, Any], now: datetime) -> Any:
        draft = FactDraft(source=SOURCE, **given)
        return learn_fact(owner, draft, embedded=embed_texts([draft.claim]), now=now).fact


class NewNoteForm(RememberForm):
    text = PlainTextField(rows=5, max_length=MAX_NOTE_CHARACTERS)
    importance = forms.FloatField(min_value=0, max_value=1, initial=DEFAULT_IMPORTANCE)
    expires_at = forms.DateTimeField(required=False, label="Expires", help_text=TIME_HELP)

    def store(self, owner: Owner, given: Mapping[str, Any], now: datetime) -> Any:
        draft = NoteDraft(source=SOURCE, **given)
        return store_note(owner, draft, embedded=embed_texts([draft.text]), now=now)


class NewGoalForm(RememberForm):
    description = PlainTextField(rows=3)
    priority = forms.IntegerField(min_value=-MAX_PRIORITY, max_value=MAX_PRIORITY, initial=0)
    deadline = forms.DateTimeField(required=False, help_text=TIME_HELP)

    def store(self, owner: Owner, given: Mapping[str, Any], now: datetime) -> Any:
        draft = GoalDraft(source=SOURCE, **given)
        return add_goal(owner, draft, embedded=embed_texts([draft.description]), now=now)


class NewEntityForm(RememberForm):
    name = NameField(max_length=MAX_ENTITY_NAME_CHARACTERS, strip=False)
    type = forms.CharField(max_length=MAX_ENTITY_TYPE_CHARACTERS, help_text="Such as person, place or company.")
    aliases = JSONTextsField(required=False, help_text="Other names, as a JSON list of texts.")
    description = PlainTextField(rows=3, required=False)

    def store(self, owner: Owner, given: Mapping[str, Any], now: datetime) -> Any:
        draft = EntityDraft(source=SOURCE, **given)
        embedded = embed_texts(entity_texts_to_embed(owner, [draft]))
        return upsert_entity(owner, draft, embedded=embedded, now=now).entity


class NewStrategyForm(RememberForm):
    description = PlainTextField(rows=4, help_text="What to do, step by step.")
    context_pattern = PlainTextField(rows=2, required=False, label="Situation", help_text="When it is of use.")
    task_type = ExternalIdField(required=False, label="Type of task")
    tool_sequence = IdListField(required=False, label="Tools", help_text="In the order of their calls, one per line.")

    def store(self, owner: Owner, given: Mapping[str, Any], now: datetime) -> Any:
        draft = StrategyDraft(source=SOURCE, **given)
        return learn_strategy(owner, draft, embedded=embed_texts([draft.text]), now=now)


class NewLearningForm(RememberForm):
    team = forms.CharField(max_length=100, help_text="A team that the agent is in; without an agent, any.")
    insight = PlainTextField(rows=3)

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        account, name = cleaned.get("account"), cleaned.pop("team", "")
        if account is not None and name:
            team = Team.objects.filter(account_id=account.pk, name=name).values_list("id", flat=True).first()
            if team is None:
                self.add_error("team", "The account has no team of this name.")
            cleaned["team_id"] = team
        return cleaned

    def store(self, owner: Owner, given: Mapping[str, Any], now: datetime) -> Any:
        draft = LearningDraft(source=SOURCE, **given)
        return publish_learning(owner, draft, embedded=embed_texts([draft.insight]), now=now)


FORMS: Mapping[str, type[RememberForm]] = {
    Kind.FACT: NewFactForm,
    Kind.NOTE: NewNoteForm,
    Kind.GOAL: NewGoalForm,
    Kind.ENTITY: NewEntityForm,
    Kind.STRATEGY: NewStrategyForm,
    Kind.LEARNING: NewLearningForm,
}


@require_http_methods(["GET", "HEAD", "POST"])
def show_form(request: HttpRequest) -> HttpResponse:
    """Show the form of the chosen kind, or store what was typed and show its page."""
    user: Any = request.user
    kinds = [kind for kind in FORMS if user.has_perm(f"memory.add_{model_of(kind)._meta.model_name}")]
    if not kinds:
        raise PermissionDenied
    asked = request.GET.get("kind", "")
    kind = asked if asked in kinds else kinds[0]
    form = FORMS[kind](request, request.POST if request.method == "POST" else None, initial=request.GET.dict())
    if form.is_bound and form.is_valid():
        stored = save(request, form, kind)
        if stored is not None:
            messages.success(request, f"The {spec_of(kind).label} is remembered.")
            return HttpResponseRedirect(change_url(spec_of(kind).admin_page, stored.pk))
    named = [(str(each), spec_of(each).label) for each in kinds]
    return render_page(request, "remember.html", "Remember something", form=form, kinds=named, kind=str(kind))


def save(request: HttpRequest, form: RememberForm, kind: str) -> Any:
    """Return the stored row, or None with the refusal among the errors of the form."""
    given = dict(form.cleaned_data)
    account, agent, user, channel = (given.pop(name) for name in RememberForm.base_fields)
    watched = watching_owner(request, account.pk, model_of(kind), [])
    owner = Owner(
        account_id=account.pk,
        agent_id=agent,
        user_id=user,
        channel=channel or GLOBAL_CHANNEL,
        actor=watched.actor,
        changes=watched.changes,
    )
    try:
        return form.store(owner, given, datetime.now(UTC))
    except MemoryServiceError as err:
        form.add_error(None, f"Nothing was stored. {error_sentence(err)}")
    except REDIS_ERRORS:
        form.add_error(None, REDIS_IS_DOWN)
    return None


app_name = "remember"
urlpatterns = [path("", admin.site.admin_view(show_form), name="page")]
