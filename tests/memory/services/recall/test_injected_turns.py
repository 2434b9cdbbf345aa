"""Tests for turns with injected instructions: extraction by any model changes nothing but the log."""

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
from memory.services.profiles import ProfileChanges, write_profile
from tests.language_model_server import LanguageModelServer, writing
from tests.memory.episodes import NOW
from tests.memory.extraction.injections import INJECTIONS, KNOWN, Injection
from tests.memory.knowledge import extracted, person, say_sentences, with_name
from tests.memory.turns import say, turn

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]


@pytest.fixture
def believer(owner: Owner, stranger: Account) -> Owner:
    """Return a user with knowledge, next to another account with knowledge of its own."""
    user = replace(owner, user_id="ana")
    for whose in (user, Owner(account_id=stranger.id, agent_id="assistant", user_id="ana")):
        for claim in KNOWN:
            learn_fact(whose, FactDraft(claim=claim), embedded=embed_texts([claim]), now=NOW)
        write_profile(whose, "ana", ProfileChanges(preferences={"tea": "likes"}), now=NOW)
    return user


def stored_knowledge() -> dict[str, Any]:
    """Return everything that is known in all accounts."""
    tables: list[Any] = [Entity, Fact, FactVersion, FactReview, FactTombstone, Goal, Link, UserProfile]
    known = {model.__name__: sorted(map(tuple, model.objects.values_list()), key=str) for model in tables}
    others = Memory.objects.exclude(kind="turn").order_by("id")
    vectors = Vector.objects.exclude(kind="turn").order_by("id")
    return known | {"memories": list(others.values_list()), "vectors": list(vectors.values_list("id", "memory_id"))}


def say_injection(owner: Owner, injection: Injection, *, conversation_id: str = "c1") -> None:
    drafts = [with_name(turn(said.text, role=said.role, timestamp=NOW), said.speaker) for said in injection.turns]
    say(owner, *drafts, conversation_id=conversation_id)


def extract_all(now: datetime) -> None:
    while extract_due(now=now, limit=4).changed:
        pass


@pytest.mark.slow
@pytest.mark.parametrize("injection", INJECTIONS, ids=lambda injection: injection.name)
def test_a_model_that_obeys_an_injection_changes_no_knowledge(
    believer: Owner, injection: Injection, language_model_server: LanguageModelServer
) -> None:
    before = stored_knowledge()
    language_model_server.answer = writing(injection.obeyed())
    say_injection(believer, injection)

    extract_all(NOW)

    assert stored_knowledge() == before
    assert [row.text for row in turns_in_order()] == [said.text for said in injection.turns]


@pytest.mark.usefixtures("_no_model")
def test_rules_change_no_knowledge_for_any_injection(believer: Owner) -> None:
    before = stored_knowledge()
    for injection in INJECTIONS:
        say_injection(believer, injection, conversation_id=injection.name)

    extract_all(NOW)

    assert stored_knowledge() == before
    for injection in INJECTIONS:
        assert extracted(injection.name) == (len(injection.turns), len(injection.turns))


@pytest.fixture
def _no_model() -> Iterator[None]:
    language_model.cache_clear()
    yield
    language_model.cache_clear()


def turns_in_order() -> Any:
    return Turn.objects.order_by("index")


def test_knowledge_next_to_an_injection_is_learned(believer: Owner, language_model_server: LanguageModelServer) -> None:
    injection = INJECTIONS[0]
    said = injection.obeyed(first=1)
    language_model_server.write = lambda asked: said | {"entities": [*said["entities"], person("Rosa", 0)]}
    say_sentences(believer, "Rosa is here.", at=NOW)
    say_injection(believer, injection)

    extract_all(NOW)

    assert list(Entity.objects.values_list("name", flat=True)) == ["Rosa"]
