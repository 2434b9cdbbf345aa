"""The turns that gave a secret which a user asks to forget: a password or a code becomes no fact, and turns have it."""

from collections.abc import Sequence
from uuid import UUID

from django.db.models.functions import Length

from memory.extraction.forget_requests import ForgetRequest
from memory.extraction.given_secrets import choose_secrets, find_given_secrets
from memory.models import Kind, Turn
from memory.owner import Owner
from memory.scoring import MAX_STATEMENT_CHARACTERS
from memory.services.entities.resolve import filter_by_holder

MAX_SEARCHED = 5_000
"""Latest turns in which a secret is looked for."""
MAX_CHARACTERS = 20_000
_WORDS_OF_SECRETS = r"pass|pw|pin|code|combination|secret|key|token|cvv|number|ssn"
COLUMNS = ("role", "name", "user_id", "event_time", "log_id", "index", "buried", "text")


def find_giving_turns(owner: Owner, request: ForgetRequest, asking: Turn) -> list[Turn]:
    """Return the turns before a request in which who asks gave the secret that it names, or an assistant repeated it.

    None if it names no secret, or if several others may be meant. One statement.
    """
    if not request.secret:
        return []
    rows = Turn.objects.visible_to(owner, Kind.TURN).in_channels(owner).filter(filter_by_holder(owner))
    if asking.user_id:
        # whichever agent of the account heard it
        rows = Turn.objects.visible_to(Owner(account_id=owner.account_id), Kind.TURN)
    said = rows.alias(characters=Length("text")).filter(
        characters__lte=MAX_CHARACTERS,
        role__in=(Turn.Role.USER, Turn.Role.ASSISTANT),
        user_id=asking.user_id,
        event_time__lte=asking.event_time,
    )
    latest = said.order_by("-event_time", "-id").values("id")[:MAX_SEARCHED]
    naming = Turn.objects.filter(account_id=owner.account_id, id__in=latest, text__iregex=_WORDS_OF_SECRETS)
    given = {
        turn: find_given_secrets(turn.text)
        for turn in naming.only(*COLUMNS)
        if turn.id != asking.id and is_of_speaker(turn, asking)
    }
    chosen = choose_secrets(request.secret, {words for each in given.values() for words in each})
    return [turn for turn, words in given.items() if not chosen.isdisjoint(words)]


def is_of_speaker(turn: Turn, asking: Turn) -> bool:
    """Return True for what the one who asks said before, and for what an assistant said."""
    is_later = turn.log_id == asking.log_id and turn.index > asking.index
    return not is_later and (turn.role == Turn.Role.ASSISTANT or turn.name == asking.name)


def ids_to_bury(turns: Sequence[Turn]) -> list[UUID]:
    """Return the short ones: a long turn says much else, and waits for staff."""
    return [turn.id for turn in turns if not turn.buried and len(turn.text) <= MAX_STATEMENT_CHARACTERS]
