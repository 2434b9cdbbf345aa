"""A picture of what is near an entity: those that it is linked to on circles around it, by how many links away.

Drawn here as numbers and texts; the template (`entity/neighbourhood.svg`) makes SVG of them and escapes all of it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import atan2, cos, hypot, pi, sin
from uuid import UUID

from django.urls import reverse

from memory.admin.text import shorten

WIDTH, HEIGHT = 1120, 760
CENTER = (WIDTH / 2, HEIGHT / 2 - 6)
RINGS = ((0.0, 0.0), (245.0, 165.0), (455.0, 305.0))
"""Half axes of the ellipse of each depth; what is further away than the last is drawn on it."""

MOST_NODES = 40
MOST_EDGES = 120
MOST_EDGE_LABELS = 24
"""Beyond so many edges only those at the middle say their type; all of them say it when they are pointed at."""

NODE_RADIUS = 9.0
SQUARE_SIDE = 15.0
UNLABELLED = frozenset({"ABOUT"})
"""Types that need not be said of each edge: only facts are about something."""

LABEL_CHARACTERS = 18
PAGES = {"entity": "admin:memory_entity_change", "fact": "admin:memory_fact_change"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A memory near the one in the middle: `depth` links away from it. `sort` says what it is ("person", "fact")."""

    id: UUID
    kind: str
    sort: str
    text: str
    depth: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    source_id: UUID
    target_id: UUID
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A node with its place: `label` below it, `title` in full."""

    id: UUID
    kind: str
    depth: int
    x: float
    y: float
    label: str
    title: str
    url: str

    @property
    def label_y(self) -> float:
        return round(self.y + NODE_RADIUS + 13, 1)

    @property
    def left(self) -> float:
        return round(self.x - SQUARE_SIDE / 2, 1)

    @property
    def top(self) -> float:
        return round(self.y - SQUARE_SIDE / 2, 1)

    @property
    def side(self) -> float:
        return SQUARE_SIDE


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """From one node's rim to the other's. `label` may be empty; `title` says the types and both ends."""

    x1: float
    y1: float
    x2: float
    y2: float
    label: str
    label_x: float
    label_y: float
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """`is_cut`: there is more near it than is drawn. `told` describes it to who does not see it."""

    spots: Sequence[Spot]
    lines: Sequence[Line]
    title: str
    told: str
    is_cut: bool
    width: int = WIDTH
    height: int = HEIGHT
    radius: float = NODE_RADIUS


def draw(nodes: Sequence[Node], edges: Sequence[Edge], *, is_cut: bool = False) -> Drawing:
    """The first node is the one in the middle; of the others, and of the edges, no more than a picture holds."""
    kept = nodes[:MOST_NODES]
    angles = place_around(kept, edges)
    # as they stand beside each other
    places = {node_id: place for place, node_id in enumerate(angles)}
    spots = {node.id: make_spot(node, angles[node.id], places[node.id]) for node in kept}
    found = dict.fromkeys((edge.source_id, edge.target_id, edge.type) for edge in edges)
    inside = [edge for edge in found if edge[0] in spots and edge[1] in spots]
    lines = list(make_lines(inside[:MOST_EDGES], spots, middle=kept[0].id))
    return Drawing(
        spots=list(spots.values()),
        lines=lines,
        title=f"What is near {shorten(kept[0].text)}",
        told=tell_drawing(kept, inside[:MOST_EDGES]),
        is_cut=is_cut or len(kept) < len(nodes) or len(inside) > MOST_EDGES,
    )


def tell_drawing(nodes: Sequence[Node], edges: Sequence[tuple[UUID, UUID, str]]) -> str:
    """How much there is, and what the middle is linked to: the picture in a paragraph."""
    names = {node.id: shorten(node.text, characters=60) for node in nodes}
    middle = nodes[0].id
    near = [f"{names[a]} {type_} {names[b]}" for a, b, type_ in edges if middle in (a, b)]
    counted = f"{len(nodes) - 1} memories near it, {len(edges)} links between them."
    return f"{counted} {'; '.join(shorten(told, characters=200) for told in near)}".strip()


def ring_of(node: Node) -> int:
    return min(node.depth, len(RINGS) - 1)


def place_around(nodes: Sequence[Node], edges: Sequence[Edge]) -> dict[UUID, float]:
    """The angles of nodes, in their order: even on each circle, near to those that they are linked to further in."""
    angles: dict[UUID, float] = {}
    near = neighbours(edges)
    for ring in range(len(RINGS)):
        members = [node for node in nodes if ring_of(node) == ring]
        wished = {node.id: wished_angle(node.id, angles, near, default=2 * pi * place / max(1, len(members)))
                  for place, node in enumerate(members)}  # fmt: skip
        ordered = sorted(members, key=lambda node: wished[node.id])
        slots = [2 * pi * place / max(1, len(ordered)) - pi / 2 for place in range(len(ordered))]
        turn = (
            mean_angle([wished[node.id] - slot for node, slot in zip(ordered, slots, strict=True)]) if ring > 1 else 0
        )
        angles |= {node.id: slot + turn for node, slot in zip(ordered, slots, strict=True)}
    return angles


def neighbours(edges: Sequence[Edge]) -> dict[UUID, list[UUID]]:
    found: dict[UUID, list[UUID]] = {}
    for edge in edges:
        found.setdefault(edge.source_id, []).append(edge.target_id)
        found.setdefault(edge.target_id, []).append(edge.source_id)
    return found


def wished_angle(
    node_id: UUID, angles: Mapping[UUID, float], near: Mapping[UUID, Sequence[UUID]], *, default: float
) -> float:
    """Where those stand that it is linked to and that have a place; the default where there are none."""
    placed = [angles[other] for other in near.get(node_id, ()) if other in angles]
    return mean_angle(placed) % (2 * pi) if placed and len(angles) > 1 else default


def mean_angle(angles: Sequence[float]) -> float:
    """Of directions, by their vectors' sum."""
    return atan2(sum(map(sin, angles)), sum(map(cos, angles))) if angles else 0.0


