"""`/graph`: the neighbourhood of memories, over all links that there are."""

import re
from typing import Any, ClassVar
from uuid import UUID

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory import conf
from memory.api.fields import Count, OwnerFields
from memory.api.views import OwnerViewSet
from memory.retrieval.graph import DEEPEST, Edge, Node
from memory.services.entities.relate import explore_graph
from memory_project.http.serializers import Text

MOST_STARTS = 50
MOST_TYPES = 20
ID = r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
TYPE = r"[A-Z][A-Z0-9_]{0,49}"


def listed(shape: str, most: int) -> dict[str, str]:
    """How the document describes up to `most` elements of this shape with commas between them."""
    return {"type": "string", "pattern": rf"^{shape}(,{shape}){{0,{most - 1}}}$"}


class Listed(Text):
    """Elements with commas between them, for a query takes each parameter once. Comes out as a list of texts."""

    shape: ClassVar[str]
    most: ClassVar[int]
    default_error_messages = {
        "shape": "Must be elements of the documented shape with commas, and nothing else, between them.",
        "most": "Names at most {most}.",
    }

    def to_internal_value(self, data: Any) -> list[str]:  # type: ignore[override]  # a list made of a text
        elements = super().to_internal_value(data).split(",")
        if len(elements) > self.most:
            self.fail("most", most=self.most)
        if not all(re.fullmatch(self.shape, element) for element in elements):
            self.fail("shape")
        return elements


@extend_schema_field(listed(ID, MOST_STARTS))
class ListedIds(Listed):
    shape, most = ID, MOST_STARTS


@extend_schema_field(listed(TYPE, MOST_TYPES))
class ListedTypes(Listed):
    shape, most = TYPE, MOST_TYPES


class GraphQuery(OwnerFields):
    ids = ListedIds(help_text=f"Memories to begin at: up to {MOST_STARTS} ids with commas between them.")
    depth = Count(default=1, min_value=1, max_value=DEEPEST, help_text="Over so many links at most.")
    types = ListedTypes(
        required=False, help_text=f"Over links of these types only: up to {MOST_TYPES} with commas between them."
    )
    limit = Count(
        default=conf.GRAPH_NODES, min_value=1, max_value=conf.GRAPH_NODES, help_text="Nodes to answer with at most."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if len(set(attrs["ids"])) > attrs["limit"]:
            raise serializers.ValidationError({"limit": ["Must be at least as many as ids."]})
        return attrs


class GraphNode(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    item_key = serializers.CharField(help_text="Its name in the injection ledger.")
    kind = serializers.CharField()
    # the contract's name, and a serializer's attribute too
    label = serializers.CharField(help_text="An entity's name, or how the text begins.")  # type: ignore[assignment]
    type = serializers.CharField(help_text="An entity's type; empty for other kinds.")
    salience = serializers.FloatField()
    depth = serializers.IntegerField(help_text="Over how many links it was reached; 0 for those asked for.")
    channel = serializers.CharField()
    conversation_id = serializers.CharField()
    event_time = serializers.DateTimeField()


class GraphEdge(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    source = serializers.UUIDField()  # type: ignore[assignment]  # as above
    target = serializers.UUIDField()
    type = serializers.CharField()
    weight = serializers.FloatField()
    properties = serializers.DictField()


class GraphAnswer(serializers.Serializer[Any]):
    nodes = GraphNode(many=True, help_text="The nearest first, and of these the most salient.")
    edges = GraphEdge(many=True, help_text="Between these nodes, the weightiest first.")
    truncated = serializers.BooleanField(help_text="A bound was met: there may be more.")


NODE = ("item_key", "kind", "label", "type", "salience", "depth", "channel", "conversation_id", "event_time")


def represent_node(node: Node) -> dict[str, Any]:
    return {"id": str(node.id)} | {name: getattr(node, name) for name in NODE}


def represent_edge(edge: Edge) -> dict[str, Any]:
    ids = {name: str(getattr(edge, name)) for name in ("id", "source", "target")}
    return ids | {name: getattr(edge, name) for name in ("type", "weight", "properties")}


class Graphs(OwnerViewSet):
    """Memories of all kinds that the owner sees, and the links between them."""

    queries = {"walk": GraphQuery}
    answers = {"walk": GraphAnswer}
    problems = {"walk": (404,)}
    rate_class = "retrieval"
    unrecorded = frozenset({"walk"})

    def walk(self, request: Request) -> Response:
        """What links lead to from these memories, in either direction; 404 where one of them cannot be seen.

        Of a memory with very many links, the weightiest are followed. Of facts, those that are true now.
        """
        query = self.query()
        graph = explore_graph(
            self.owner(query),
            [UUID(memory_id) for memory_id in query["ids"]],
            depth=query["depth"],
            types=query.get("types", ()),
            nodes=query["limit"],
            now=timezone.now(),
        )
        return Response(
            {
                "nodes": [represent_node(node) for node in graph.nodes],
                "edges": [represent_edge(edge) for edge in graph.edges],
                "truncated": graph.truncated,
            }
        )
