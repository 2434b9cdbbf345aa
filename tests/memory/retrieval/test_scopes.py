"""Scopes: they filter if the client sends them, and prefer in the posture's order in a conversation."""

from dataclasses import replace
from itertools import product
from typing import Any
from uuid import UUID

import pytest

from memory.errors import Unprocessable
from memory.extraction.turn_slots import Action, Observation, Reasoning, Slots
from memory.models import Fact, Kind, Memory
from memory.models.writer import insert_vectors
from memory.owner import Owner
from memory.reasoning import ReasoningTier
from memory.retrieval.candidates import Candidate
from memory.retrieval.plans import QueryAnalysis
from memory.retrieval.queries import Posture, Query, Scope
from memory.retrieval.query_analysis import analyze_query
from memory.retrieval.scopes import SCOPE_TESTS, SearchScope, check_scopes
from memory.services.conversations.lifecycle import ConversationDefaults, create_conversation
from tests.memory.contexts import context_of, entry, keep
from tests.memory.episodes import MODEL, NOW, direction
from tests.memory.gatherings import asked, gathered, recall_context
from tests.memory.graphs import node, store_node
from tests.memory.learnings import learn, team_of
from tests.memory.recalls import found_by_words
from tests.memory.records import add_record
from tests.memory.turns import say, turn

SCOPES = [pytest.param(scope, id=scope.value) for scope in Scope]
HERE, BEFORE, LONG_BEFORE, ELSEWHERE = "c1", "c0", "c00", "c9"
SEARCH_SCOPE = SearchScope.of(Query(text="", conversation_id=HERE), QueryAnalysis(), user_id="ana")
COLUMNS = ("conversation_id", "channel", "user_id")
PLAIN = (Kind.ENTITY, Kind.STRATEGY, Kind.GOAL, Kind.ARTIFACT, Kind.EPISODE, Kind.TURN_SLOT, Kind.WORK_EPISODE)


@pytest.fixture
def reader(owner: Owner) -> Owner:
    """The owner who asks: for a user, in a channel."""
    return replace(owner, user_id="ana", channel="garden")


@pytest.fixture
def resumed(owner: Owner) -> None:
    """Make the active conversation resume one that resumes another; a further one is unrelated."""
    before = ""
    for conversation_id in (LONG_BEFORE, BEFORE, HERE):
        create_conversation(owner, conversation_id, defaults=ConversationDefaults(continues=before), now=NOW)
        before = conversation_id


@pytest.fixture
def memories_everywhere(owner: Owner, resumed: None) -> None:
    """Memories of every kind: of any conversation or none, in a channel or none, of a user or no user."""
    for conversation_id, count in ((HERE, 4), (BEFORE, 2), (LONG_BEFORE, 2), (ELSEWHERE, 2)):
        drafts = [turn(f"boiler {number} of {conversation_id}") for number in range(count)]
        say(owner, *drafts, conversation_id=conversation_id)
    for kind, *where in product(PLAIN, ("", HERE, BEFORE, ELSEWHERE), ("_global", "garden"), ("", "ana")):
        node(owner, f"boiler {kind} {where}", kind=kind, **dict(zip(COLUMNS, where, strict=True)))
    for of_fact in product(("", HERE, BEFORE), ("_global", "garden"), ("", "ana")):
        own = dict(zip(COLUMNS, of_fact, strict=True))
        store_node(owner, Fact(kind=Kind.FACT, text=f"boiler fact {of_fact}", recorded_at=NOW, **own))
    for conversation_id, channel in ((HERE, "_global"), (BEFORE, "_global"), (ELSEWHERE, "_global"), ("g", "garden")):
        add_record(replace(owner, channel=channel), conversation_id, slots=boiler_slots())
    keep(owner, context_of(owner), entry("boiler entry"))
    learn(owner, team_of(owner).id, "boiler learning")


def boiler_slots() -> Slots:
    """Return slots without an outcome, so that the structured turn is open."""
    return Slots(
        observation=Observation(text="boiler observed"),
        reasoning=Reasoning(tier=ReasoningTier.DECISION_SUMMARY, summary="boiler decided"),
        action=Action(text="boiler mended"),
    )


def search_scope_of(reader: Owner) -> SearchScope:
    """Return the search scope of the active conversation."""
    query = Query(text="", conversation_id=HERE)
    return SearchScope.of(query, analyze_query(reader, query, recall_context(reader)), user_id=reader.user_id)


