"""Tests of the storage concerns: experiences, facts, learnings, pools, each for one owner."""

from dataclasses import replace

import pytest

from memory.errors import Conflict, NotFound, Unprocessable
from memory.models import ContextAccessLog, Vector
from memory.owner import Owner
from memory.services.contexts.access_log import write_access_lines
from memory.services.contexts.entries import EntryDraft
from memory.services.contexts.manage import ensure_own_context
from memory.services.contexts.search import EntryQuestion, find_entries
from memory.services.learnings.publish import LearningDraft
from memory.services.memories.store import ClientVector
from memory.services.pools.manage import PoolDraft
from memory.services.router.concerns import StorageService
from memory.services.summaries.store import EpisodeDraft
from tests.embedding_server import MODEL, EmbeddingServer
from tests.memory.contexts import entry, keep
from tests.memory.episodes import MODEL as OWN_MODEL
from tests.memory.episodes import NOW, direction
from tests.memory.learnings import team_of
from tests.round_trips import counted_commands

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "embedding_server")]

KEY_FACT = "The key is under the mat."


def fact_of(key: str = "key", content: str = KEY_FACT) -> EntryDraft:
    return EntryDraft(key=key, content=content)


@pytest.fixture
def storage(owner: Owner) -> StorageService:
    return StorageService(owner)


@pytest.fixture
def colleague(owner: Owner) -> StorageService:
    return StorageService(replace(owner, agent_id="colleague"))


def test_an_experience_is_embedded_and_recalled_by_its_agent_alone(
    storage: StorageService, colleague: StorageService
) -> None:
    draft = EpisodeDraft(conversation_id="c1", summary="We looked under the mat.")

    stored = storage.store_experience(draft, now=NOW)

    assert stored is not None
    assert Vector.objects.get(memory_id=stored.id).model == MODEL
    assert [hit.id for hit in storage.recall_experiences("the mat", now=NOW).hits] == [stored.id]
    assert colleague.recall_experiences("the mat", now=NOW).hits == []


def test_an_experience_is_stored_once(storage: StorageService) -> None:
    for stored_before in (False, True):
        draft = EpisodeDraft(conversation_id="c1", summary="We looked.", identity="same")

        assert (storage.store_experience(draft, now=NOW) is None) is stored_before


def test_a_fact_is_an_entry_of_the_agents_own_context(storage: StorageService, owner: Owner) -> None:
    fact = storage.store_fact(fact_of(), now=NOW)

    assert (fact.entry_type, fact.memory_type, fact.key) == ("fact", "factual", "key")
    assert fact.context_id == ensure_own_context(owner, now=NOW).id
    assert Vector.objects.get(memory_id=fact.id).model == MODEL


def test_a_fact_under_the_same_key_is_its_next_version(storage: StorageService) -> None:
    storage.store_fact(fact_of(), now=NOW)

    storage.store_fact(fact_of(content="The key is in the pot."), now=NOW)

    found = storage.find_fact("key", now=NOW)
    assert (found.text, found.content_version) == ("The key is in the pot.", 2)


def test_a_fact_may_be_any_json(storage: StorageService) -> None:
    storage.store_fact(EntryDraft(key="doors", value={"front": 1.0, "back": None}), now=NOW)

    assert storage.find_fact("doors", now=NOW).value == {"front": 1.0, "back": None}


def test_a_fact_cannot_take_the_key_of_another_entry(storage: StorageService, owner: Owner) -> None:
    [seen] = keep(owner, ensure_own_context(owner, now=NOW), entry("We saw a key.", key="key"))

    with pytest.raises(Conflict):
        storage.store_fact(fact_of(), now=NOW)

    seen.refresh_from_db()
    assert (seen.text, seen.content_version) == ("We saw a key.", 1)


def test_only_facts_are_listed_ordered_by_key(storage: StorageService, owner: Owner) -> None:
    for key in ("mat", "door"):
        storage.store_fact(fact_of(key), now=NOW)
    keep(owner, ensure_own_context(owner, now=NOW), entry("We saw a key.", key="key"))

    assert [fact.key for fact in storage.list_facts(now=NOW)] == ["door", "mat"]
    for key in ("key", "nowhere", ""):
        with pytest.raises(NotFound):
            storage.find_fact(key, now=NOW)


