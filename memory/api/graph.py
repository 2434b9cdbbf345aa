"""`/graph`: the neighbourhood of memories, over the links between them."""

import re
from typing import Any, ClassVar
from uuid import UUID

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory import conf
from memory.api.fields import OwnerFields, QueryWholeNumber
from memory.api.views import OwnerViewSet
from memory.models import Link
from memory.retrieval.graph import MAX_DEPTH
from memory.services.entities.relate import explore_graph
from memory_project.http.answers import AnswerSerializer, columns_of
from memory_project.http.serializers import Text

MAX_STARTS = 50
MAX_TYPES = 20
ID = r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
TYPE = r"[A-Z][A-Z0-9_]{0,49}"


def comma_list_schema(pattern: str, max_elements: int) -> dict[str, str]:
    """Return the OpenAPI schema of a CommaList."""
    return {"type": "string", "pattern": rf"^{pattern}(,{pattern}){{0,{max_elements - 1}}}$"}


class CommaList(Text):
    """A query parameter with several elements, separated by commas. Becomes a list of texts."""

    pattern: ClassVar[str]
    max_elements: ClassVar[int]
    default_error_messages = {
        "shape": "Must be elements separated by commas without spaces.",
        "most": "Must have at most {max_elements} elements.",
    }

    def to_internal_value(self, data: Any) -> list[str]:  # type: ignore[override]  # a list made of a text
        elements = super().to_internal_value(data).split(",")
        if len(elements) > self.max_elements:
            self.fail("most", max_elements=self.max_elements)
        if not all(re.fullmatch(self.pattern, element) for element in elements):
            self.fail("shape")
        return elements


@extend_schema_field(comma_list_schema(ID, MAX_STARTS))
class StartIds(CommaList):
    pattern, max_elements = ID, MAX_STARTS
    default_error_messages = {
        "shape": "Must be ids of memories (UUIDs in lower case), separated by commas without spaces."
    }


@extend_schema_field(comma_list_schema(TYPE, MAX_TYPES))
class LinkTypes(CommaList):
    pattern, max_elements = TYPE, MAX_TYPES
    default_error_messages = {
        "shape": "Must be types of links in capitals, such as WORKS_FOR, separated by commas without spaces."
    }


class GraphQuery(OwnerFields):
    ids = StartIds(help_text=f"Memories to start from: up to {MAX_STARTS} ids, separated by commas.")
    depth = QueryWholeNumber(
        default=1, min_value=1, max_value=MAX_DEPTH, help_text="Maximum number of links from a start."
    )
    types = LinkTypes(
        required=False,
        help_text=f"Only these types of links: up to {MAX_TYPES}, separated by commas. Conversations, users, tools and "
        "uses of tools are nodes if one of HAS_TURN, FOLLOWED_BY, HAS_GOAL, USES_TOOL, SUCCEEDED_IN, USED_TOOL and "
        "INVOKED is named.",
    )
    limit = QueryWholeNumber(
        default=conf.GRAPH_NODES, min_value=1, max_value=conf.GRAPH_NODES, help_text="Maximum number of nodes."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if len(set(attrs["ids"])) > attrs["limit"]:
            raise serializers.ValidationError({"limit": ["Must be at least the number of ids."]})
        return attrs


class GraphNode(AnswerSerializer):
    id = serializers.UUIDField()
    item_key = serializers.CharField(help_text="Key of this memory in the injection ledger.")
    kind = serializers.CharField(help_text="Kind of memory; or conversation, user, tool, or tool_invocation.")
    # the contract's name, and a serializer's attribute too
    label = serializers.CharField(help_text="Name of an entity, else the beginning of the text.")  # type: ignore[assignment]
    type = serializers.CharField(help_text="Type of an entity. Empty for other kinds.")
    salience = serializers.FloatField()
    depth = serializers.IntegerField(help_text="Number of links from the nearest start; 0 for a start.")
    channel = serializers.CharField()
    conversation_id = serializers.CharField()
    event_time = serializers.DateTimeField()


class GraphEdge(AnswerSerializer):
    columns = columns_of(Link, "id source target type weight properties")


class GraphAnswer(AnswerSerializer):
    nodes = GraphNode(many=True, help_text="Nearest first; of equally near ones, the most salient first.")
    edges = GraphEdge(many=True, help_text="Links between these nodes, greatest weight first.")
    truncated = serializers.BooleanField(help_text="True if a limit was reached: there may be more.")


class Graphs(OwnerViewSet):
    """Memories of all kinds that the owner sees, and the links between them."""

    operation_ids = {"walk": "walk_graph"}
    for_users = True
    queries = {"walk": GraphQuery}
    answers = {"walk": GraphAnswer}
    problems = {"walk": (404,)}
    rate_class = "retrieval"
    not_audited = frozenset({"walk"})

    def walk(self, request: Request) -> Response:
        """Return the memories that links connect with the given ones, in either direction.

        404 if one of the given ones is not visible. An entity that was merged stands for the one that it was merged
        into. From a memory with very many links, those of the greatest weight are followed. Facts are those that are
        true now.
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
        return self.respond(graph)
