"""Turns with injected instructions: whoever looks them through, and however well a model obeys them, nothing changes
but the record of what was said."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from memory.models import (
    Account,
    Entity,
    Fact,
    FactReview,
    FactTombstone,
    FactVersion,
    Goal,
    Link,
    Memory,
    Turn,
    UserProfile,
    Vector,
)
from memory.owner import Owner
from memory.providers.language_models import language_model
from memory.services.embedding.embed import embed_texts
from memory.services.extraction.extract import extract_due
from memory.services.facts.learn import FactDraft, learn_fact
from memory.services.profiles import ProfileChanges, update_profile
from tests.language_model_server import LanguageModelServer, writing
from tests.memory.episodes import NOW
from tests.memory.extraction.injections import INJECTIONS, KNOWN, Injection
from tests.memory.knowledge import extracted, person, tell, with_name
from tests.memory.turns import say, turn

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]


@pytest.fixture
def believer(owner: Owner, stranger: Account) -> Owner:
    """A user of whom something is known, beside another account of which something else is."""
    user = replace(owner, user_id="ana")
    for whose in (user, Owner(account_id=stranger.id, agent_id="assistant", user_id="ana")):
        for claim in KNOWN:
            learn_fact(whose, FactDraft(claim=claim), embedded=embed_texts([claim]), now=NOW)
        update_profile(whose, "ana", ProfileChanges(preferences={"tea": "likes"}), now=NOW)
    return user


def everything() -> dict[str, Any]:
    """All that is known, of everybody."""
    tables: list[Any] = [Entity, Fact, FactVersion, FactReview, FactTombstone, Goal, Link, UserProfile]
    known = {model.__name__: sorted(map(tuple, model.objects.values_list()), key=str) for model in tables}
    others = Memory.objects.exclude(kind="turn").order_by("id")
    vectors = Vector.objects.exclude(kind="turn").order_by("id")
    return known | {"memories": list(others.values_list()), "vectors": list(vectors.values_list("id", "memory_id"))}


def inject(owner: Owner, injection: Injection) -> None:
    drafts = [with_name(turn(said.text, role=said.role, timestamp=NOW), said.speaker) for said in injection.turns]
    say(owner, *drafts)


def look_through_all(now: datetime) -> None:
    while extract_due(now=now, limit=4).stored:
        pass


@pytest.mark.parametrize("injection", INJECTIONS, ids=lambda injection: injection.name)
def test_a_model_that_obeys_an_injection_changes_nothing_that_is_known(
    believer: Owner, injection: Injection, language_model_server: LanguageModelServer
) -> None:
    before = everything()
    language_model_server.answer = writing(injection.obeyed())
    inject(believer, injection)

    look_through_all(NOW)

    assert everything() == before
    assert [row.text for row in turns()] == [said.text for said in injection.turns]


@pytest.mark.usefixtures("_no_model")
@pytest.mark.parametrize("injection", INJECTIONS, ids=lambda injection: injection.name)
def test_rules_change_nothing_that_is_known_for_an_injection(believer: Owner, injection: Injection) -> None:
    before = everything()
    inject(believer, injection)

    look_through_all(NOW)

    assert everything() == before
    assert extracted() == (len(injection.turns), len(injection.turns))


@pytest.fixture
def _no_model() -> Iterator[None]:
    language_model.cache_clear()
    yield
    language_model.cache_clear()


def turns() -> Any:
    rows: Any = Turn.objects.order_by("index")
    return rows


def test_what_is_said_beside_an_injection_is_learnt(
    believer: Owner, language_model_server: LanguageModelServer
) -> None:
    injection = INJECTIONS[0]
    said = injection.obeyed(first=1)
    language_model_server.write = lambda asked: said | {"entities": [*said["entities"], person("Rosa", 0)]}
    tell(believer, "Rosa is here.", at=NOW)
    inject(believer, injection)

    look_through_all(NOW)

    assert list(Entity.objects.values_list("name", flat=True)) == ["Rosa"]
