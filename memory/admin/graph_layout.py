"""Places the nodes of a graph so that no two labels overlap. The same graph always gets the same picture.

Linked nodes attract each other and all nodes repel each other (Fruchterman and Reingold 1991), from a start on rings by
depth. Then boxes of a node and its label that overlap are pushed apart, and if that does not end, the picture grows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from unicodedata import east_asian_width

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]

FONT_SIZE = 12
CHARACTER_WIDTH = 7.4
WIDE_CHARACTER_WIDTH = 13.0
NODE_RADIUS = 8.0
LABEL_OFFSET = 13.0
"""Distance of a label's baseline below the rim of its node."""
LABEL_DESCENT = 4.0
BOX_HEIGHT = 2 * NODE_RADIUS + LABEL_OFFSET + LABEL_DESCENT
MARGIN = 6.0
"""Room between boxes, and around the picture."""
ITERATIONS = 120
MAX_PUSHES = 400
GROWTH = 1.15
EDGE_LENGTH = 150.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A rectangle of the picture."""

    left: float
    top: float
    width: float
    height: float

    def overlaps(self, other: "Box") -> bool:
        across = self.left < other.left + other.width and other.left < self.left + self.width
        return across and self.top < other.top + other.height and other.top < self.top + self.height


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphLayout:
    """The centre of each node, in their order, and the size of the picture."""

    points: Sequence[tuple[float, float]]
    width: float
    height: float


def text_width(text: str) -> float:
    """Return an upper estimate of the width of a text in pixels."""
    return sum(WIDE_CHARACTER_WIDTH if east_asian_width(each) in "WF" else CHARACTER_WIDTH for each in text)


def node_box(x: float, y: float, label: str) -> Box:
    """Return the rectangle of a node and of the label below it."""
    width = max(text_width(label), 2 * NODE_RADIUS)
    return Box(left=x - width / 2, top=y - NODE_RADIUS, width=width, height=BOX_HEIGHT)


def lay_out_graph(labels: Sequence[str], depths: Sequence[int], edges: Sequence[tuple[int, int]]) -> GraphLayout:
    """Return the position of each node. `edges` are pairs of places in `labels`; the first node is the centre."""
    if not labels:
        return GraphLayout(points=[], width=2 * MARGIN, height=2 * MARGIN)
    sizes = np.array([[node_box(0, 0, label).width, BOX_HEIGHT] for label in labels]) + MARGIN
    points = relax(start_on_rings(depths), edges)
    # labels are wide and low, so the picture may be too
    points = points * (1.3, 0.8)
    while not push_apart(points, sizes):
        points *= GROWTH
    low = (points - sizes / 2).min(axis=0)
    points = points - low + MARGIN
    width, height = (points + sizes / 2).max(axis=0) + MARGIN
    # the box of a node begins at its upper rim
    lifted = points - (0, BOX_HEIGHT / 2 - NODE_RADIUS)
    return GraphLayout(
        points=[(round(float(x), 1), round(float(y), 1)) for x, y in lifted],
        width=round(float(width), 1),
        height=round(float(height), 1),
    )


def start_on_rings(depths: Sequence[int]) -> Points:
    """Return the nodes on circles around the first one, by depth, in their order."""
    points = np.zeros((len(depths), 2))
    for depth in sorted(set(depths)):
        members = [place for place, own in enumerate(depths) if own == depth]
        angles = 2 * np.pi * np.arange(len(members)) / len(members) + 0.37 * depth
        points[members] = depth * EDGE_LENGTH * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return points


def relax(points: Points, edges: Sequence[tuple[int, int]]) -> Points:
    """Return the points after forces have moved them, each step by less. The first one stays at the centre."""
    if len(points) < 2:
        return points
    sources, targets = np.array(edges, dtype=int).reshape(-1, 2).T
    for step in range(ITERATIONS):
        between = points[:, None] - points[None]
        distances = np.maximum(np.linalg.norm(between, axis=2), 1.0)
        forces: Points = (between * (EDGE_LENGTH**2 / distances**2 / distances)[..., None]).sum(axis=1)
        along = points[targets] - points[sources]
        pull = along * (np.linalg.norm(along, axis=1) / EDGE_LENGTH / EDGE_LENGTH)[:, None] * EDGE_LENGTH / 10
        np.add.at(forces, sources, pull)
        np.add.at(forces, targets, -pull)
        lengths = np.maximum(np.linalg.norm(forces, axis=1), 1e-9)[:, None]
        limit = EDGE_LENGTH * (1 - step / ITERATIONS) / 4
        points = points + forces / lengths * np.minimum(lengths, limit)
        points = points - points[0]
    return points


def push_apart(points: Points, sizes: Points) -> bool:
    """Move overlapping boxes apart, in place, along the shorter way. Return True if none overlaps in the end."""
    least = (sizes[:, None] + sizes[None]) / 2
    upper = np.triu(np.ones((len(points), len(points)), dtype=bool), k=1)
    for _ in range(MAX_PUSHES):
        between = points[None] - points[:, None]
        overlap = least - np.abs(between)
        firsts, seconds = np.nonzero((overlap > 1e-6).all(axis=2) & upper)
        if not len(firsts):
            return True
        own, apart = overlap[firsts, seconds], between[firsts, seconds]
        axis = (own[:, 1] <= own[:, 0]).astype(int)
        rows = np.arange(len(firsts))
        # boxes at the same place go by their order
        sign = np.where(apart[rows, axis] < 0, -1.0, 1.0)
        moves = np.zeros_like(own)
        moves[rows, axis] = sign * (own[rows, axis] / 2 + 0.01)
        np.add.at(points, seconds, moves)
        np.add.at(points, firsts, -moves)
    return False
