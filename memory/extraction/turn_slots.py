"""Slots of structured turns (E2, E3) as dataclasses, which format the texts that are searched and quoted."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from memory.reasoning import Provenance, ReasoningTier


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A decision, a rejected option or a blocker, with the reason if one was given."""

    what: str
    why: str = ""

    def format(self) -> str:
        return f"{self.what} (because {self.why})" if self.why else self.what


@dataclass(frozen=True, slots=True, kw_only=True)
class Rationale:
    """A reasoning in the documented shape: decisions, rejected options and blockers."""

    decisions: Sequence[Point] = ()
    rejected: Sequence[Point] = ()
    blockers: Sequence[Point] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.decisions or self.rejected or self.blockers)

    def format(self) -> str:
        """Return one line per point, prefixed by its type."""
        labels = (("Decided", self.decisions), ("Rejected", self.rejected), ("Blocked by", self.blockers))
        return "\n".join(f"{label}: {point.format()}" for label, points in labels for point in points)

    def summarize(self) -> str:
        """Return the decisions in one line, or the blockers if there are none; empty without both."""
        points = self.decisions or self.blockers
        label = "Decided" if self.decisions else "Blocked by"
        return f"{label}: {'; '.join(point.format() for point in points)}" if points else ""

    def as_json(self) -> dict[str, Any]:
        return {name: [dict(asdict(point)) for point in getattr(self, name)] for name in POINTS}

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what `as_json` wrote."""
        return cls(**{name: [Point(**point) for point in data.get(name, [])] for name in POINTS})


POINTS = ("decisions", "rejected", "blockers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of a tool, with its arguments, and its result or error."""

    tool: str
    arguments: Any = None
    result: Any = None
    error: str = ""

    def format(self) -> str:
        """Return `tool(arguments) -> result`, or `tool(arguments) !! error`, uncut."""
        came = f" !! {self.error}" if self.error else ""
        came += f" -> {format_value(self.result)}" if self.result is not None else ""
        return f"{self.tool}({'' if self.arguments is None else format_value(self.arguments)}){came}"

    def as_json(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value not in (None, "")}


def format_value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The agent's perception when the turn began."""

    text: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasoning:
    """The reason why the turn went as it did.

    `tier` is the deepest tier that it contains, maybe besides shallower ones. The tier RAW_TRACE has a `trace`,
    STRUCTURED_RATIONALE a `rationale`, and DECISION_SUMMARY a `summary`.
    """

    tier: ReasoningTier
    # logs and error messages must not contain it
    trace: str = field(default="", repr=False)
    rationale: Rationale = field(default_factory=Rationale)
    summary: str = ""
    provenance: Provenance = Provenance.RUNTIME_PROJECTION


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """The agent's reply, execution or change."""

    text: str = ""
    calls: Sequence[Call] = ()
    data: Mapping[str, Any] = field(default_factory=dict)

    def format(self) -> str:
        return "\n".join(filter(None, [self.text, *(call.format() for call in self.calls)]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of an action. `status` is open, succeeded or failed."""

    status: str
    text: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)

    def format(self) -> str:
        return self.text or f"The turn {self.status}." if self.status != "open" else self.text or "Still open."


@dataclass(frozen=True, slots=True, kw_only=True)
class Slots:
    """The four slots of a turn; None for those that it lacks."""

    observation: Observation | None = None
    reasoning: Reasoning | None = None
    action: Action | None = None
    outcome: Outcome | None = None
