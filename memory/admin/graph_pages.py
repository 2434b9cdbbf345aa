"""The graph around a memory: what is linked to it over one to three links, as a picture and as a table.

This module reads a bounded part of the graph and computes numbers and texts. Templates make SVG of them and escape it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django import forms
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from memory.admin.base import BoundedAdmin
from memory.admin.columns import change_url
from memory.admin.graph_layout import FONT_SIZE, LABEL_OFFSET, NODE_RADIUS, Box, lay_out_graph, node_box, text_width
from memory.admin.text import excerpt_of, text_excerpt
from memory.kinds import spec_of
from memory.models import Link, Memory
from memory_project.admin_lists import read_uuid

MAX_NODES = 150
MAX_LINKS_PER_STEP = 600
"""Links that are read around the nodes of one depth, strongest first."""
MAX_EXPANDED = 20
MAX_TYPES = 30
LABEL_CHARACTERS = 18
DEPTHS = (1, 2, 3)
EDGE_FONT_SIZE = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedNode:
    """A memory of the graph, with its place and its addresses. `expand_url` is empty if it is expanded already."""

    id: UUID
    kind: str
    label: str
    title: str
    x: float
    y: float
    url: str
    expand_url: str

    @property
    def label_y(self) -> float:
        return round(self.y + NODE_RADIUS + LABEL_OFFSET, 1)

    @property
    def box(self) -> Box:
        return node_box(self.x, self.y, self.label)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedEdge:
    """A link between two nodes. `label` is drawn only where it overlaps nothing."""

    source: PlacedNode
    target: PlacedNode
    type: str
    weight: float
    label: str
    x: float
    y: float

    @property
    def title(self) -> str:
        return f"{self.source.label} {self.type} {self.target.label}"

    @property
    def box(self) -> Box:
        return edge_label_box(self.x, self.y, self.label)


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphPicture:
    """A picture ready for its template. `is_cut` if there is more than is drawn."""

    title: str
    nodes: Sequence[PlacedNode]
    edges: Sequence[PlacedEdge]
    width: float
    height: float
    is_cut: bool
    types: Sequence[str]
    radius: float = NODE_RADIUS


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnNode:
    """A memory to be drawn, `depth` links away from the centre. `name` says what it is, such as "person" or "fact"."""

    id: UUID
    kind: str
    name: str
    text: str
    depth: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRow:
    """A link, as it is read."""

    source: UUID
    target: UUID
    type: str
    weight: float


class GraphForm(forms.Form):
    """The part of the graph to show. The times are those that memories are about."""

    depth = forms.TypedChoiceField(coerce=int, choices=[(depth, depth) for depth in DEPTHS], initial=1, required=False)
    type = forms.CharField(required=False, max_length=50, label="Type of links")
    since = forms.DateField(required=False, label="Not before", widget=forms.DateInput(attrs={"type": "date"}))
    until = forms.DateField(required=False, label="Not after", widget=forms.DateInput(attrs={"type": "date"}))

    def asked(self) -> dict[str, Any]:
        """Return the cleaned values; defaults for those that are wrong."""
        self.is_valid()
        cleaned: dict[str, Any] = self.cleaned_data
        return {**cleaned, "depth": cleaned.get("depth") or 1}


def read_links(account_id: UUID, ids: Collection[UUID], type_: str) -> list[LinkRow]:
    """Return the strongest links at any of these memories. Two queries, for which there are indexes by weight."""
    rows = Link.objects.filter(account_id=account_id, **({"type": type_} if type_ else {}))
    columns = ("id", "source_id", "target_id", "type", "weight")
    found: dict[UUID, LinkRow] = {}
    for end in ("source_id__in", "target_id__in"):
        read = rows.filter(**{end: list(ids)}).order_by("-weight", "id").values_list(*columns)
        for id_, source, target, own, weight in read[:MAX_LINKS_PER_STEP]:
            found[id_] = LinkRow(source=source, target=target, type=own, weight=weight)
    strongest = sorted(found.items(), key=lambda each: (-each[1].weight, each[0]))
    return [link for _, link in strongest[:MAX_LINKS_PER_STEP]]


def in_time(row: Memory, asked: dict[str, Any]) -> bool:
    since, until = asked.get("since"), asked.get("until")
    is_late_enough = since is None or row.event_time >= datetime.combine(since, time.min, UTC)
    return is_late_enough and (until is None or row.event_time <= datetime.combine(until, time.max, UTC))


def walk_graph(
    centre: Memory, asked: dict[str, Any], expanded: Sequence[UUID]
) -> tuple[dict[UUID, tuple[Memory, int]], list[LinkRow], bool]:
    """Return the memories around the centre with their depths, the links at them, and whether more were found.

    Three queries for each depth, and three for all expanded nodes together.
    """
    found: dict[UUID, tuple[Memory, int]] = {centre.pk: (centre, 0)}
    links: dict[tuple[UUID, UUID, str], LinkRow] = {}
    is_cut, frontier, type_ = False, [centre.pk], asked.get("type", "")
    steps = [None] * asked["depth"] + ([expanded] if expanded else [])
    for depth, chosen in enumerate(steps, 1):
        around = frontier if chosen is None else [each for each in chosen if each in found]
        read = read_links(centre.account_id, around, type_) if around else []
        is_cut = is_cut or len(read) == MAX_LINKS_PER_STEP
        links |= {(each.source, each.target, each.type): each for each in read}
        ends = dict.fromkeys(end for each in read for end in (each.source, each.target) if end not in found)
        rows = Memory.objects.filter(account_id=centre.account_id, id__in=list(ends))
        known = {row.pk: row for row in rows.only("id", "kind", "event_time").annotate(words=text_excerpt("text"))}
        frontier = []
        for end in ends:
            if end in known and in_time(known[end], asked):
                if len(found) >= MAX_NODES:
                    is_cut = True
                    break
                found[end] = (known[end], depth)
                frontier.append(end)
    return found, list(links.values()), is_cut


def draw_graph(centre: Memory, asked: dict[str, Any], expanded: Sequence[UUID], user: Any) -> GraphPicture:
    """Return the picture around a memory. Texts that the user may not read are named by their kind."""
    found, links, is_cut = walk_graph(centre, asked, expanded)
    nodes = [
        DrawnNode(id=id_, kind=row.kind, name=spec_of(row.kind).label, text=node_text(row, user), depth=depth)
        for id_, (row, depth) in found.items()
    ]
    expand = {id_: graph_url(centre.pk, asked, [*expanded, id_]) for id_ in found if id_ not in (centre.pk, *expanded)}
    return draw_nodes(nodes, links, expand=expand, is_cut=is_cut)


def draw_nodes(
    nodes: Sequence[DrawnNode], links: Sequence[Any], *, expand: Mapping[UUID, str], is_cut: bool
) -> GraphPicture:
    """Return the picture of some memories, the first one at the centre, and of the links among them.

    `expand` has the addresses that add what is linked to a memory.
    """
    labels = [excerpt_of(node.text, characters=LABEL_CHARACTERS) for node in nodes]
    places = {node.id: place for place, node in enumerate(nodes)}
    inside = [each for each in links if each.source in places and each.target in places]
    pairs = dict.fromkeys((places[each.source], places[each.target]) for each in inside)
    layout = lay_out_graph(labels, [node.depth for node in nodes], list(pairs))
    placed = {
        node.id: PlacedNode(
            id=node.id,
            kind=node.kind,
            label=label,
            title=f"{excerpt_of(node.text)} ({excerpt_of(node.name, characters=50)})",
            x=x,
            y=y,
            url=change_url(spec_of(node.kind).admin_page, node.id),
            expand_url=expand.get(node.id, ""),
        )
        for node, label, (x, y) in zip(nodes, labels, layout.points, strict=True)
    }
    return GraphPicture(
        title=f"Links around {excerpt_of(nodes[0].text)}",
        nodes=list(placed.values()),
        edges=label_edges(placed, inside),
        width=layout.width,
        height=layout.height,
        is_cut=is_cut,
        types=sorted({each.type for each in inside})[:MAX_TYPES],
    )


def node_text(row: Any, user: Any) -> str:
    spec = spec_of(row.kind)
    words = row.words if hasattr(row, "words") else row.text
    return str(words) if user.has_perm(f"memory.view_{spec.admin_page}") else f"a {spec.label}"


def edge_label_box(x: float, y: float, label: str) -> Box:
    width = text_width(label) * EDGE_FONT_SIZE / FONT_SIZE
    return Box(left=x - width / 2, top=y - EDGE_FONT_SIZE, width=width, height=EDGE_FONT_SIZE + 3)


def label_edges(nodes: dict[UUID, PlacedNode], links: Sequence[Any]) -> list[PlacedEdge]:
    """Return the edges, strongest first, labelled with their types as long as no label overlaps anything."""
    taken = [node.box for node in nodes.values()]
    edges = []
    for link in sorted(links, key=lambda each: (-each.weight, str(each.source), str(each.target), each.type)):
        source, target = nodes[link.source], nodes[link.target]
        x, y = round((source.x + target.x) / 2, 1), round((source.y + target.y) / 2, 1)
        label = excerpt_of(link.type, characters=LABEL_CHARACTERS)
        box = edge_label_box(x, y, label)
        if any(box.overlaps(other) for other in taken):
            label = ""
        else:
            taken.append(box)
        type_ = excerpt_of(link.type, characters=50)
        edges.append(PlacedEdge(source=source, target=target, type=type_, weight=link.weight, label=label, x=x, y=y))
    return edges


def graph_url(memory_id: object, asked: dict[str, Any], expanded: Sequence[UUID] = ()) -> str:
    """Return the address of a graph with the same filters and these nodes expanded."""
    query = [(name, str(asked[name])) for name in ("depth", "type", "since", "until") if asked.get(name)]
    query += [("expand", str(each)) for each in expanded[:MAX_EXPANDED]]
    return f"{reverse('admin:memory_memory_graph', args=[memory_id])}?{urlencode(query)}"


def show_graph(pages: BoundedAdmin, request: HttpRequest, object_id: str) -> HttpResponse:
    centre = pages.find_row(request, object_id)
    form = GraphForm(request.GET if request.GET else {"depth": "1"})
    asked = form.asked()
    expanded = [found for each in request.GET.getlist("expand")[:MAX_EXPANDED] if (found := read_uuid(each))]
    picture = draw_graph(centre, asked, expanded, request.user)
    return pages.render_page(
        request,
        "graph.html",
        "Graph",
        memory=centre,
        heading=excerpt_of(node_text(centre, request.user)),
        page_url=change_url(spec_of(centre.kind).admin_page, centre.pk),
        form=form,
        expanded=expanded,
        picture=picture,
        collapse_url=graph_url(centre.pk, asked) if expanded else "",
    )