def make_spot(node: Node, angle: float, place: int) -> Spot:
    across, down = RINGS[ring_of(node)]
    # every other one stands further in, so that their names have room
    stretch = 1.0 if place % 2 else 0.86
    return Spot(
        id=node.id,
        kind=node.kind,
        depth=node.depth,
        x=round(CENTER[0] + across * stretch * cos(angle), 1),
        y=round(CENTER[1] + down * stretch * sin(angle), 1),
        label=shorten(node.text, characters=LABEL_CHARACTERS),
        title=f"{shorten(node.text)} ({shorten(node.sort, characters=50)})",
        url=reverse(PAGES.get(node.kind, "admin:memory_memory_change"), args=[node.id]),
    )


def make_lines(edges: Sequence[tuple[UUID, UUID, str]], spots: Mapping[UUID, Spot], *, middle: UUID) -> Iterator[Line]:
    """One a pair and direction, with all its types; two directions bow to no side, and share their line."""
    types: dict[tuple[UUID, UUID], list[str]] = {}
    for source_id, target_id, type_ in edges:
        types.setdefault((source_id, target_id), []).append(shorten(type_, characters=50))
    for (source_id, target_id), named in types.items():
        line = join(spots[source_id], spots[target_id], ", ".join(named))
        is_labelled = len(types) <= MOST_EDGE_LABELS or middle in (source_id, target_id)
        yield line if is_labelled and not UNLABELLED.issuperset(named) else replace(line, label="")


def join(source: Spot, target: Spot, label: str) -> Line:
    across, down = target.x - source.x, target.y - source.y
    length = max(1.0, hypot(across, down))
    dx, dy = across / length * NODE_RADIUS, down / length * NODE_RADIUS
    return Line(
        x1=round(source.x + dx, 1),
        y1=round(source.y + dy, 1),
        x2=round(target.x - dx * 1.4, 1),
        y2=round(target.y - dy * 1.4, 1),
        label=label,
        # nearer to where it points, so that the types of two directions do not stand on each other
        label_x=round(source.x + across * 0.6, 1),
        label_y=round(source.y + down * 0.6, 1),
        title=f"{source.label} {label} {target.label}",
    )
