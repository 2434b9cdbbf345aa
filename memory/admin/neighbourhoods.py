"""A picture of the links around an entity: what is linked to it on ellipses around it, by the number of links between.

This module computes numbers and texts. The template `entity/neighbourhood.svg` makes SVG of them and escapes all of it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import atan2, ceil, cos, floor, hypot, pi, sin
from uuid import UUID

from memory.admin.columns import change_url
from memory.admin.graph_layout import text_width
from memory.admin.text import excerpt_of
from memory.kinds import spec_of

WIDTH, HEIGHT = 1120, 760
CENTER = (WIDTH / 2, HEIGHT / 2 - 6)
RINGS = ((0.0, 0.0), (245.0, 165.0), (455.0, 305.0))
"""Half axes of the ellipse of each depth. What is further away is drawn on the last one."""

MAX_NODES = 40
MAX_EDGES = 120
MAX_EDGE_LABELS = 24
"""If there are more edges, only those at the centre are labelled. All show their type when pointed at."""

NODE_RADIUS = 9.0
SQUARE_SIDE = 15.0
UNLABELLED = frozenset({"ABOUT"})
"""Types that are not labelled, since they are obvious: only facts are about something."""

LABEL_CHARACTERS = 18
MARGIN = 24
"""Room around the nodes and their names, for the names of links."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A memory `depth` links away from the central one. `type` says what it is, such as "person" or "fact"."""

    id: UUID
    kind: str
    type: str
    text: str
    depth: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    source_id: UUID
    target_id: UUID
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeMark:
    """A node with its position: `label` is drawn below it, `title` names it in full."""

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
class EdgeLine:
    """A line from one node's rim to the other's. `label` may be empty; `title` names the types and both ends."""

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
    """A picture ready for its template. `description` replaces it for screen readers. `is_cut` if not all is drawn.

    It shows the part of the plane from `left` and `top` on that has nodes.
    """

    nodes: Sequence[NodeMark]
    lines: Sequence[EdgeLine]
    title: str
    description: str
    is_cut: bool
    left: int
    top: int
    width: int
    height: int
    radius: float = NODE_RADIUS


def render_neighbourhood(nodes: Sequence[Node], edges: Sequence[Edge], *, is_cut: bool = False) -> Drawing:
    """Place the first node at the centre and the others around it, up to MAX_NODES nodes and MAX_EDGES edges."""
    kept = nodes[:MAX_NODES]
    angles = choose_angles(kept, edges)
    # as they stand next to each other
    ranks = {node_id: rank for rank, node_id in enumerate(angles)}
    marks = {node.id: node_mark(node, angles[node.id], ranks[node.id]) for node in kept}
    found = dict.fromkeys((edge.source_id, edge.target_id, edge.type) for edge in edges)
    inside = [edge for edge in found if edge[0] in marks and edge[1] in marks]
    left, top, right, bottom = find_frame(list(marks.values()))
    return Drawing(
        left=left,
        top=top,
        width=right - left,
        height=bottom - top,
        nodes=list(marks.values()),
        lines=list(edge_lines(inside[:MAX_EDGES], marks, centre_id=kept[0].id)),
        title=f"Links around {excerpt_of(kept[0].text)}",
        description=describe_neighbourhood(kept, inside[:MAX_EDGES]),
        is_cut=is_cut or len(kept) < len(nodes) or len(inside) > MAX_EDGES,
    )


def find_frame(marks: Sequence[NodeMark]) -> tuple[int, int, int, int]:
    """Return the left, upper, right and lower edge of what the nodes and their names take."""
    halves = [max(text_width(mark.label) / 2, NODE_RADIUS) for mark in marks]
    left = min(mark.x - half for mark, half in zip(marks, halves, strict=True))
    right = max(mark.x + half for mark, half in zip(marks, halves, strict=True))
    top, bottom = min(mark.y for mark in marks) - NODE_RADIUS, max(mark.label_y for mark in marks)
    return floor(left) - MARGIN, floor(top) - MARGIN, ceil(right) + MARGIN, ceil(bottom) + MARGIN


