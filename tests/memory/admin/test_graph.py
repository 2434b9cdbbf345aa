"""The graph around a memory: bounded, filtered, expanded in place, and legible, as the boxes of its labels show."""

from datetime import UTC, datetime, timedelta
from itertools import combinations, pairwise
from typing import Any
from xml.etree import ElementTree

import pytest
from django.contrib.auth.models import User
from django.test import Client

from memory.admin import graph_pages
from memory.admin.graph_layout import lay_out_graph, node_box
from memory.models import Account, Link, Memory, StaffLimit
from memory.owner import Owner
from tests.memory.admin.chats import HOSTILE, allow
from tests.memory.admin.pages import page_url, queries_of, shown
from tests.memory.admin.test_lists import INLINE
from tests.memory.entities import entities_of
from tests.memory.episodes import draft, store
from tests.memory.facts import know

SVG = "{http://www.w3.org/2000/svg}"
LONG = "mmmmmmmmmmmmmmmmmm…"
"""The longest label."""


def star(count: int) -> list[tuple[int, int]]:
    return [(0, place) for place in range(1, count)]


def tree(count: int) -> list[tuple[int, int]]:
    return [((place - 1) // 3, place) for place in range(1, count)]


def everything(count: int) -> list[tuple[int, int]]:
    return list(combinations(range(count), 2))[:2_000]


def chain(account: Account, *memories: Any, type: str = "KNOWS") -> None:  # noqa: A002
    for source, target in pairwise(memories):
        Link.objects.create(account=account, source_id=source.pk, target_id=target.pk, type=type)


def labels(response: Any) -> set[str]:
    return {node.label for node in response.context["picture"].nodes}


@pytest.fixture
def line(account: Account, owner: Owner) -> list[Any]:
    """Five facts, each linked to the next one."""
    facts = [know(owner, f"fact {number}") for number in range(5)]
    chain(account, *facts)
    return facts


def test_the_strongest_links_are_read_whichever_end_a_memory_is(
    account: Account, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph_pages, "MAX_LINKS_PER_STEP", 3)
    hub, *others = (know(owner, f"fact {number}") for number in range(7))
    for place, other in enumerate(others):
        ends = {"source": hub, "target": other} if place % 2 else {"source": other, "target": hub}
        ids = {f"{end}_id": row.pk for end, row in ends.items()}
        Link.objects.create(account=account, type="KNOWS", weight=place / 10, **ids)

    read = graph_pages.read_links(account.pk, [hub.pk], "")

    assert [link.weight for link in read] == [0.5, 0.4, 0.3]


@pytest.mark.parametrize("edges", [star, tree, everything])
@pytest.mark.parametrize("count", [1, 2, 10, 60, 150])
def test_no_labels_overlap(count: int, edges: Any) -> None:
    names = [LONG if place % 2 else f"n{place}" for place in range(count)]
    depths = [0, *(1 + place % 3 for place in range(count - 1))]

    layout = lay_out_graph(names, depths, edges(count))

    boxes = [node_box(x, y, name) for (x, y), name in zip(layout.points, names, strict=True)]
    assert [pair for pair in combinations(boxes, 2) if pair[0].overlaps(pair[1])] == []
    for box in boxes:
        assert box.left >= 0 <= box.top
        assert box.left + box.width <= layout.width
        assert box.top + box.height <= layout.height


def test_the_same_graph_gets_the_same_picture_of_a_reasonable_size() -> None:
    layouts = [lay_out_graph([LONG] * 150, [0, *[1] * 30, *[2] * 119], tree(150)) for _ in range(2)]

    assert layouts[0] == layouts[1]
    assert layouts[0].width < 4_000
    assert layouts[0].height < 3_000


def test_linked_nodes_are_nearer_to_each_other_than_others() -> None:
    points = lay_out_graph(["n"] * 6, [0, 1, 1, 2, 2, 2], [(0, 1), (0, 2), (1, 3), (1, 4), (2, 5)]).points

    def distance(a: int, b: int) -> float:
        return float(((points[a][0] - points[b][0]) ** 2 + (points[a][1] - points[b][1]) ** 2) ** 0.5)

    assert distance(1, 3) < distance(1, 5)
    assert distance(2, 5) < distance(2, 3)


@pytest.mark.django_db
@pytest.mark.parametrize(("depth", "reached"), [(1, 2), (2, 3), (3, 4), ("x", 2), (9, 2)])
def test_the_depth_says_how_far_the_graph_reaches(staff: Client, line: list[Any], depth: Any, reached: int) -> None:
    page = staff.get(page_url("memory", line[0].pk, "graph"), {"depth": depth})

    assert labels(page) == {f"fact {number}" for number in range(reached)}


@pytest.mark.django_db
def test_a_node_is_expanded_in_place_by_a_link(staff: Client, line: list[Any]) -> None:
    first = staff.get(page_url("memory", line[0].pk, "graph"))
    expand = {node.label: node.expand_url for node in first.context["picture"].nodes}

    second = staff.get(expand["fact 1"])
    assert f"{expand['fact 1']}#node-{line[1].pk}".replace("&", "&amp;") in shown(first)

    assert expand["fact 0"] == ""
    assert labels(second) == {"fact 0", "fact 1", "fact 2"}
    assert labels(staff.get(second.context["collapse_url"])) == {"fact 0", "fact 1"}


@pytest.mark.django_db
def test_types_and_times_filter(staff: Client, account: Account, owner: Owner, line: list[Any]) -> None:
    other, old = know(owner, "another"), know(owner, "old")
    chain(account, line[0], other, type="MENTIONS")
    chain(account, line[0], old)
    Memory.objects.filter(pk=old.pk).update(event_time=datetime.now(UTC) - timedelta(days=900))
    url = page_url("memory", line[0].pk, "graph")

    assert labels(staff.get(url, {"type": "MENTIONS"})) == {"fact 0", "another"}
    assert "old" in labels(staff.get(url, {"until": "2999-01-01"}))
    assert "old" not in labels(staff.get(url, {"since": f"{datetime.now(UTC) - timedelta(days=800):%Y-%m-%d}"}))
    assert labels(staff.get(url, {"until": "1999-01-01"})) == {"fact 0"}


@pytest.mark.django_db
def test_a_large_graph_is_cut_says_so_and_labels_no_edge_over_a_node(
    staff: Client, account: Account, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph_pages, "MAX_NODES", 60)
    rows = store(owner, *[draft(f"a note of the name {number}") for number in range(70)])
    Link.objects.bulk_create(
        Link(account=account, source_id=rows[0].pk, target_id=row.pk, type="KNOWS") for row in rows[1:]
    )

    page = staff.get(page_url("memory", rows[0].pk, "graph"))

    picture = page.context["picture"]
    assert len(picture.nodes) == 60
    assert "There is more than is drawn" in shown(page)
    boxes = [*(node.box for node in picture.nodes), *(edge.box for edge in picture.edges if edge.label)]
    assert len(boxes) > 60
    assert [pair for pair in combinations(boxes, 2) if pair[0].overlaps(pair[1])] == []


@pytest.mark.django_db
def test_the_graph_is_also_a_table(staff: Client, line: list[Any]) -> None:
    page = shown(staff.get(page_url("memory", line[0].pk, "graph")))

    table = page[page.index("As a table") :]
    assert '<th scope="row"><bdi>KNOWS</bdi></th>' in table
    assert f'<a href="{page_url("fact", line[1].pk)}"><bdi>fact 1 (fact)</bdi></a>' in table


@pytest.mark.django_db
def test_hostile_names_are_drawn_as_text(staff: Client, account: Account, owner: Owner) -> None:
    [entity] = entities_of(owner, "Ana")
    fact = know(owner, HOSTILE)
    chain(account, fact, entity, type="<b>")

    page = shown(staff.get(page_url("memory", entity.pk, "graph")))

    picture = ElementTree.fromstring(
        page[page.index("<svg class=") : page.index("</svg>", page.index("<svg class=")) + 6]
    )
    assert not list(picture.iter(f"{SVG}script"))
    assert all(link.get("href", "").startswith("/admin/") for link in picture.iter(f"{SVG}a"))
    assert "<script>alert" not in page
    assert "\u202e" not in page
    assert INLINE.findall(page) == []


@pytest.mark.django_db
def test_texts_that_the_user_may_not_read_are_named_by_their_kind(newcomer: Client, line: list[Any]) -> None:
    url = page_url("memory", line[0].pk, "graph")
    assert newcomer.get(url).status_code == 403
    allow("newcomer", "view_memory")

    assert labels(newcomer.get(url)) == {"a fact"}


@pytest.mark.django_db
def test_memories_of_other_accounts_have_no_graph(newcomer: Client, account: Account, line: list[Any]) -> None:
    allow("newcomer", "view_memory")
    StaffLimit.objects.create(user=User.objects.get(username="newcomer"), account_ids=[])

    assert newcomer.get(page_url("memory", line[0].pk, "graph")).status_code == 404


@pytest.mark.django_db
def test_the_number_of_queries_depends_on_the_depth_alone(
    staff: Client, account: Account, owner: Owner, line: list[Any]
) -> None:
    url = page_url("memory", line[0].pk, "graph") + "?depth=3"
    few = queries_of(staff, url)
    for number in range(9):
        chain(account, line[0], know(owner, f"more {number}"))

    assert queries_of(staff, url) == few <= 16
