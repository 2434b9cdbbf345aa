"""Pictures of the neighbourhood of an entity: bounded, laid out, and harmless with any names."""

import math
from itertools import combinations
from uuid import UUID
from xml.etree import ElementTree

import pytest
from django.template.loader import render_to_string

from memory.admin.graph_layout import text_width
from memory.admin.neighbourhoods import HEIGHT, MARGIN, MAX_EDGES, MAX_NODES, WIDTH, Edge, Node, render_neighbourhood
from tests.memory.admin.chats import HOSTILE

SVG = "{http://www.w3.org/2000/svg}"


def node(number: int, *, depth: int = 1, kind: str = "entity", text: str = "") -> Node:
    return Node(id=UUID(int=number), kind=kind, type="person", text=text or f"node {number}", depth=depth)


def edge(source: int, target: int, type: str = "KNOWS") -> Edge:  # noqa: A002
    return Edge(source_id=UUID(int=source), target_id=UUID(int=target), type=type)


def star(count: int) -> tuple[list[Node], list[Edge]]:
    """Return a node in the middle with `count` nodes around it."""
    return [node(0, depth=0), *map(node, range(1, count + 1))], [edge(0, number) for number in range(1, count + 1)]


def render(nodes: list[Node], edges: list[Edge]) -> ElementTree.Element:
    """Parsed as XML, which would refuse what is not escaped."""
    text = render_to_string("admin/memory/entity/neighbourhood.svg", {"drawing": render_neighbourhood(nodes, edges)})
    return ElementTree.fromstring(text.strip())


@pytest.mark.parametrize("count", [0, 1, 2, 9, 39])
def test_the_picture_is_no_larger_than_its_nodes_and_their_names(count: int) -> None:
    drawing = render_neighbourhood(*star(count))

    halves = [text_width(mark.label) / 2 for mark in drawing.nodes]
    left = min(mark.x - half for mark, half in zip(drawing.nodes, halves, strict=True))
    right = max(mark.x + half for mark, half in zip(drawing.nodes, halves, strict=True))
    assert 0 <= left - drawing.left <= MARGIN + 1
    assert 0 <= drawing.left + drawing.width - right <= MARGIN + 1


@pytest.mark.parametrize("count", [0, 1, 2, 9, 10, 25, 39])
def test_nodes_are_placed_apart_and_within_the_picture(count: int) -> None:
    nodes, edges = star(count)

    marks = render_neighbourhood(nodes, edges).nodes

    assert all(10 <= mark.x <= WIDTH - 10 and 10 <= mark.label_y <= HEIGHT - 5 for mark in marks)
    assert all(math.dist((a.x, a.y), (b.x, b.y)) > 20 for a, b in combinations(marks, 2))


def test_nodes_further_away_in_the_graph_are_drawn_further_out() -> None:
    nodes = [node(0, depth=0), node(1), node(2, depth=2), node(3, depth=3)]

    marks = render_neighbourhood(nodes, [edge(0, 1), edge(1, 2), edge(2, 3)]).nodes

    distances = [math.dist((mark.x, mark.y), (marks[0].x, marks[0].y)) for mark in marks]
    assert distances[0] < distances[1] < min(distances[2:])


def test_nodes_are_placed_near_the_nodes_they_are_linked_to() -> None:
    nodes = [node(0, depth=0), *(node(number) for number in range(1, 5)), *(node(n, depth=2) for n in range(5, 9))]
    edges = [edge(0, number) for number in range(1, 5)] + [edge(number, number + 4) for number in (3, 1, 4, 2)]

    marks = {mark.id.int: mark for mark in render_neighbourhood(nodes, edges).nodes}

    for number in range(1, 5):
        inner, outer = (math.atan2(marks[n].y - marks[0].y, marks[n].x - marks[0].x) for n in (number, number + 4))
        assert math.cos(inner - outer) > 0.7


def test_a_picture_of_too_many_nodes_is_cut_and_says_so() -> None:
    nodes, edges = star(100)

    drawing = render_neighbourhood(nodes, edges)

    assert (len(drawing.nodes), drawing.is_cut) == (MAX_NODES, True)
    assert len(drawing.lines) <= MAX_EDGES


def test_links_of_a_pair_share_a_line_and_links_to_undrawn_nodes_are_left_out() -> None:
    drawing = render_neighbourhood(
        [node(0, depth=0), node(1)], [edge(0, 1), edge(0, 1, "WORKS_FOR"), edge(1, 0), edge(1, 7)]
    )

    assert [line.label for line in drawing.lines] == ["KNOWS, WORKS_FOR", "KNOWS"]


def test_a_picture_has_a_title_and_a_description_for_screen_readers() -> None:
    svg = render([node(0, depth=0, text="Ana"), node(1, text="Ben")], [edge(0, 1)])

    descriptions = {part.get("id"): part.text for part in svg if part.tag in (f"{SVG}title", f"{SVG}desc")}
    assert list(descriptions.values()) == [
        "Links around Ana",
        "Memories nearby: 1. Links between them: 1. Ana KNOWS Ben",
    ]
    assert svg.get("aria-labelledby") == " ".join(map(str, descriptions))


def test_every_node_leads_to_its_page() -> None:
    svg = render([node(0, depth=0), node(1, kind="fact"), node(2, kind="goal")], [edge(0, 1), edge(0, 2)])

    urls = [link.get("href", "").split("/")[3] for link in svg.iter(f"{SVG}a")]
    assert urls == ["entity", "fact", "goal"]


def test_hostile_names_are_drawn_as_text() -> None:
    nodes = [node(0, depth=0, text=HOSTILE), node(1, text='"/><a href="javascript:x">')]

    svg = render(nodes, [edge(0, 1, "</text><script>")])

    assert not list(svg.iter(f"{SVG}script"))
    assert all(link.get("href", "").startswith("/admin/") for link in svg.iter(f"{SVG}a"))
    assert "⟦U+202E⟧" in "".join(svg.itertext())