def describe_neighbourhood(nodes: Sequence[Node], edges: Sequence[tuple[UUID, UUID, str]]) -> str:
    """Describe how much there is, and what the central node is linked to."""
    names = {node.id: excerpt_of(node.text, characters=60) for node in nodes}
    centre_id = nodes[0].id
    near = [f"{names[a]} {type_} {names[b]}" for a, b, type_ in edges if centre_id in (a, b)]
    counts = f"Memories nearby: {len(nodes) - 1}. Links between them: {len(edges)}."
    return f"{counts} {'; '.join(excerpt_of(link, characters=200) for link in near)}".strip()


def ring_of(node: Node) -> int:
    return min(node.depth, len(RINGS) - 1)


def choose_angles(nodes: Sequence[Node], edges: Sequence[Edge]) -> dict[UUID, float]:
    """Return the angle of each node, in drawing order.

    Nodes are spread evenly on each ring, near to those that they are linked to on the inner rings.
    """
    angles: dict[UUID, float] = {}
    linked: dict[UUID, list[UUID]] = {}
    for edge in edges:
        linked.setdefault(edge.source_id, []).append(edge.target_id)
        linked.setdefault(edge.target_id, []).append(edge.source_id)
    for ring in range(len(RINGS)):
        members = [node for node in nodes if ring_of(node) == ring]
        wished: dict[UUID, float] = {}
        for rank, node in enumerate(members):
            placed = [angles[other] for other in linked.get(node.id, ()) if other in angles]
            is_free = not placed or len(angles) <= 1
            wished[node.id] = 2 * pi * rank / len(members) if is_free else mean_angle(placed) % (2 * pi)
        ordered = sorted(members, key=lambda node: wished[node.id])
        slots = [2 * pi * rank / len(ordered) - pi / 2 for rank in range(len(ordered))]
        offsets = [wished[node.id] - slot for node, slot in zip(ordered, slots, strict=True)]
        turn = mean_angle(offsets) if ring > 1 else 0
        angles |= {node.id: slot + turn for node, slot in zip(ordered, slots, strict=True)}
    return angles


def mean_angle(angles: Sequence[float]) -> float:
    """Return the mean direction: the angle of the sum of the unit vectors."""
    return atan2(sum(map(sin, angles)), sum(map(cos, angles))) if angles else 0.0


def node_mark(node: Node, angle: float, rank: int) -> NodeMark:
    across, down = RINGS[ring_of(node)]
    # every other node is moved inwards, so that there is room for the names
    scale = 1.0 if rank % 2 else 0.86
    return NodeMark(
        id=node.id,
        kind=node.kind,
        depth=node.depth,
        x=round(CENTER[0] + across * scale * cos(angle), 1),
        y=round(CENTER[1] + down * scale * sin(angle), 1),
        label=excerpt_of(node.text, characters=LABEL_CHARACTERS),
        title=f"{excerpt_of(node.text)} ({excerpt_of(node.type, characters=50)})",
        url=change_url(spec_of(node.kind).admin_page, node.id),
    )


def edge_lines(
    edges: Sequence[tuple[UUID, UUID, str]], marks: Mapping[UUID, NodeMark], *, centre_id: UUID
) -> Iterator[EdgeLine]:
    """Yield one line per pair and direction, with all its types. Lines of opposite directions coincide."""
    types: dict[tuple[UUID, UUID], list[str]] = {}
    for source_id, target_id, type_ in edges:
        types.setdefault((source_id, target_id), []).append(excerpt_of(type_, characters=50))
    for (source_id, target_id), named in types.items():
        line = edge_line(marks[source_id], marks[target_id], ", ".join(named))
        is_labelled = len(types) <= MAX_EDGE_LABELS or centre_id in (source_id, target_id)
        yield line if is_labelled and not UNLABELLED.issuperset(named) else replace(line, label="")


def edge_line(source: NodeMark, target: NodeMark, label: str) -> EdgeLine:
    across, down = target.x - source.x, target.y - source.y
    length = max(1.0, hypot(across, down))
    dx, dy = across / length * NODE_RADIUS, down / length * NODE_RADIUS
    return EdgeLine(
        x1=round(source.x + dx, 1),
        y1=round(source.y + dy, 1),
        x2=round(target.x - dx * 1.4, 1),
        y2=round(target.y - dy * 1.4, 1),
        label=label,
        # nearer to the arrow's head, so that the labels of opposite directions do not overlap
        label_x=round(source.x + across * 0.6, 1),
        label_y=round(source.y + down * 0.6, 1),
        title=f"{source.label} {label} {target.label}",
    )
