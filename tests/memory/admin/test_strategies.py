"""Strategies in the admin: corrected, counted, found by meaning; and their recorded uses."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client

from memory.models import Account, AuditEntry, Strategy, StrategyTool, StrategyUse, Vector
from memory.owner import Owner
from memory.services.embedding.embed import embed_texts
from memory.services.memories.store import ClientVector
from memory.services.strategies.learn import StrategyDraft, learn_strategy
from tests.memory.admin.chats import HOSTILE, allow
from tests.memory.admin.pages import form_values, list_url, page_url, queries_of, shown
from tests.memory.episodes import MODEL, NOTHING, direction

TEXT = "Read the log before you guess."


def learn(owner: Owner, text: str = TEXT, **fields: Any) -> Strategy:
    own = ClientVector(model=MODEL, vector=direction(0.1))
    draft = StrategyDraft(description=text, own=own, **{"tool_sequence": ["read", "search"], **fields})
    return learn_strategy(owner, draft, embedded=NOTHING, now=datetime.now(UTC))


@pytest.fixture
def strategy(owner: Owner) -> Strategy:
    return learn(owner, success=True)


def save(client: Client, row: Strategy, **edits: Any) -> Any:
    url = page_url("strategy", row.pk)
    return client.post(url, form_values(client.get(url)) | edits, follow=True)


def stored() -> Any:
    return Strategy.objects.get()


def test_a_strategy_is_corrected_and_waits_for_its_new_vector(staff: Client, strategy: Strategy) -> None:
    save(staff, strategy, description="Ask first.", task_type="debugging")

    row = stored()
    assert (row.text, row.description, row.task_type, row.version) == ("Ask first.", "Ask first.", "debugging", 2)
    assert row.embed_after is not None
    assert not Vector.objects.exists()


def test_a_strategy_learned_again_matches_the_corrected_one(staff: Client, owner: Owner, strategy: Strategy) -> None:
    save(staff, strategy, description="Ask first.")

    again = learn(owner, "Ask first!")

    assert again.pk == strategy.pk


def test_a_strategy_is_not_made_the_same_as_another(staff: Client, owner: Owner, strategy: Strategy) -> None:
    learn(owner, "Ask first.")

    response = save(staff, strategy, description="Ask first.")

    assert "An equal strategy exists already" in shown(response)
    assert sorted(Strategy.objects.values_list("description", flat=True)) == ["Ask first.", TEXT]


def test_editing_the_tool_sequence_updates_the_tools_of_a_strategy(staff: Client, strategy: Strategy) -> None:
    save(staff, strategy, tool_sequence="search\nwrite\n")

    assert stored().tool_sequence == ["search", "write"]
    named = StrategyTool.objects.order_by("tool__name").values_list("tool__name", flat=True)
    assert list(named) == ["search", "write"]


def test_uses_are_counted_on_its_page_and_audited(staff: Client, strategy: Strategy) -> None:
    url = page_url("strategy", strategy.pk)

    staff.post(url, {"action": "worked"})
    staff.post(url, {"action": "did_not_work"})

    assert (stored().success_count, stored().failure_count) == (2, 1)
    assert StrategyUse.objects.count() == 3
    entry = AuditEntry.objects.order_by("-id")[0]
    assert (entry.actor, entry.operation) == ("staff:chief", "reinforce")


def test_rate_tools_and_uses_are_shown(staff: Client, strategy: Strategy) -> None:
    page, listed = shown(staff.get(page_url("strategy", strategy.pk))), shown(staff.get(list_url("strategy")))

    assert all("1 worked, 0 did not: 0.67" in text for text in (page, listed))
    assert "read → search" in listed
    assert page_url("tool", StrategyTool.objects.earliest("tool__name").tool_id) in page


def test_strategies_are_found_by_meaning(staff: Client, account: Account, owner: Owner) -> None:
    texts = ["Read the log of the pump before guessing.", "Bake the cake with almonds."]
    for text in texts:
        draft = StrategyDraft(description=text)
        learn_strategy(owner, draft, embedded=embed_texts([text]), now=datetime.now(UTC))

    response = staff.get(list_url("strategy", account=account.id, meaning=texts[0]))

    assert response.context["cl"].result_list[0].text == texts[0]


def test_uses_of_a_strategy_are_found_by_its_id(staff: Client, strategy: Strategy) -> None:
    found = [staff.get(list_url("strategyuse", q=words)).context["cl"].result_count for words in (strategy.pk, "eve")]

    assert found == [1, 0]


def test_a_page_costs_few_queries(staff: Client, strategy: Strategy) -> None:
    assert queries_of(staff, page_url("strategy", strategy.pk)) <= 11


def test_whatever_a_strategy_says_is_shown_as_text(staff: Client, owner: Owner) -> None:
    row = learn(owner, HOSTILE, context_pattern=HOSTILE, tool_sequence=[HOSTILE[:90]], task_type=HOSTILE[:90])

    for url in (list_url("strategy"), page_url("strategy", row.pk)):
        page = shown(staff.get(url))
        assert "<script>alert" not in page
        assert "⟦U+202E⟧" in page


def test_the_view_permission_alone_does_not_allow_counting_uses(newcomer: Client, strategy: Strategy) -> None:
    allow("newcomer", "view_strategy")

    assert newcomer.get(page_url("strategy", strategy.pk)).status_code == 200
    assert newcomer.post(page_url("strategy", strategy.pk), {"action": "worked"}).status_code == 403
    assert stored().success_count == 1


def test_an_unknown_action_is_404(staff: Client, strategy: Strategy) -> None:
    assert staff.post(page_url("strategy", strategy.pk), {"action": "dance"}).status_code == 404
