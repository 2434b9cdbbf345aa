"""What a packet tells of the user, of artifacts and of ways that worked: kept as such, it needs no reading."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from memory.extraction.turn_slots import tell_value
from memory.extraction.work_notes import NoteKind, kind_of
from memory.retrieval.resume import ArtifactOfWork, Remembered
from memory.retrieval.strategies import StrategyHit
from memory.services.prompt_context.fence import one_line
from memory.services.resume.pieces import EPOCH, GIVEN, KNOWN, NOTES, Piece, Section, short_text
from memory.services.strategies.learn import strategy_text

PREFERENCE_WEIGHT = 4.0
STYLE_WEIGHT = 2.6
EXPERTISE_WEIGHT = 1.2
RULE_WEIGHT = 3.4
FACT_WEIGHT = 1.8
ARTIFACT_WEIGHT = 3.2
STRATEGY_WEIGHT = 5.0
FURTHER_STRATEGY = 1.6
"""What each strategy weighs less than the one that fits better: rarely are two of use."""
LESS_A_PLACE = 0.2
LONGEST_PREFERENCE = 200
RULES = frozenset({NoteKind.CONSTRAINT, NoteKind.DECISION, NoteKind.REJECTION})


def profile_pieces(profile: Mapping[str, Any]) -> list[Piece]:
    """How the user wants to be served, a line for each preference."""
    told = [
        *((PREFERENCE_WEIGHT, name, value) for name, value in (profile.get("preferences") or {}).items()),
        *((STYLE_WEIGHT, name, value) for name, value in (profile.get("communication_style") or {}).items()),
        *((EXPERTISE_WEIGHT, "knows", value) for value in [", ".join(profile.get("expertise_areas") or [])] if value),
    ]
    return [
        Piece(
            section=Section.CONSTRAINTS,
            says="profile",
            text=short_text(one_line(f"{name}: {tell_value(value)}"), LONGEST_PREFERENCE),
            weight=weight,
            place=(GIVEN, EPOCH, number, 0),
            reasons=["the user's profile"],
            facts={"source": "profile"},
        )
        for number, (weight, name, value) in enumerate(told)
    ]


def fact_pieces(facts: Sequence[Remembered]) -> Iterator[Piece]:
    """What is known of the user; what sounds like a rule stands among the constraints."""
    for fact in facts:
        is_rule = kind_of(fact.text) in RULES
        yield Piece(
            section=Section.CONSTRAINTS if is_rule else Section.EVIDENCE,
            says="fact",
            text=short_text(one_line(fact.text)),
            weight=RULE_WEIGHT if is_rule else FACT_WEIGHT,
            place=(KNOWN if is_rule else NOTES, fact.event_time, 0, 0),
            id=fact.id,
            kind=fact.kind,
            channel=fact.channel,
            conversation_id=fact.conversation_id,
            event_time=fact.event_time,
            reasons=["known of the user"],
            facts={"source": "fact"},
        )


def artifact_pieces(artifacts: Sequence[ArtifactOfWork]) -> list[Piece]:
    """A line for each: where it is, in which revision, and what it is."""
    return [
        Piece(
            section=Section.ARTIFACTS,
            says="artifact",
            text=short_text(one_line(tell_artifact(artifact))),
            weight=max(ARTIFACT_WEIGHT - LESS_A_PLACE * place, FACT_WEIGHT),
            place=(GIVEN, artifact.event_time, place, 0),
            id=artifact.id,
            kind=artifact.kind,
            channel=artifact.channel,
            conversation_id=artifact.conversation_id,
            event_time=artifact.event_time,
            is_apart=True,
            facts={
                "uri": artifact.uri,
                "title": artifact.title,
                "type": artifact.artifact_type,
                "revision": artifact.revision,
                "revision_label": artifact.label,
                "digest": artifact.digest,
                "goal_id": artifact.goal_id,
            },
        )
        for place, artifact in enumerate(artifacts)
    ]


def tell_artifact(artifact: ArtifactOfWork) -> str:
    revision = f" (revision {artifact.label or artifact.revision})" if artifact.revision > 1 or artifact.label else ""
    about = artifact.title or artifact.text
    return f"{artifact.uri}{revision}" + (f": {about}" if about and about not in artifact.uri else "")


def strategy_pieces(hits: Sequence[StrategyHit]) -> list[Piece]:
    """A line for each: when it fits, what to do, and how often that worked."""
    return [
        Piece(
            section=Section.STRATEGIES,
            says="strategy",
            text=short_text(one_line(tell_strategy(hit))),
            weight=max(STRATEGY_WEIGHT - FURTHER_STRATEGY * place, 1.0),
            place=(GIVEN, EPOCH, place, 0),
            id=hit.id,
            kind=hit.kind,
            channel=hit.channel,
            conversation_id=hit.conversation_id,
            event_time=hit.event_time,
            score=hit.score,
            facts={
                "task_type": hit.task_type,
                "tool_sequence": hit.tool_sequence,
                "success_rate": hit.success_rate,
                "success_count": hit.success_count,
                "failure_count": hit.failure_count,
            },
        )
        for place, hit in enumerate(hits)
    ]


def tell_strategy(hit: StrategyHit) -> str:
    tools = f" [{' > '.join(map(str, hit.tool_sequence))}]" if hit.tool_sequence else ""
    told = strategy_text(hit.description, hit.context_pattern)
    return f"{told}{tools} ({hit.success_count} of {hit.success_count + hit.failure_count} worked)"
