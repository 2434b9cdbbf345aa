"""The documented relations of the graph that are rows of their own instead of links.

They connect the memories of a walk with conversations (HAS_TURN, FOLLOWED_BY, SUCCEEDED_IN), users (HAS_GOAL), tools
(USES_TOOL) and uses of tools (USED_TOOL, INVOKED), which are nodes of the graph then. To add one, write a method of
`StructuredGraph` and call it in `add_structure`.
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID, uuid5

from memory.models import Conversation, Goal, Kind, StrategyTool, StrategyUse, Tool, ToolInvocation, Turn
from memory.owner import Owner
from memory.retrieval.graph import Graph, WalkEdge, WalkNode

STRUCTURE_TYPES = frozenset(
    {"HAS_TURN", "FOLLOWED_BY", "HAS_GOAL", "USES_TOOL", "SUCCEEDED_IN", "USED_TOOL", "INVOKED"}
)
"""Types of the relations that `add_structure` adds."""


def add_structure(owner: Owner, graph: Graph, *, types: Collection[str], limit: int) -> Graph:
    """Return the graph with what its memories belong to by relations of these types: one step further, three for tools.

    `limit` limits the uses of tools: the latest ones of the conversations in the graph. At most nine statements.
    """
    whole = StructuredGraph(owner=owner, graph=graph, types=frozenset(types))
    whole.add_turns()
    whole.add_goals()
    whole.add_strategies()
    is_cut = whole.add_tool_uses(limit)
    nodes = [*graph.nodes, *whole.nodes.values()]
    known = {node.id for node in nodes}
    return replace(
        graph,
        nodes=nodes,
        # the owner may not see the conversation at one end
        edges=[*graph.edges, *(edge for edge in whole.edges if {edge.source, edge.target} <= known)],
        truncated=graph.truncated or is_cut,
    )


@dataclass(slots=True, kw_only=True)
class StructuredGraph:
    """The nodes and edges that are added to a graph. Edges have ids made of their ends, the same in each walk."""

    owner: Owner
    graph: Graph
    types: frozenset[str]
    nodes: dict[UUID, WalkNode] = field(default_factory=dict)
    edges: list[WalkEdge] = field(default_factory=list)

    def memories(self, kind: Kind) -> dict[UUID, WalkNode]:
        return {node.id: node for node in self.graph.nodes if node.kind == kind}

    def add_turns(self) -> None:
        """Add the conversations of turns, and which turn follows which."""
        turns = self.memories(Kind.TURN)
        if not turns or self.types.isdisjoint({"HAS_TURN", "FOLLOWED_BY"}):
            return
        rows = list(Turn.objects.filter(account_id=self.owner.account_id, id__in=turns).only("id", "log_id", "index"))
        at = {(row.log_id, row.index): row.id for row in rows}
        for row in rows:
            following = at.get((row.log_id, row.index + 1))
            if following is not None:
                self.add_edge(row.id, "FOLLOWED_BY", following)
        depths = {row.log_id: turns[row.id].depth + 1 for row in rows}
        if "HAS_TURN" in self.types:
            self.add_conversations(depths)
            for row in rows:
                self.add_edge(row.log_id, "HAS_TURN", row.id)

    def add_goals(self) -> None:
        """Add the users who have the goals."""
        goals = self.memories(Kind.GOAL)
        if not goals or "HAS_GOAL" not in self.types:
            return
        rows = Goal.objects.filter(account_id=self.owner.account_id, id__in=goals).exclude(user_id="")
        for row in rows.only("id", "user_id", "created_at"):
            user = uuid5(self.owner.account_id, f"user:{row.user_id}")
            self.add_node(user, "user", label=row.user_id, depth=goals[row.id].depth + 1, event_time=row.created_at)
            self.add_edge(user, "HAS_GOAL", row.id)

    def add_strategies(self) -> None:
        """Add the tools of strategies, and the conversations in which these succeeded."""
        strategies = self.memories(Kind.STRATEGY)
        of_account = {"account_id": self.owner.account_id, "strategy_id__in": list(strategies)}
        if strategies and "USES_TOOL" in self.types:
            for used in StrategyTool.objects.filter(**of_account).order_by("id"):
                self.add_edge(used.strategy_id, "USES_TOOL", used.tool_id)
            self.add_tools()
        if strategies and "SUCCEEDED_IN" in self.types:
            uses = StrategyUse.objects.filter(**of_account, success=True).exclude(conversation=None)
            ends = sorted({(use.strategy_id, use.conversation_id) for use in uses if use.conversation_id})
            self.add_conversations({place: strategies[strategy].depth + 1 for strategy, place in ends})
            for strategy, place in ends:
                self.add_edge(strategy, "SUCCEEDED_IN", place)

    def add_tool_uses(self, limit: int) -> bool:
        """Add the latest uses of tools in the graph's conversations, and return whether some are left out."""
        places = {node.conversation_id: node for node in self.nodes.values() if node.kind == "conversation"}
        if not places or self.types.isdisjoint({"USED_TOOL", "INVOKED"}):
            return False
        rows = ToolInvocation.objects.visible_to(self.owner).filter(conversation_id__in=list(places))
        latest = list(
            rows.defer("tool_input", "tool_output", "error_message").order_by("-timestamp", "-id")[: limit + 1]
        )
        for row in latest[:limit]:
            place = places[row.conversation_id]
            self.add_node(
                row.id, "tool_invocation", label=row.tool_name, depth=place.depth + 1, event_time=row.timestamp
            )
            self.add_edge(place.id, "USED_TOOL", row.id)
            if row.tool_id is not None:
                self.add_edge(row.id, "INVOKED", row.tool_id)
        self.add_tools()
        return len(latest) > limit

    def add_conversations(self, depths: dict[UUID, int]) -> None:
        """Add the conversations that the owner sees, each at its depth."""
        rows = Conversation.objects.visible_to(self.owner).filter(id__in=[*depths]).defer("saved_session")
        for row in rows:
            self.add_node(
                row.id,
                "conversation",
                label=row.title or row.conversation_id,
                depth=depths[row.id],
                event_time=row.started_at,
                conversation_id=row.conversation_id,
            )

    def add_tools(self) -> None:
        """Add the tools that edges lead to."""
        wanted = [edge.target for edge in self.edges if edge.type in ("USES_TOOL", "INVOKED")]
        for tool in Tool.objects.filter(account_id=self.owner.account_id, id__in=wanted).order_by("name"):
            self.add_node(
                tool.id, "tool", label=tool.name, depth=self.depth_beyond(tool.id), event_time=tool.created_at
            )

    def depth_beyond(self, target: UUID) -> int:
        known = {node.id: node.depth for node in (*self.graph.nodes, *self.nodes.values())}
        return 1 + min(known[edge.source] for edge in self.edges if edge.target == target and edge.source in known)

    def add_node(
        self, node_id: UUID, kind: str, *, label: str, depth: int, event_time: datetime, conversation_id: str = ""
    ) -> None:
        known = self.nodes.get(node_id)
        self.nodes[node_id] = WalkNode(
            id=node_id,
            kind=kind,
            label=label,
            type="",
            salience=0.0,
            depth=depth if known is None else min(depth, known.depth),
            channel="",
            conversation_id=conversation_id,
            event_time=event_time,
        )

    def add_edge(self, source: UUID, kind: str, target: UUID) -> None:
        if kind in self.types:
            edge_id = uuid5(source, f"{kind}:{target}")
            self.edges.append(WalkEdge(id=edge_id, source=source, target=target, type=kind, weight=1.0, properties={}))
