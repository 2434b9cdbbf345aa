"""Links among the best candidates, named entities and open goals."""

from uuid import uuid4

import pytest
from pytest_django import DjangoAssertNumQueries

from memory.models import Account
from memory.owner import Owner
from memory.retrieval import lookups
from memory.retrieval.lookups import read_links_between
from memory.retrieval.plans import LinkBetween
from tests.memory.graphs import link, node

pytestmark = pytest.mark.django_db


def test_links_among_the_given_are_read_and_no_others(
    owner: Owner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    a, b, c = (node(owner, text) for text in "abc")
    link(b, a, "ABOUT", 0.5)
    link(b, c)

    with django_assert_num_queries(1):
        links = read_links_between(owner, [a.id, b.id, uuid4()])

    assert links == [LinkBetween(source=b.id, target=a.id, type="ABOUT", weight=0.5)]


def test_the_heaviest_links_come_first(owner: Owner) -> None:
    a, b, c = (node(owner, text) for text in "abc")
    for source, target, weight in ((a, b, 0.2), (b, c, 0.9), (c, a, 0.5)):
        link(source, target, weight=weight)

    assert [each.weight for each in read_links_between(owner, [a.id, b.id, c.id])] == [0.9, 0.5, 0.2]


def test_the_number_of_links_is_bounded(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookups, "MAX_LINKS", 1)
    a, b = node(owner, "a"), node(owner, "b")
    link(a, b, "KNOWS", 0.2)
    link(a, b, "PART_OF", 0.9)

    assert [each.type for each in read_links_between(owner, [a.id, b.id])] == ["PART_OF"]


def test_fewer_than_two_memories_take_no_statement(
    owner: Owner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(0):
        assert read_links_between(owner, []) == read_links_between(owner, [uuid4()]) == []


def test_links_of_another_account_are_not_read(owner: Owner, stranger: Account) -> None:
    theirs = Owner(account_id=stranger.id)
    a, b = node(theirs, "a"), node(theirs, "b")
    link(a, b)

    assert read_links_between(owner, [a.id, b.id]) == []
