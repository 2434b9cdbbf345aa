"""Search in strategies: near ones that work come before nearer ones that do not; with tenant isolation."""

from dataclasses import replace
from math import cos

import pytest
from pytest_django import DjangoAssertNumQueries

from memory.models import Account, Strategy
from memory.owner import Owner
from memory.retrieval.kind_searches import search_strategies
from memory.scoring import success_rate
from tests.memory.episodes import NOW, query
from tests.memory.procedures import learn

pytestmark = pytest.mark.django_db


def plan(owner: Owner, description: str, *, successes: int = 0, failures: int = 0, **fields: object) -> None:
    learned = learn(owner, description, **fields)
    Strategy.objects.filter(pk=learned.pk).update(success_count=successes, failure_count=failures)


def found(owner: Owner, *, types: tuple[str, ...] = (), **asked: object) -> list[str]:
    hits = search_strategies(owner, replace(query(**asked), types=types), now=NOW).hits  # type: ignore[arg-type]
    return [hit.description for hit in hits]


@pytest.mark.parametrize(
    ("near", "far", "first"),
    [
        # cos 0.1 = 0.995, cos 0.8 = 0.697; rates: untried 0.5, 9 of 10 0.833, 3 of 10 0.333
        ((0, 0), (0, 0), "near"),
        ((0, 0), (9, 1), "far"),
        ((3, 7), (0, 0), "far"),
        ((9, 1), (9, 1), "near"),
        ((9, 1), (90, 0), "near"),
    ],
)
def test_similarity_and_success_both_determine_the_order(
    owner: Owner, near: tuple[int, int], far: tuple[int, int], first: str
) -> None:
    plan(owner, "near", angle=0.1, successes=near[0], failures=near[1])
    plan(owner, "far", angle=0.8, successes=far[0], failures=far[1])

    assert found(owner)[0] == first
    assert found(owner, top_k=1) == [first]


def test_a_hit_has_the_score_it_was_ranked_by(owner: Owner) -> None:
    plan(owner, "near", angle=0.1, successes=9, failures=1, tool_sequence=["search"], task_type="look up")

    [hit] = search_strategies(owner, query(), now=NOW).hits

    assert hit.similarity == pytest.approx(cos(0.1), abs=1e-3)
    assert hit.success_rate == success_rate(9, 1)
    assert hit.score == pytest.approx(cos(0.1) * success_rate(9, 1), abs=1e-3)
    assert (hit.tool_sequence, hit.task_type, hit.item_key) == (["search"], "look up", f"strategy:{hit.id}")


def test_failures_do_not_improve_the_rank_of_an_opposite_strategy(owner: Owner) -> None:
    plan(owner, "fails", angle=2.0, failures=50)
    plan(owner, "works", angle=1.9, successes=50)

    assert found(owner) == ["works", "fails"]


def test_a_search_by_words_weighs_the_rank_by_the_success(owner: Owner) -> None:
    plan(owner, "look under the mat", failures=8)
    plan(owner, "sit on the mat", successes=8)
    plan(owner, "nothing of that kind")

    result = search_strategies(owner, query("look under the mat", angle=None), now=NOW)

    # first by words, 1 x 0.1; second, 1/2 x 0.9
    assert [hit.description for hit in result.hits] == ["sit on the mat", "look under the mat"]
    assert [hit.score for hit in result.hits] == pytest.approx([0.45, 0.1])
    assert [hit.similarity for hit in result.hits] == [None, None]
    assert list(result.degraded) == ["embedder_unavailable", "embedding_pending"]


def test_a_search_may_be_limited_to_one_type_of_task(owner: Owner) -> None:
    plan(owner, "typed", angle=0.9, task_type="look up")
    plan(owner, "other", angle=0.1, task_type="write")

    assert found(owner, types=("look up",)) == ["typed"]
    assert found(owner, types=("none",)) == []


def test_a_user_finds_its_own_strategies_and_the_agents_those_of_no_user(owner: Owner, stranger: Account) -> None:
    for user_id in ("", "ana", "ben"):
        plan(replace(owner, user_id=user_id), f"of {user_id or 'nobody'}", angle=0.1)

    colleague = replace(owner, agent_id="colleague")
    assert sorted(found(replace(owner, user_id="ana"))) == ["of ana", "of nobody"]
    assert found(replace(colleague, user_id="ana")) == ["of ana"]
    assert found(colleague) == found(Owner(account_id=stranger.id)) == []


def test_the_channel_and_the_global_one_are_searched(owner: Owner) -> None:
    for channel in ("_global", "web", "shop"):
        plan(replace(owner, channel=channel), channel, angle=0.1)

    assert sorted(found(replace(owner, channel="web"))) == ["_global", "web"]


def test_a_search_is_one_statement(owner: Owner, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    plan(owner, "near", angle=0.1)

    with django_assert_num_queries(1):
        found(owner)
