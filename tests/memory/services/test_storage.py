"""All storage concerns of one owner, through the class that the documents name."""

from dataclasses import replace

import pytest

from memory.documented.services import StorageService
from memory.owner import Owner
from memory.services.contexts.entries import EntryDraft
from memory.services.learnings import LearningDraft
from memory.services.pools.manage import PoolDraft
from memory.services.summaries.store import EpisodeDraft
from tests.memory.episodes import NOW
from tests.memory.learnings import team_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "embedding_server")]


def test_the_storage_service_stores_and_finds_each_kind_of_memory(owner: Owner) -> None:
    colleague = replace(owner, agent_id="colleague")
    team = team_of(owner, colleague)
    storage, of_colleague = StorageService(owner=owner), StorageService(owner=colleague)

    seen = EpisodeDraft(conversation_id="c1", summary="We looked under the mat.")
    [episode] = storage.store_experience(seen, now=NOW)
    fact = storage.store_fact(EntryDraft(key="key", content="The key is under the mat."), now=NOW)
    learning = storage.publish_learning(LearningDraft(team_id=team.id, insight="Look under the mat."), now=NOW)
    of_colleague.vote_on_learning(learning.id, helpful=True, now=NOW)
    storage.create_pool(PoolDraft(pool_id="plan", data={"a": 1}), now=NOW)
    storage.write_pool("plan", [1], path="/b/deep", now=NOW)
    storage.merge_pool("plan", {"b": {"more": None}}, now=NOW)

    assert [hit.id for hit in storage.recall_experiences("the mat", now=NOW).hits] == [episode.id]
    assert [hit.id for hit in storage.find_facts("the mat", now=NOW).hits] == [fact.id]
    assert [(hit.id, hit.helpful_count) for hit in storage.find_learnings("mat", now=NOW).hits] == [(learning.id, 1)]
    assert of_colleague.read_pool("plan", now=NOW).data == {"a": 1, "b": {"deep": [1], "more": None}}
    # experiences and facts are the agent's own
    assert of_colleague.recall_experiences("the mat", now=NOW).hits == []
    assert of_colleague.find_facts("the mat", now=NOW).hits == []
