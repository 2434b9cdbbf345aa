"""Storing extracted items: contradictions, corrections, rejections, relationships and preferences."""

from dataclasses import replace
from datetime import timedelta

import pytest

from memory import conf
from memory.models import Entity, Fact, FactReview, FactTombstone, Link, Turn, UserProfile
from memory.owner import Owner
from memory.services.embedding.embed import embed_texts
from memory.services.entities.learn import EntityDraft, upsert_entity
from memory.services.facts.store import visible_facts
from memory.services.facts.supersede import reject_fact
from memory.services.memories.correct import delete_memories
from tests.language_model_server import LanguageModelServer
from tests.memory.episodes import NOW
from tests.memory.knowledge import (
    TURN_TIME,
    answer_with,
    claims,
    extract_all,
    extracted,
    fact_json,
    links,
    person,
    say_sentences,
)

KNOWS = {"source": "Ana", "target": "Rosa", "type": "KNOWS", "certainty": "explicit", "evidence": [0]}


pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]


def test_a_user_and_a_channel_have_their_own_knowledge(owner: Owner) -> None:
    for user, channel in (("ana", "_global"), ("ben", "_global"), ("ben", "rust")):
        say_sentences(replace(owner, user_id=user, channel=channel), "I live in Lisbon.", name=user.title())
    extract_all(NOW)

    facts = Fact.objects.order_by("id")
    assert [(fact.user_id, fact.channel, fact.text) for fact in facts] == [
        ("ana", "_global", "Ana lives in Lisbon"),
        ("ben", "_global", "Ben lives in Lisbon"),
        ("ben", "rust", "Ben lives in Lisbon"),
    ]
    of_ana = replace(owner, user_id="ana")
    assert [fact.text for fact in visible_facts(of_ana, now=NOW)] == ["Ana lives in Lisbon"]


def test_a_preference_is_stored_in_the_users_profile_with_its_evidence(owner: Owner) -> None:
    turns = say_sentences(replace(owner, user_id="ana"), "I love dark roast coffee.").turns
    extract_all(NOW)

    profile = UserProfile.objects.get(user_id="ana")
    assert list(profile.preferences) == ["dark roast coffee"]
    assert profile.provenance["dark roast coffee"]["turn_ids"] == [str(turns[0].id)]
    assert profile.provenance["dark roast coffee"]["fact_id"] == str(Fact.objects.get().id)


def test_another_kind_of_what_is_preferred_from_now_on_replaces_the_former(owner: Owner) -> None:
    user = replace(owner, user_id="ana")
    say_sentences(user, "I prefer short answers.", at=TURN_TIME)
    extract_all(NOW)
    later = TURN_TIME + timedelta(days=3)
    say_sentences(user, "I prefer detailed answers from now on.", at=later, conversation_id="later")
    extract_all(NOW)

    assert [fact.text for fact in visible_facts(user, now=NOW)] == ["Ana prefers detailed answers"]


def test_what_the_user_denies_later_is_known_no_more(owner: Owner) -> None:
    say_sentences(owner, "I'm allergic to peanuts.", at=TURN_TIME)
    extract_all(NOW)
    later = TURN_TIME + timedelta(days=3)
    denial = "I'm not allergic to peanuts after all, the test was wrong."
    say_sentences(owner, denial, at=later, conversation_id="later")
    extract_all(NOW)

    assert [fact.text for fact in visible_facts(owner, now=NOW)] == ["Ana is not allergic to peanuts"]


def test_without_a_user_there_is_no_profile(owner: Owner) -> None:
    say_sentences(owner, "I love dark roast coffee.")
    extract_all(NOW)

    assert not UserProfile.objects.exists()


def move(owner: Owner, monkeypatch: pytest.MonkeyPatch, policy: str) -> None:
    """Have Ana live in Lisbon and, a month later, say that she lives in Porto."""
    monkeypatch.setattr(conf, "CONTRADICTIONS", policy)
    say_sentences(owner, "I live in Lisbon.", at=TURN_TIME)
    extract_all(NOW)
    say_sentences(owner, "I live in Porto.", at=TURN_TIME + timedelta(days=30))
    extract_all(NOW)