def ids(candidates: list[Candidate]) -> set[UUID]:
    return {each.id for each in candidates}


@pytest.mark.django_db
@pytest.mark.usefixtures("memories_everywhere")
def test_a_scope_filters_by_the_same_test_by_which_it_prefers(reader: Owner) -> None:
    everything, search_scope = found_by_words(reader, "boiler", conversation_id=HERE), search_scope_of(reader)
    assert {each.kind for each in everything} == set(Kind) - {Kind.NOTE}

    for scope in Scope:
        within = found_by_words(reader, "boiler", conversation_id=HERE, scopes=[scope])

        assert ids(within) == ids([each for each in everything if SCOPE_TESTS[scope](each, search_scope)]), scope
        assert 0 < len(within) < len(everything), scope


@pytest.mark.django_db
@pytest.mark.usefixtures("memories_everywhere")
@pytest.mark.parametrize(
    ("scope", "texts"),
    [
        pytest.param(Scope.TURN, {"boiler 3 of c1"}, id="turn"),
        pytest.param(Scope.SESSION, {f"boiler {number} of c1" for number in range(4)}, id="session"),
        pytest.param(
            Scope.LINEAGE, {f"boiler {number} of {of}" for number in (0, 1) for of in ("c0", "c00")}, id="lineage"
        ),
    ],
)
def test_conversation_scopes_hold_the_turns_of_their_conversations(
    reader: Owner, scope: Scope, texts: set[str]
) -> None:
    found = found_by_words(reader, "boiler", conversation_id=HERE, scopes=[scope], kinds=[Kind.TURN])

    assert {each.text for each in found} == texts


@pytest.mark.django_db
@pytest.mark.usefixtures("resumed")
@pytest.mark.parametrize(
    ("scope", "texts"),
    [
        pytest.param(Scope.TURN, {"third"}, id="turn"),
        pytest.param(Scope.SESSION, {"first", "second", "third"}, id="session"),
        pytest.param(Scope.LINEAGE, {"before"}, id="lineage"),
    ],
)
def test_scopes_filter_vector_results_as_well(owner: Owner, scope: Scope, texts: set[str]) -> None:
    say(owner, *(turn(text, angle=0.1) for text in ("first", "second", "third")), conversation_id=HERE)
    say(owner, turn("before", angle=0.1), conversation_id=BEFORE)
    asked = {"model": MODEL, "vector": direction(0), "conversation_id": HERE, "scopes": [scope]}

    found = found_by_words(owner, "boiler", techniques=("vector", "-duplicates"), **asked)

    assert {each.text for each in found} == texts


@pytest.mark.django_db
@pytest.mark.usefixtures("memories_everywhere")
@pytest.mark.parametrize("scope", SCOPES)
def test_a_scope_holds_the_same_whether_memories_or_vectors_are_searched(reader: Owner, scope: Scope) -> None:
    insert_vectors(reader.account_id, model=MODEL, vectors=[(each, direction(0)) for each in every_id()])
    fields = {"conversation_id": HERE, "scopes": [scope], "top_k": 1_000}
    query = asked("boiler", angle=0.1, **fields)

    by_words, by_meaning = (
        gathered(reader, query, analyze_query(reader, query, recall_context(reader)), name).candidates
        for name in ("lexical", "vector")
    )

    assert ids(list(by_meaning)) == ids(list(by_words)) != set()


def every_id() -> list[UUID]:
    return list(Memory.objects.filter(vectors=None).values_list("id", flat=True))


@pytest.mark.django_db
@pytest.mark.usefixtures("memories_everywhere")
def test_several_scopes_hold_the_union_of_their_memories(reader: Owner) -> None:
    scopes = [Scope.LINEAGE, Scope.PROFILE]
    found = found_by_words(reader, "boiler", conversation_id=HERE, scopes=scopes)

    each_alone = [found_by_words(reader, "boiler", conversation_id=HERE, scopes=[scope]) for scope in scopes]
    assert ids(found) == ids(each_alone[0]) | ids(each_alone[1])


