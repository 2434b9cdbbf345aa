"""The form of the playground: who asks what, and one or two plans to answer by."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from memory import conf
from memory.admin.account_choice import AccountChoiceForm
from memory.admin.fields import ExternalIdField, PlainTextField
from memory.admin.text import excerpt_of
from memory.errors import Unprocessable
from memory.owner import GLOBAL_CHANNEL
from memory.retrieval.queries import Mode, Posture
from memory.retrieval.techniques import TECHNIQUE_NAMES, choose_plan

MAX_QUESTION_CHARACTERS = 2_000
MAX_RESULTS = 200
"""As many as a prompt context may have."""
MIN_TOKENS, MAX_TOKENS = 100, 100_000
CLOCK_SKEW = timedelta(minutes=5)

POSTURES = [(posture.value, posture.value.replace("_", " ")) for posture in Posture]
MODES = [("", "as the model allows"), *((mode.value, mode.value) for mode in Mode)]
LEDGER_CHOICES = [("omit", "left out"), ("show", "shown again")]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSettings:
    """The settings that differ between plans: the posture, the mode (None: the default) and the techniques."""

    posture: Posture
    mode: Mode | None
    techniques: Sequence[str]


class TechniquesField(forms.CharField):
    """Names of techniques with blanks between them; a minus before a name leaves it out."""

    def __init__(self, **options: Any) -> None:
        widget = forms.TextInput(attrs={"class": "vTextField", "spellcheck": "false", "autocapitalize": "off"})
        super().__init__(**{"required": False, "max_length": 500, "widget": widget, **options})

    def clean(self, value: Any) -> Any:
        names = super().clean(value).replace(",", " ").split()
        try:
            choose_plan(names)
        except Unprocessable as err:
            raise ValidationError(excerpt_of(str(err), characters=300)) from err
        return names


class PlaygroundForm(AccountChoiceForm):
    """A question of an agent. It is sent by GET, so that its address can be kept and passed on."""

    agent = ExternalIdField(help_text="The agent that asks. It finds what it may see and nothing else.")
    user = ExternalIdField(required=False, help_text="The user that the agent acts for.")
    channel = ExternalIdField(required=False, initial=GLOBAL_CHANNEL)
    conversation = ExternalIdField(required=False, help_text="Empty: a new conversation.")
    query = PlainTextField(rows=2, label="Question", max_length=MAX_QUESTION_CHARACTERS, strip=True)
    max_tokens = forms.IntegerField(
        label="Budget in tokens", min_value=MIN_TOKENS, max_value=MAX_TOKENS, initial=conf.CONTEXT_TOKENS
    )
    top_k = forms.IntegerField(label="Results", min_value=1, max_value=MAX_RESULTS, initial=conf.CONTEXT_RESULTS)
    as_of = forms.DateTimeField(
        required=False, label="As of", help_text="Facts that are true then: YYYY-MM-DD HH:MM in UTC. Empty: now."
    )
    ledger = forms.ChoiceField(choices=LEDGER_CHOICES, required=False, label="What was injected already is")
    posture = forms.ChoiceField(choices=POSTURES, required=False)
    mode = forms.ChoiceField(choices=MODES, required=False)
    techniques = TechniquesField()
    compare = forms.BooleanField(required=False, label="Compare with a second plan")
    posture_2 = forms.ChoiceField(choices=POSTURES, required=False, label="Posture")
    mode_2 = forms.ChoiceField(choices=MODES, required=False, label="Mode")
    techniques_2 = TechniquesField(label="Techniques")

    @property
    def who(self) -> list[forms.BoundField]:
        return [self[name] for name in ("account", "agent", "user", "channel", "conversation")]

    @property
    def limits(self) -> list[forms.BoundField]:
        return [self[name] for name in ("max_tokens", "top_k", "as_of", "ledger")]

    @property
    def first_plan(self) -> list[forms.BoundField]:
        return [self[name] for name in ("posture", "mode", "techniques")]

    @property
    def second_plan(self) -> list[forms.BoundField]:
        return [self[f"{name}_2"] for name in ("posture", "mode", "techniques")]

    def plans(self) -> list[PlanSettings]:
        """Return the settings of the first plan, and of the second one if two are compared."""
        suffixes = ("", "_2") if self.cleaned_data["compare"] else ("",)
        return [
            PlanSettings(
                posture=Posture(self.cleaned_data[f"posture{suffix}"] or Posture.ACTIVE_TURN),
                mode=Mode(self.cleaned_data[f"mode{suffix}"]) if self.cleaned_data[f"mode{suffix}"] else None,
                techniques=self.cleaned_data[f"techniques{suffix}"],
            )
            for suffix in suffixes
        ]


TECHNIQUES = ", ".join(sorted(set(TECHNIQUE_NAMES)))
"""The names that the page lists below the form."""