def test_a_contradiction_supersedes_where_the_new_is_preferred(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    move(owner, monkeypatch, "prefer_new")

    moved = TURN_TIME + timedelta(days=30)
    assert [fact.text for fact in visible_facts(owner, now=NOW)] == ["Ana lives in Porto"]
    before = visible_facts(owner, now=NOW, as_of=moved - timedelta(days=1))
    assert [fact.text for fact in before] == ["Ana lives in Lisbon"]
    assert len(links("SUPERSEDES")) == 1


def test_a_contradiction_is_left_out_where_the_old_is_preferred(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    move(owner, monkeypatch, "prefer_old")

    assert claims() == ["Ana lives in Lisbon"]
    assert extracted() == (2, 2)


def test_a_contradiction_waits_for_staff_where_it_is_flagged(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    move(owner, monkeypatch, "flag_review")

    assert [fact.text for fact in visible_facts(owner, now=NOW)] == ["Ana lives in Lisbon"]
    review = FactReview.objects.get()
    assert (review.old_fact.text, review.new_fact.text, review.status) == (
        "Ana lives in Lisbon",
        "Ana lives in Porto",
        "open",
    )
    assert review.similarity is not None
    assert 0.5 <= review.similarity < 1


def test_an_earlier_turn_that_is_extracted_later_was_true_until_then(owner: Owner) -> None:
    say_sentences(owner, "I live in Porto.", at=TURN_TIME)
    extract_all(NOW)
    say_sentences(owner, "I live in Lisbon.", at=TURN_TIME - timedelta(days=300), conversation_id="older")
    extract_all(NOW)

    assert [fact.text for fact in visible_facts(owner, now=NOW)] == ["Ana lives in Porto"]
    before = visible_facts(owner, now=NOW, as_of=TURN_TIME - timedelta(days=1))
    assert "Ana lives in Lisbon" in {fact.text for fact in before}


def test_a_correction_supersedes_and_retracts_the_wrong_fact(owner: Owner) -> None:
    say_sentences(owner, "I live in Lisbon.")
    extract_all(NOW)
    say_sentences(owner, "Actually, I live in Porto.")
    extract_all(NOW)

    assert [fact.text for fact in visible_facts(owner, now=NOW)] == ["Ana lives in Porto"]
    wrong = Fact.objects.get(text="Ana lives in Lisbon")
    assert (wrong.status, wrong.retracted_at) == ("superseded", NOW)
    assert Link.objects.get(type="SUPERSEDES").properties == {"reason": "correction"}


def test_a_rejected_fact_does_not_come_back_and_that_is_counted(owner: Owner) -> None:
    say_sentences(owner, "I live in Lisbon.")
    extract_all(NOW)
    reject_fact(owner, Fact.objects.get().id, now=NOW)
    say_sentences(owner, "I live in Lisbon.", "I work for Grundfos.", conversation_id="c2")
    extract_all(NOW)

    assert [fact.text for fact in visible_facts(owner, now=NOW)] == ["Ana works for Grundfos"]
    assert FactTombstone.objects.get().met_count == 1


def test_a_rejected_fact_does_not_come_back_after_its_deletion(owner: Owner) -> None:
    say_sentences(owner, "I live in Lisbon.")
    extract_all(NOW)
    reject_fact(owner, Fact.objects.get().id, now=NOW)
    delete_memories(
        owner, [*Fact.objects.values_list("id", flat=True), *Entity.objects.values_list("id", flat=True)], now=NOW
    )
    say_sentences(owner, "I live in Lisbon.", conversation_id="c2")
    extract_all(NOW)

    assert not Fact.objects.exists()
    assert FactTombstone.objects.get().met_count == 1


def test_a_claim_that_was_rejected_of_another_of_its_names_keeps_nothing_back(owner: Owner) -> None:
    say_sentences(owner, "I live in Lisbon.", name="Ana Lima")
    extract_all(NOW)
    reject_fact(owner, Fact.objects.get().id, now=NOW)
    ana = EntityDraft(name="Ana Lima", type="person", aliases=["Ana"])
    upsert_entity(owner, ana, embedded=embed_texts([ana.text]), now=NOW)
    say_sentences(owner, "I live in Lisbon. I work for Grundfos.", name="Ana Lima", conversation_id="c2")

    assert extract_all(NOW).failed == 0

    assert [fact.text for fact in visible_facts(owner, now=NOW)] == ["Ana Lima works for Grundfos"]
    assert extracted("c2") == (1, 1)


def test_items_refused_by_a_service_are_skipped_and_the_rest_is_stored(
    owner: Owner, model: LanguageModelServer
) -> None:
    lisbon = fact_json("Ana lives in Lisbon", 0, number=7, entities=["Ana"])
    model.write = answer_with(entities=[person("Ana", 0), person("Rosa", 0)], facts=[lisbon], relationships=[KNOWS])
    say_sentences(owner, "I live in Lisbon. Ana and Rosa know each other.")
    extract_all(NOW)
    # as full as a client may make it
    Link.objects.filter(type="KNOWS").update(properties={"note": "x" * 65_500})
    say_sentences(owner, "I live in Lisbon. Ana and Rosa know each other.", conversation_id="c2")

    assert extract_all(NOW).failed == 0

    assert extracted("c2") == (1, 1)
    assert Link.objects.get(type="KNOWS").properties == {"note": "x" * 65_500}
    assert len(links("DERIVED_FROM")) == 2


def test_a_relationship_keeps_its_turns_and_the_greater_certainty(owner: Owner, model: LanguageModelServer) -> None:
    turns: list[Turn] = []
    for number, certainty in enumerate(("explicit", "uncertain")):
        model.write = answer_with(
            entities=[person("Ana", 0), person("Rosa", 0)], relationships=[KNOWS | {"certainty": certainty}]
        )
        turns += say_sentences(owner, "Ana and Rosa know each other.", conversation_id=f"c{number}").turns
        extract_all(NOW)

    link = Link.objects.get(type="KNOWS")
    assert (link.weight, link.properties["certainty"]) == (0.95, "explicit")
    assert link.properties["turns"] == [str(each.id) for each in turns]


def test_a_contradiction_supersedes_in_every_channel_where_it_is_known(owner: Owner) -> None:
    rust = replace(owner, channel="rust")
    say_sentences(owner, "I live in Lisbon.", at=TURN_TIME)
    say_sentences(rust, "I live in Lisbon.", at=TURN_TIME, conversation_id="c2")
    extract_all(NOW)
    say_sentences(rust, "I live in Porto.", at=TURN_TIME + timedelta(days=30), conversation_id="c3")
    extract_all(NOW)

    assert {fact.text for fact in visible_facts(rust, now=NOW)} == {"Ana lives in Porto"}
    assert {fact.text for fact in visible_facts(owner, now=NOW)} <= {"Ana lives in Porto"}


def facts_of_nameless_user(owner: Owner, *sentences: str) -> list[str]:
    """Have a user without a name say each sentence in another conversation, a day apart, and return the facts."""
    user = replace(owner, user_id="ana")
    for number, sentence in enumerate(sentences):
        say_sentences(user, sentence, name="", conversation_id=f"n{number}", at=TURN_TIME + timedelta(days=number))
        extract_all(NOW)
    return sorted(fact.text for fact in visible_facts(user, now=NOW))


@pytest.mark.parametrize(
    ("sentences", "believed"),
    [
        (["I live in Oslo.", "I live in Bergen now."], ["The user lives in Bergen"]),
        (["I work for Acme.", "I work for Globex now."], ["The user works for Globex"]),
        (["I work for Acme.", "I no longer work for Acme."], ["The user no longer works for Acme"]),
        (["I work for Acme.", "I got fired."], ["The user got fired"]),
        (["I work for Acme.", "I was fired in 2015."], ["The user was fired in 2015", "The user works for Acme"]),
        (["I'm engaged to Sam.", "Sam and I split up."], ["The user split up with Sam"]),
        (["My cat Biscuit is 11.", "My cat died on Friday."], ["The user's cat Biscuit died"]),
        (["I live in Oslo.", "I moved to Bergen."], ["The user lives in Bergen", "The user moved to Bergen"]),
        (["I'm going to Rome on 20 December.", "The Rome trip is cancelled."], ["The Rome trip is cancelled"]),
        (
            ["My train is at 7:40 on 18 December.", "My train is at 8:10 on 18 December."],
            ["The user's train is at 8:10 on 18 December 2026"],
        ),
        (
            ["I take metformin 500 mg twice a day.", "I stopped taking metformin."],
            ["The user stopped taking metformin"],
        ),
    ],
)
def test_the_user_contradicts_themselves_without_a_name(
    owner: Owner, sentences: list[str], believed: list[str]
) -> None:
    assert facts_of_nameless_user(owner, *sentences) == believed


def test_without_a_user_no_fact_is_about_the_user(owner: Owner) -> None:
    say_sentences(owner, "I live in Oslo.", name="")

    extract_all(NOW)

    assert (claims(), extracted()) == ([], (1, 1))


def test_a_rejected_preference_leaves_the_profile_and_does_not_come_back(owner: Owner) -> None:
    user = replace(owner, user_id="ana")
    facts_of_nameless_user(owner, "I love sushi.")
    assert UserProfile.objects.get().preferences == {"sushi": "likes"}

    reject_fact(user, Fact.objects.get().id, now=NOW)
    say_sentences(user, "I love Sushi.", name="", conversation_id="again")
    extract_all(NOW)

    assert UserProfile.objects.get().preferences == {}


def test_topics_differ_by_more_than_case(owner: Owner) -> None:
    facts_of_nameless_user(owner, "I love sushi.", "I love Sushi.")

    assert UserProfile.objects.get().preferences == {"sushi": "likes"}


@pytest.mark.parametrize("policy", ["prefer_old", "flag_review"])
def test_a_preference_is_kept_while_the_fact_against_it_is_not_believed(
    owner: Owner, monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    monkeypatch.setattr(conf, "CONTRADICTIONS", policy)
    facts_of_nameless_user(owner, "I like coffee.", "I dislike coffee.")

    profile = UserProfile.objects.get()
    believed = Fact.objects.get(status="active")
    assert profile.preferences == {"coffee": "likes"}
    assert profile.provenance["coffee"]["fact_id"] == str(believed.id)