def test_facts_are_private_to_their_agent(storage: StorageService, colleague: StorageService) -> None:
    storage.store_fact(fact_of(), now=NOW)

    assert colleague.list_facts(now=NOW) == []
    assert colleague.find_facts("key", now=NOW).hits == []
    with pytest.raises(NotFound):
        colleague.find_fact("key", now=NOW)


def test_facts_need_an_agent(owner: Owner) -> None:
    account = StorageService(replace(owner, agent_id=""))

    for act in (
        lambda: account.store_fact(fact_of(), now=NOW),
        lambda: account.find_facts("key", now=NOW),
        lambda: account.list_facts(now=NOW),
    ):
        with pytest.raises(Unprocessable):
            act()


def test_facts_are_found_however_many_other_entries_are_nearer(storage: StorageService, owner: Owner) -> None:
    storage.store_fact(fact_of(), now=NOW)
    others = [entry(KEY_FACT) for _ in range(30)]
    keep(owner, ensure_own_context(owner, now=NOW), *others)

    found = storage.find_facts(KEY_FACT, top_k=1, now=NOW)

    assert [hit.key for hit in found.hits] == ["key"]


@pytest.mark.parametrize("angle", [0.0, None], ids=["by meaning", "by words"])
def test_a_search_may_be_restricted_to_types(owner: Owner, angle: float | None) -> None:
    context = ensure_own_context(owner, now=NOW)
    for name in ("fact", "plan", "reflection"):
        keep(owner, context, entry("the mat", angle=0.1, entry_type=name), entry("the mat, pending", entry_type=name))
    own = None if angle is None else ClientVector(model=OWN_MODEL, vector=direction(angle))

    found = find_entries(owner, EntryQuestion(text="mat", own=own, types=["fact", "plan"]), now=NOW)

    assert sorted(hit.entry_type for hit in found.hits) == ["fact", "fact", "plan", "plan"]


def test_reads_of_facts_are_in_the_access_log(storage: StorageService) -> None:
    fact = storage.store_fact(fact_of(), now=NOW)
    storage.find_fact("key", now=NOW)
    storage.find_facts("key", now=NOW)
    storage.list_facts(now=NOW)

    write_access_lines(100, after="", account_id=None, now=NOW)

    lines = ContextAccessLog.objects.filter(entry_id=fact.id).values_list("action", flat=True)
    assert sorted(lines) == ["create", "read", "read", "search"]


def test_a_fact_is_read_by_one_command_to_redis(storage: StorageService) -> None:
    storage.store_fact(fact_of(), now=NOW)
    storage.find_fact("key", now=NOW)

    with counted_commands() as commands:
        storage.find_fact("key", now=NOW)

    assert len(commands) == 1


@pytest.mark.slow
def test_without_an_embedder_facts_are_found_by_their_words(
    storage: StorageService, embedding_server: EmbeddingServer
) -> None:
    embedding_server.fail()
    storage.store_fact(fact_of(), now=NOW)

    found = storage.find_facts("mat", now=NOW)

    assert [hit.key for hit in found.hits] == ["key"]
    assert found.degraded == ["embedder_unavailable"]


def test_a_learning_is_embedded_published_and_voted_on(
    storage: StorageService, colleague: StorageService, owner: Owner
) -> None:
    team = team_of(owner, replace(owner, agent_id="colleague"))

    learning = storage.publish_learning(LearningDraft(team_id=team.id, insight="Look under the mat."), now=NOW)
    colleague.vote_on_learning(learning.id, helpful=True, now=NOW)

    [hit] = colleague.find_learnings("the mat", team_id=team.id, now=NOW).hits
    assert (hit.id, hit.helpful_count, hit.similarity is not None) == (learning.id, 1, True)


def test_a_pool_is_made_written_merged_and_read(storage: StorageService, colleague: StorageService) -> None:
    storage.create_pool(PoolDraft(pool_id="plan", data={"a": 1}), now=NOW)
    storage.write_pool("plan", {"deep": [1]}, path="/b", now=NOW)
    storage.merge_pool("plan", {"b": {"more": None}}, expected=frozenset({2}), now=NOW)

    assert colleague.read_pool("plan", now=NOW).data == {"a": 1, "b": {"deep": [1], "more": None}}
    assert colleague.read_pool("plan", path="/b/deep/0", now=NOW).data == 1
