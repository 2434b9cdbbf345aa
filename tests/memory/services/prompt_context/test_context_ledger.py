"""Tests for contexts and the ledger (B2): nothing is injected twice, also in simultaneous calls."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from werkzeug import Response

from ledger import store as ledger
from memory.owner import Owner
from memory.services.prompt_context.build import PromptContext, build_prompt_context, render_and_mark
from memory.services.prompt_context.layout import ContextLimits, ContextMaterial, render_context
from memory.services.prompt_context.layout import EvidenceCosts as Costs
from memory.services.prompt_context.quoting import clean_line
from memory.tokens import estimate_tokens
from memory_project.redis import ConversationRef
from tests.concurrency import PATIENCE_SECONDS
from tests.embedding_server import EmbeddingServer
from tests.memory.context import request_for
from tests.memory.episodes import NOW
from tests.memory.turns import say, turn

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("empty_redis", "embedding_server", "talks"),
]

TALKS = 24


@pytest.fixture
def talks(owner: Owner) -> None:
    """Store conversations of three turns, the middle one of which is found by words."""
    for number in range(TALKS):
        drafts = [turn(text) for text in (f"before {number}", f"boiler {number}", f"after {number}")]
        say(owner, *drafts, conversation_id=f"talk-{number}")


@pytest.fixture
def conversation(owner: Owner) -> ConversationRef:
    return ConversationRef(account_id=owner.account_id, conversation_id="c1")


def build_marked_context(owner: Owner, **asked: Any) -> PromptContext:
    fields: dict[str, Any] = {"query": "boiler", "suppress": True, "mark": True}
    return build_prompt_context(owner, request_for(**fields | asked), now=NOW)


def item_keys(context: PromptContext) -> list[str]:
    return [item.item_key for item in context.items]


def test_all_items_and_only_they_are_marked(owner: Owner, conversation: ConversationRef) -> None:
    context = build_marked_context(owner, top_k=2)

    assert len(context.items) == 6
    assert sorted(ledger.get_all(conversation)) == sorted(item_keys(context))


def test_memories_without_room_are_not_marked(owner: Owner, conversation: ConversationRef) -> None:
    context = build_marked_context(owner, max_tokens=100)

    assert 0 < len(context.items) < 10
    assert sorted(ledger.get_all(conversation)) == sorted(item_keys(context))


def test_injected_memories_are_replaced_by_other_results(owner: Owner) -> None:
    shown = [item_keys(build_marked_context(owner, top_k=8)) for _ in range(4)]

    assert [len(each) for each in shown] == [24, 24, 24, 0]
    assert len({key for each in shown for key in each}) == 3 * TALKS


def test_a_context_says_that_the_ledger_holds_all_that_would_answer(owner: Owner) -> None:
    first, again = (build_marked_context(owner, top_k=TALKS) for _ in range(2))
    foreign = build_marked_context(owner, query="zeppelin", top_k=TALKS)

    assert ["all_suppressed" in each.degraded for each in (first, again, foreign)] == [False, True, False]
    assert (again.items, again.abstained) == ([], False)


def test_injected_memories_are_shown_again_without_suppression(owner: Owner) -> None:
    first = build_marked_context(owner, suppress=False, top_k=3)

    assert item_keys(build_marked_context(owner, suppress=False, top_k=3)) == item_keys(first)


@pytest.fixture
def material(owner: Owner) -> ContextMaterial:
    """Return the material of a context: four turns with their neighbours."""
    items = build_prompt_context(owner, request_for(query="boiler", top_k=4), now=NOW).items
    recalled, neighbours = ([item for item in items if bool(item.ways) == found] for found in (True, False))
    return ContextMaterial(fields={}, episodes=(), evidence=recalled, neighbours=neighbours)


def test_memories_marked_by_others_meanwhile_are_left_out(
    owner: Owner, conversation: ConversationRef, material: ContextMaterial
) -> None:
    theirs = {note.item_key for note in (material.evidence[1], *material.neighbours[:2])}
    ledger.mark_many(conversation, dict.fromkeys(theirs, "theirs"))

    rendered = render_and_mark(owner, material, request_for(query="boiler", suppress=True, mark=True))

    mine = {key for key, value in ledger.get_all(conversation).items() if value == "injected"}
    assert {item.item_key for item in rendered.items} == mine
    assert len(mine) == 12 - len(theirs)


def test_memories_marked_by_others_meanwhile_make_room_for_other_ones(
    owner: Owner, conversation: ConversationRef, material: ContextMaterial
) -> None:
    request = request_for(query="boiler", suppress=True, mark=True, max_tokens=100)
    first = render_context(material, ContextLimits(max_tokens=100, costs=Costs(count=estimate_tokens)))
    ledger.mark_many(conversation, dict.fromkeys([item.item_key for item in first.items], "theirs"))

    rendered = render_and_mark(owner, material, request)

    assert rendered.items
    assert not {item.item_key for item in rendered.items} & {item.item_key for item in first.items}


def test_the_same_sentence_of_another_conversation_is_not_injected_again(
    owner: Owner, conversation: ConversationRef
) -> None:
    for conversation_id in ("one", "another"):
        say(owner, turn("The cellar is damp."), conversation_id=conversation_id)

    first, second = (build_marked_context(owner, query="cellar damp") for _ in range(2))

    assert [item.text for item in first.items if "cellar" in item.text] == ["The cellar is damp."]
    assert not [item for item in second.items if "cellar" in item.text]
    assert {f"turn:{each}" for item in first.items for each in item.also} < set(ledger.get_all(conversation))


def test_a_duplicate_marked_by_others_meanwhile_is_left_out_and_stays_marked(
    owner: Owner, conversation: ConversationRef, material: ContextMaterial
) -> None:
    best = material.evidence[0]
    best.also.append(uuid4())
    theirs = f"turn:{best.also[0]}"
    ledger.mark(conversation, theirs, "theirs")

    rendered = render_and_mark(owner, material, request_for(query="boiler", suppress=True, mark=True))

    assert best not in rendered.items
    assert {theirs, best.item_key} <= set(ledger.get_all(conversation))


def test_memories_marked_by_others_are_replaced_from_the_reserve(
    owner: Owner, conversation: ConversationRef, material: ContextMaterial
) -> None:
    whole = replace(material, evidence=material.evidence[:1], neighbours=[], reserve=material.evidence[1:])
    ledger.mark_many(conversation, dict.fromkeys([note.item_key for note in material.evidence[:2]], "theirs"))

    rendered = render_and_mark(owner, whole, request_for(query="boiler", suppress=True, mark=True))

    assert rendered.items == material.evidence[2:3]


def test_a_context_is_empty_and_taken_if_others_marked_everything(
    owner: Owner, conversation: ConversationRef, material: ContextMaterial
) -> None:
    ledger.mark_many(conversation, dict.fromkeys([note.item_key for note in material.all_shown()], "theirs"))

    rendered = render_and_mark(owner, material, request_for(query="boiler", suppress=True, mark=True))

    assert (rendered.items, rendered.is_taken) == ([], True)


def test_a_context_is_recalled_once_more_if_others_marked_everything(
    owner: Owner, conversation: ConversationRef, embedding_server: EmbeddingServer
) -> None:
    say(owner, *(turn(f"the cellar of house {number}") for number in range(130)), conversation_id="houses")
    bundle = build_prompt_context(owner, request_for(query="cellar", top_k=1), now=NOW).bundle
    theirs = dict.fromkeys([note.item_key for note in (*bundle.results, *bundle.others)], "theirs")

    def mark_meanwhile(texts: list[str]) -> Response:
        ledger.mark_many(conversation, theirs)
        return embedding_server.answer_well(texts)

    embedding_server.answer = mark_meanwhile
    context = build_marked_context(owner, query="the cellar", top_k=1)

    assert len(theirs) < 130
    assert context.items
    assert not theirs.keys() & set(item_keys(context))


def build_simultaneously(owner: Owner, *questions: dict[str, Any]) -> list[PromptContext]:
    together = Barrier(len(questions))

    def ask(question: dict[str, Any]) -> PromptContext:
        together.wait(PATIENCE_SECONDS)
        try:
            return build_marked_context(owner, **question)
        finally:
            connection.close()

    with ThreadPoolExecutor(len(questions)) as agents:
        return list(agents.map(ask, questions))


def test_eight_simultaneous_calls_share_no_memory(owner: Owner, conversation: ConversationRef) -> None:
    questions = [{"top_k": 5, "max_tokens": (200, 400, 4_000)[number % 3]} for number in range(8)]

    contexts = build_simultaneously(owner, *questions)

    delivered = Counter(key for context in contexts for key in item_keys(context))
    assert set(delivered.values()) == {1}
    assert set(delivered) == set(ledger.get_all(conversation))
    for context in contexts:
        assert all(clean_line(item.text) in context.context for item in context.items)


@pytest.mark.slow
@pytest.mark.parametrize("max_tokens", [100, 4_000], ids=["little room", "room for all"])
def test_six_simultaneous_calls_all_get_memories_while_there_are_enough(owner: Owner, max_tokens: int) -> None:
    say(owner, *(turn(f"the cellar of house {number}") for number in range(40)), conversation_id="houses")

    contexts = build_simultaneously(owner, *[{"query": "cellar", "top_k": 2, "max_tokens": max_tokens}] * 6)

    delivered = [key for context in contexts for key in item_keys(context)]
    assert len(delivered) == len(set(delivered))
    assert all(context.items for context in contexts)
