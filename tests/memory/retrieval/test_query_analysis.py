"""Query analysis, field by field, from one statement."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from pytest_django import DjangoAssertNumQueries

from memory.extraction.turn_slots import Observation, Slots
from memory.models import Account, Conversation, Kind, Memory, Participant, UserProfile
from memory.models.writer import insert_vectors
from memory.owner import Owner
from memory.retrieval.plans import QueryAnalysis
from memory.retrieval.queries import Query
from memory.retrieval.query_analysis import (
    MAX_ENTITIES,
    MAX_GOALS,
    MAX_LINEAGE,
    MAX_TURN_MESSAGES,
    MAX_TURN_RECORDS,
    analyze_query,
)
from memory.retrieval.retrievers.vector import index_name
from memory.services.embedding.vector_index import find_partitions
from memory.services.entities.merge import merge_entities
from tests.memory.entities import entity_of
from tests.memory.episodes import MODEL, NOW, WIDTH, direction
from tests.memory.gatherings import asked, recall_context
from tests.memory.goals import aim, finish
from tests.memory.graphs import node
from tests.memory.records import add_record
from tests.memory.turns import say, talk, turn

pytestmark = pytest.mark.django_db


def analyze(owner: Owner, query: Query) -> QueryAnalysis:
    return analyze_query(owner, query, recall_context(owner))


def terms_of(owner: Owner, query: Query) -> dict[str, int]:
    """Return the words of the question without the account's prefix, with the number of memories that hold them."""
    prefix = str(owner.account_id)[-6:]
    return {term.lexeme.removeprefix(prefix): term.docs for term in analyze(owner, query).terms}


def resumed(owner: Owner, *ids: str) -> None:
    """Create conversations, each of which resumes the next; they have no participants."""
    for conversation_id, former in zip(ids, [*ids[1:], ""], strict=True):
        Conversation.objects.create(
            account_id=owner.account_id, conversation_id=conversation_id, continues=former, started_at=NOW
        )