@pytest.mark.django_db
@pytest.mark.usefixtures("resumed")
@pytest.mark.parametrize(
    ("asked", "first"),
    [
        pytest.param({"posture": Posture.ACTIVE_TURN}, HERE, id="active turn"),
        pytest.param({"posture": Posture.RESUME}, BEFORE, id="resume"),
        pytest.param({"posture": Posture.RECOVERY}, BEFORE, id="recovery"),
        pytest.param({"posture": Posture.AUDIT}, HERE, id="audit"),
        pytest.param({"scopes": [Scope.LINEAGE, Scope.SESSION]}, BEFORE, id="as sent"),
        pytest.param(
            {"posture": Posture.RESUME, "scopes": [Scope.SESSION, Scope.LINEAGE]}, HERE, id="as sent the other way"
        ),
    ],
)
def test_an_active_turn_prefers_its_session_and_a_resume_its_lineage(
    owner: Owner, asked: dict[str, Any], first: str
) -> None:
    for conversation_id in (ELSEWHERE, BEFORE, HERE):
        further = [turn("And so on."), turn("Well then.")]
        say(owner, turn("The boiler leaks."), *further, conversation_id=conversation_id)

    found = found_by_words(owner, "boiler", conversation_id=HERE, **asked)

    assert found[0].conversation_id == first
    assert {each.conversation_id for each in found[:2]} == {HERE, BEFORE}


@pytest.mark.django_db
@pytest.mark.usefixtures("memories_everywhere")
@pytest.mark.parametrize("posture", [pytest.param(posture, id=posture.value) for posture in Posture])
def test_without_a_conversation_and_scopes_nothing_is_preferred(reader: Owner, posture: Posture) -> None:
    found = found_by_words(reader, "boiler", posture=posture)

    assert len(found) > 100
    assert not any("scope" in each.signals for each in found)


@pytest.mark.django_db
@pytest.mark.usefixtures("memories_everywhere")
def test_scopes_without_a_conversation_are_preferred_as_they_were_sent(reader: Owner) -> None:
    found = found_by_words(reader, "boiler", scopes=[Scope.PROFILE, Scope.WORKSPACE])

    of_user = [each for each in found if SCOPE_TESTS[Scope.PROFILE](each, SEARCH_SCOPE)]
    assert {each.signals["scope"] for each in of_user} == {1.3}
    assert {each.signals["scope"] for each in found if each not in of_user} == {1.2}


@pytest.mark.django_db
@pytest.mark.usefixtures("memories_everywhere")
@pytest.mark.parametrize("scope", SCOPES)
def test_a_nonexistent_conversation_has_only_workspace_and_profile_scopes(reader: Owner, scope: Scope) -> None:
    found = found_by_words(reader, "boiler", conversation_id="never begun", scopes=[scope])

    assert bool(found) == (scope in (Scope.WORKSPACE, Scope.PROFILE))


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        pytest.param({"scopes": [Scope.SESSION]}, "need a conversation", id="session of none"),
        pytest.param({"scopes": [Scope.WORKSPACE, Scope.TURN]}, "need a conversation", id="turn of none"),
        pytest.param({"scopes": [Scope.LINEAGE]}, "need a conversation", id="lineage of none"),
        pytest.param({"scopes": [Scope.PROFILE]}, "needs a user", id="profile without a user"),
        pytest.param(
            {"scopes": [Scope.TURN], "kinds": [Kind.FACT], "conversation_id": HERE}, "None of the scopes", id="no turns"
        ),
        pytest.param({"scopes": [Scope.WORKSPACE], "kinds": [Kind.EPISODE]}, "None of the scopes", id="no knowledge"),
    ],
)
def test_scopes_that_no_memory_can_match_are_refused(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(Unprocessable, match=reason):
        check_scopes(Query(text="boiler", **fields), has_user=False)


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({}, id="none"),
        pytest.param({"scopes": [Scope.WORKSPACE]}, id="workspace"),
        pytest.param({"scopes": [Scope.PROFILE]}, id="profile of a user"),
        pytest.param({"scopes": list(Scope), "conversation_id": HERE}, id="all of a conversation"),
        pytest.param({"scopes": [Scope.WORKSPACE, Scope.WORKSPACE]}, id="one twice"),
        pytest.param(
            {"scopes": [Scope.TURN, Scope.SESSION], "kinds": [Kind.FACT], "conversation_id": HERE}, id="one fits"
        ),
    ],
)
def test_scopes_that_some_memory_can_match_are_accepted(fields: dict[str, Any]) -> None:
    check_scopes(Query(text="boiler", **fields), has_user=True)
