"""The context of a session has no episodes if none is likely enough to help."""

import pytest

from memory.owner import Owner
from memory.services.embedding.embed import embed_texts
from memory.services.sessions import HybridMemory, MemoryManager
from memory.services.summaries.store import EpisodeDraft, store_episodes
from tests.memory.episodes import NOW

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "two_topics")]

FOREIGN = "Did Priya paint the roof?"
SUMMARY = "They repaired the boiler."


@pytest.fixture
def memory(owner: Owner) -> HybridMemory:
    return MemoryManager(owner).get_memory("c1", now=NOW)


def test_a_foreign_question_gets_no_episode(owner: Owner, memory: HybridMemory) -> None:
    drafts = [EpisodeDraft(conversation_id="before", summary=SUMMARY)]
    store_episodes(owner, drafts=drafts, embedded=embed_texts([SUMMARY]), now=NOW)

    answered, foreign = (memory.get_context(query, now=NOW) for query in ("the boiler?", FOREIGN))

    assert (answered.abstained, [hit.summary for hit in answered.items]) == (False, [SUMMARY])
    assert (foreign.abstained, list(foreign.items), foreign.context) == (True, [], "")


def test_a_session_without_episodes_has_not_abstained(memory: HybridMemory) -> None:
    assert not memory.get_context(FOREIGN, now=NOW).abstained