def test_the_analysis_takes_one_statement(owner: Owner, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    query = asked("the boiler", angle=0.0, phrases=("the boiler",), names=("Ana",), conversation_id="c1")
    analyze(replace(owner, user_id="ana"), query)

    with django_assert_num_queries(1):
        analyze(replace(owner, user_id="ana"), query)


def test_the_analysis_of_an_empty_account_is_empty(owner: Owner) -> None:
    found = analyze(owner, asked("Who?", angle=0.0, names=("Ana",), phrases=("a b",), conversation_id="c1"))

    assert (found.terms, found.docs, found.tokens) == ([], 0, 0)
    assert (found.entities, found.lineage, found.goals) == ([], [], [])
    assert (found.profile, found.first_of_turn) == (None, None)
    assert (found.has_pending, found.indexed_rows) == (False, 0)


def test_terms_have_the_number_of_memories_that_contain_them(owner: Owner, stranger: Account) -> None:
    for text in ("The boiler leaks.", "A boiler.", "The roof leaks."):
        node(owner, text)
    node(Owner(account_id=stranger.id), "A stranger's boiler.")

    assert terms_of(owner, asked("boiler roof cellar")) == {"boiler": 2, "roof": 1}


def test_words_that_no_memory_holds_are_kept_apart(owner: Owner, stranger: Account) -> None:
    node(owner, "The boiler leaks.")
    node(owner, "hot", archived=True)
    node(Owner(account_id=stranger.id), "A cellar.")
    query = asked("Is the boiler in Priya's hot cellar?", names=("Priya",), subjects=("Priya",), expansions=("attic",))

    found = analyze(owner, query)

    assert {term.lexeme[6:] for term in found.terms} & {"boiler", "cellar", "hot", "priya"} == {"boiler"}
    unknown = {term.lexeme[6:]: (term.is_content, term.is_subject) for term in found.unknown if term.is_content}
    assert unknown == {"priya": (True, True), "hot": (True, False), "cellar": (True, False)}
    assert not any(term.selects for term in found.unknown)
    # as rare as a word can be
    assert min(term.weight for term in found.unknown) >= found.terms[0].weight


def test_counts_follow_edits_and_archiving_of_memories(owner: Owner) -> None:
    edited, gone = node(owner, "boiler", token_count=3), node(owner, "boiler roof", token_count=4)
    Memory.objects.filter(id=edited.id).update(text="cellar")
    Memory.objects.filter(id=gone.id).update(archived=True)

    found = analyze(owner, asked("boiler roof cellar"))

    assert terms_of(owner, asked("boiler roof cellar")) == {"cellar": 1}
    assert (found.docs, found.tokens) == (1, 3)


def test_names_count_more_than_words_and_expansions_less(owner: Owner) -> None:
    for text in ("ana", "boiler", "heater"):
        node(owner, text)

    found = analyze(owner, asked("boiler ana", names=("Ana",), expansions=("heater boiler",)))

    name, word, expansion = (term.weight for term in found.terms)
    assert [term.lexeme[6:] for term in found.terms] == ["ana", "boiler", "heater"]
    assert name == pytest.approx(1.5 * word)
    assert expansion == pytest.approx(0.5 * word)


@pytest.mark.parametrize("phrase", ["the old boiler", "it's \\ 'quoted' : & | !"], ids=["words", "signs"])
def test_phrases_become_queries_that_find_them(owner: Owner, phrase: str) -> None:
    node(owner, f"There is {phrase} here.")
    node(owner, " ".join(reversed(phrase.split())))

    [query] = analyze(owner, asked(phrases=(phrase,))).phrases

    with connection.cursor() as cursor:
        cursor.execute("SELECT text FROM memories WHERE lexemes @@ %s::tsquery", [query])
        assert cursor.fetchall() == [(f"There is {phrase} here.",)]


def test_a_phrase_without_words_is_ignored(owner: Owner) -> None:
    assert analyze(owner, asked(phrases=("…", "!"))).phrases == []


def test_names_find_the_users_entities_and_the_agents(owner: Owner) -> None:
    users = replace(owner, user_id="ana")
    own, of_user = entity_of(owner, "Rex"), entity_of(users, "Rex", type="animal")
    entity_of(replace(owner, user_id="ben"), "Rex")
    entity_of(replace(owner, agent_id="colleague"), "Rex")
    of_account = entity_of(replace(owner, agent_id=""), "Rex")

    assert set(analyze(owner, asked(names=("  rex’s",))).entities) == {own.id, of_account.id}
    assert set(analyze(users, asked(names=("REX",))).entities) == {own.id, of_user.id, of_account.id}


def test_names_find_entities_of_other_agents_only_where_visible(owner: Owner) -> None:
    known = entity_of(replace(owner, agent_id="colleague"), "Lighthouse")

    whole = analyze(Owner(account_id=owner.account_id), Query(text="?", names=["LIGHTHOUSE"]))
    other = analyze(owner, Query(text="?", names=["Lighthouse"]))

    assert (whole.entities, other.entities) == ([known.id], [])


def test_an_entity_is_named_by_its_aliases_but_not_by_parts_of_its_name(owner: Owner) -> None:
    ana = entity_of(owner, "Ana Lima", aliases=["Ann"])

    assert analyze(owner, asked(names=("Ann", "nobody"))).entities == [ana.id]
    assert analyze(owner, asked(names=("Lima",))).entities == []


def test_the_name_of_a_merged_entity_finds_its_survivor(owner: Owner) -> None:
    ana, ann = entity_of(owner, "Ana Lima"), entity_of(owner, "Ann Smith")
    merge_entities(owner, ana.id, ann.id, now=NOW)

    assert analyze(owner, asked(names=("Ann Smith",))).entities == [ana.id]


@pytest.mark.parametrize(
    "hidden",
    [{"archived": True}, {"quarantined": True}, {"buried": True}, {"expires_at": NOW}, {"channel": "elsewhere"}],
    ids=str,
)
def test_hidden_entities_are_not_named(owner: Owner, hidden: dict[str, Any]) -> None:
    ana = entity_of(owner)
    Memory.objects.filter(id=ana.id).update(**hidden)

    assert analyze(owner, asked(names=("Ana Lima",))).entities == []


def test_the_most_salient_of_very_many_entities_are_named(owner: Owner) -> None:
    named = [entity_of(owner, "Ana", type=f"type {number}") for number in range(MAX_ENTITIES + 1)]
    Memory.objects.filter(id=named[-1].id).update(salience=1)

    found = analyze(owner, asked(names=("Ana",))).entities

    assert (len(found), found[0]) == (MAX_ENTITIES, named[-1].id)


def test_lineage_lists_resumed_conversations_nearest_first(owner: Owner, stranger: Account) -> None:
    resumed(owner, "c3", "c2", "c1")
    resumed(Owner(account_id=stranger.id), "c1", "theirs")

    assert analyze(owner, asked(conversation_id="c3")).lineage == ["c2", "c1"]
    assert analyze(owner, asked(conversation_id="c1")).lineage == []
    assert analyze(owner, asked()).lineage == []


def test_a_cyclic_lineage_ends(owner: Owner) -> None:
    resumed(owner, "c3", "c2", "c1")
    Conversation.objects.filter(conversation_id="c1").update(continues="c3")

    assert analyze(owner, asked(conversation_id="c3")).lineage == ["c2", "c1"]


def test_lineage_is_bounded(owner: Owner) -> None:
    resumed(owner, *(f"c{number}" for number in range(MAX_LINEAGE + 5)))

    assert analyze(owner, asked(conversation_id="c0")).lineage == [f"c{n + 1}" for n in range(MAX_LINEAGE)]


@pytest.mark.parametrize(
    ("roles", "first"),
    [
        pytest.param(["user", "assistant", "user", "tool", "assistant"], 2, id="since the user spoke last"),
        pytest.param(["assistant", "tool"], 0, id="all where no user spoke"),
        pytest.param(["user", *["tool"] * MAX_TURN_MESSAGES], 1, id="the last ones where the user spoke long before"),
    ],
)
def test_a_request_starts_at_the_last_message_of_the_user(owner: Owner, roles: list[str], first: int) -> None:
    say(owner, *(turn(f"message {number}", role=role) for number, role in enumerate(roles)))

    assert analyze(owner, asked(conversation_id="c1")).first_of_turn == first


def test_records_of_the_request_are_open_ones_and_those_of_its_messages(owner: Owner) -> None:
    talk(owner, 3)
    old, about = add_record(owner, "c1"), add_record(owner, "c1", first_index=1, last_index=2)
    still = add_record(owner, "c1", slots=Slots(observation=Observation(text="The roses hang their heads.")))

    found = analyze(owner, asked(conversation_id="c1")).records_of_turn

    assert set(found) == {about.record.id, still.record.id}
    assert old.record.id not in found


def test_old_open_records_are_not_records_of_the_request(owner: Owner) -> None:
    add_record(owner, "c1", slots=Slots(observation=Observation(text="The roses hang their heads.")))
    for _ in range(MAX_TURN_RECORDS):
        add_record(owner, "c1")

    assert analyze(owner, asked(conversation_id="c1")).records_of_turn == []


def test_open_goals_are_listed_most_urgent_first(owner: Owner) -> None:
    aim(owner, "whenever")
    aim(owner, "late", deadline=NOW + timedelta(days=2))
    aim(owner, "soon", deadline=NOW + timedelta(days=1))
    blocker = aim(owner, "first", priority=9)
    aim(owner, "blocked", priority=5, blocked_by=[blocker.id])
    finish(owner, aim(owner, "done", priority=10))

    goals = analyze(owner, asked()).goals

    assert [goal.description for goal in goals] == ["first", "blocked", "soon", "late", "whenever"]
    assert [goal.status for goal in goals[:2]] == ["active", "blocked"]
    assert (goals[2].deadline, goals[4].deadline) == (NOW + timedelta(days=1), None)


def test_only_goals_visible_to_the_owner_are_listed(owner: Owner, stranger: Account) -> None:
    users = replace(owner, user_id="ana")
    aim(owner, "the agent's")
    aim(users, "ana's")
    aim(replace(owner, user_id="ben"), "ben's")
    aim(replace(owner, channel="elsewhere"), "elsewhere")
    aim(Owner(account_id=stranger.id, agent_id=owner.agent_id), "a stranger's")

    assert {goal.description for goal in analyze(users, asked()).goals} == {"the agent's", "ana's"}
    assert len(analyze(Owner(account_id=owner.account_id), asked()).goals) == 3


def test_goals_are_bounded(owner: Owner) -> None:
    for number in range(MAX_GOALS + 1):
        aim(owner, f"goal {number}", priority=number)

    goals = analyze(owner, asked()).goals

    assert [goal.priority for goal in goals] == list(range(MAX_GOALS, 0, -1))


def test_the_profile_is_that_of_the_user(owner: Owner) -> None:
    for user_id in ("ana", "ben"):
        UserProfile.objects.create(
            account_id=owner.account_id, user_id=user_id, preferences={"of": user_id}, communication_style="terse"
        )

    profile = analyze(replace(owner, user_id="ana"), asked()).profile

    assert profile == {
        "user_id": "ana",
        "preferences": {"of": "ana"},
        "expertise_areas": [],
        "communication_style": "terse",
    }
    assert analyze(owner, asked()).profile is None


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, True),
        ({"embed_after": None}, False),
        ({"agent_id": "colleague"}, False),
        ({"channel": "elsewhere"}, False),
        ({"archived": True}, False),
        ({"kind": Kind.GOAL}, False),
    ],
    ids=["pending", "embedded", "another-agents", "another-channel", "archived", "another-kind"],
)
def test_has_pending_says_whether_searched_memories_wait_for_vectors(
    owner: Owner, fields: dict[str, Any], expected: bool
) -> None:
    node(owner, **{"embed_after": NOW} | fields)

    assert analyze(owner, asked(kinds=(Kind.ENTITY,))).has_pending is expected


def test_turns_count_as_pending_for_participants_only(owner: Owner) -> None:
    node(owner, kind=Kind.TURN, conversation_id="c1", embed_after=NOW)
    assert not analyze(owner, asked()).has_pending

    Participant.objects.create(account_id=owner.account_id, agent_id=owner.agent_id, conversation_id="c1")

    assert analyze(owner, asked()).has_pending


def test_indexed_rows_is_the_size_of_the_accounts_vector_index(owner: Owner, stranger: Account) -> None:
    insert_vectors(owner.account_id, model=MODEL, vectors=[(node(owner, kind=Kind.GOAL).id, direction(0.0))])
    name = index_name(owner.account_id, model=MODEL, width=WIDTH, is_nested=False)
    [partition] = find_partitions(owner.account_id)
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute(f"CREATE INDEX {name} ON {partition} USING hnsw ((vector::halfvec(8)) halfvec_cosine_ops)")

    assert analyze(owner, asked(angle=0.0)).indexed_rows == 1
    assert analyze(owner, replace(asked(angle=0.0), model="another")).indexed_rows == 0
    assert analyze(Owner(account_id=stranger.id), asked(angle=0.0)).indexed_rows == 0
    assert analyze(owner, asked("no vector")).indexed_rows == 0
