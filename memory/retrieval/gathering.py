"""Gathering candidates: all recallers in one statement, and of every candidate what all of them say.

Each recaller is a part that begins only once the one before it has ended, and only before the deadline; when each ended
comes back with the rows. What one found is scored by words and by meaning whoever found it, so that scores can be
standardized over all candidates.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from sys import intern
from typing import Any

from memory.models import Kind
from memory.models.binary import half_vector
from memory.owner import Owner
from memory.retrieval.candidates import Candidate, Metric
from memory.retrieval.lexical import bind_terms, scores_of_terms
from memory.retrieval.plans import Ground, Moment, Orientation, Recaller, Shape
from memory.retrieval.queries import LONGEST_QUERY, Query, Scope
from memory.retrieval.recallers import RECALLERS
from memory.retrieval.scopes import CONDITIONS
from memory.retrieval.statements import OwnerShape, Sql, Statement, bind_owner, numbered, shape_of
from memory.retrieval.visibility import walls_of

LEAST_CANDIDATES = 100
LEAST_OF_ONE = 20
"""Where one recaller alone finds, by the one score that there is: no other brings up later ones."""
CANDIDATES_A_RESULT = 3
NEVER_MS = 600_000
"""Ten minutes: no statement lasts as long."""

TEXT_CHARACTERS = LONGEST_QUERY
"""Of a candidate's text, as much as a question or a claim may have, and one more where it is cut: a turn may have two
million, and most candidates are no results (`texts.read_whole`)."""
TEXT = f"left(memories.text, {TEXT_CHARACTERS} + 1) AS text"

COLUMNS = (
    *("memories.id", "memories.kind", TEXT, "memories.agent_id", "memories.user_id", "memories.channel"),
    *("memories.conversation_id", "memories.event_time", "memories.created_at", "memories.last_accessed"),
    *("memories.access_count", "memories.token_count", "memories.salience", "memories.trust", "memories.pinned"),
    "memories.source",
)
# texts that a kind has not are empty, as the candidate begins with them
OF_TURNS = ("turns.index", "coalesce(turns.role, '') AS role", "coalesce(turns.name, '') AS speaker")
OF_SLOTS = ("coalesce(turn_slots.slot, '') AS slot", "turn_slots.record_id")
TEMPORAL = "coalesce({table}.temporal, '') AS temporal"
OF_FACTS = (
    *("facts.confidence", TEMPORAL.format(table="facts"), "coalesce(facts.status, '') AS status"),
    *("facts.valid_from", "facts.valid_to"),
)

# of facts, what is true (now, or at `as_of`) and believed; of all else, everything. No EXISTS: of that the planner
# might make a list of all true facts of all accounts
TRUE_FACTS = """(kind <> 'fact' OR (
    SELECT own.recorded_at IS NOT NULL AND own.retracted_at IS NULL
        AND (own.valid_from IS NULL OR own.valid_from <= %(as_of)s::timestamptz)
        AND (own.valid_to IS NULL OR own.valid_to > %(as_of)s::timestamptz)
        {confident}
    FROM facts AS own WHERE own.memory_ptr_id = {memory_id}))"""

FACTS_KNOWN_THEN = """(kind <> 'fact' OR (
    SELECT count(*) > 0 FROM fact_versions AS known
    WHERE known.account_id = %(account_id)s AND known.fact_id = {memory_id}
    AND known.recorded_at <= %(known_at)s::timestamptz
    AND (known.retracted_at IS NULL OR known.retracted_at > %(known_at)s::timestamptz)
    AND (known.valid_from IS NULL OR known.valid_from <= %(as_of)s::timestamptz)
    AND (known.valid_to IS NULL OR known.valid_to > %(as_of)s::timestamptz)
    {confident}))"""

# one at most: the spans of a fact's versions do not overlap
KNOWN_THEN = """LEFT JOIN LATERAL (
    SELECT * FROM fact_versions AS version
    WHERE version.account_id = %(account_id)s AND version.fact_id = found.id
    AND version.recorded_at <= %(known_at)s::timestamptz
    AND (version.retracted_at IS NULL OR version.retracted_at > %(known_at)s::timestamptz) OFFSET 0
) AS known ON true"""

IN_WORDS_OF_THEN = {
    TEXT: f"left(coalesce(known.claim, memories.text), {TEXT_CHARACTERS} + 1) AS text",
    TEMPORAL.format(table="facts"): TEMPORAL.format(table="known"),
    **{f"facts.{name}": f"known.{name}" for name in ("confidence", "valid_from", "valid_to")},
}
"""Of a fact what was believed then; it is found by what it says today."""

CONFIDENT = "AND confidence >= %(min_confidence)s::float8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """Candidates in no order, what each recaller took and brought, and which ones the deadline left out."""

    candidates: Sequence[Candidate]
    metrics: Sequence[Metric]
    dropped: Sequence[str]


def gather(
    owner: Owner, query: Query, orientation: Orientation, recallers: Sequence[Recaller], moment: Moment
) -> Gathered:
    """One statement; none where no recaller has anything to look for."""
    serving = [recaller for recaller in recallers if recaller.serves(query, orientation)]
    if not serving:
        return Gathered(candidates=[], metrics=[], dropped=[])
    statement = compose(make_shape(owner, query, orientation, serving))
    values = {**bind_owner(owner, now=moment.now), **bind(query, orientation, moment)}
    values["candidates"] = candidates_for(query, [recaller.name for recaller in serving])
    for recaller in serving:
        values |= recaller.bind(query, orientation)
    columns, rows = statement.read(values)
    return read_gathered(columns, rows, [recaller.name for recaller in serving])


def make_shape(owner: Owner, query: Query, orientation: Orientation, serving: Sequence[Recaller]) -> Shape:
    of_owner = shape_of(owner)
    return Shape(
        has_agent=of_owner.has_agent,
        has_user=of_owner.has_user,
        has_channel=of_owner.has_channel,
        kinds=tuple(sorted(query.kinds)),
        recallers=tuple(recaller.name for recaller in serving),
        width=query.width,
        has_gist=query.gist_vector is not None,
        is_nested=query.is_nested,
        mode=query.mode.value,
        has_index=orientation.indexed_rows > 0,
        has_since=query.since is not None,
        has_until=query.until is not None,
        has_contexts=bool(query.contexts),
        has_types=bool(query.types),
        has_slots=bool(query.slots),
        has_phrases=bool(orientation.phrases),
        is_cut=not all(term.selects for term in orientation.terms),
        has_known_at=query.known_at is not None,
        scopes=tuple(sorted({scope.value for scope in query.scopes})),
    )


def bind(query: Query, orientation: Orientation, moment: Moment) -> dict[str, Any]:
    return {
        "left_ms": left_ms(moment),
        "model": query.model,
        "vector": None if query.vector is None else half_vector(query.vector),
        "gist_vector": None if query.gist_vector is None else half_vector(query.gist_vector),
        "since": query.since,
        "until": query.until,
        "contexts": list(query.contexts),
        "types": list(query.types),
        "slots": list(query.slots),
        "without": list(query.without),
        "conversation_id": query.conversation_id,
        "lineage": list(orientation.lineage),
        "first_of_turn": orientation.first_of_turn,
        "records_of_turn": list(orientation.records_of_turn),
        "as_of": query.as_of or moment.now,
        "known_at": query.known_at,
        "min_confidence": query.min_confidence,
        **bind_terms(orientation),
    }


def candidates_for(query: Query, recallers: Collection[str]) -> int:
    """How many each recaller may bring."""
    by_one = set(recallers) - {"pinned"} in ({"lexical"}, {"vector"}) and not (
        query.has_words and query.vector is not None
    )
    return max(LEAST_OF_ONE if by_one else LEAST_CANDIDATES, CANDIDATES_A_RESULT * query.top_k)


def left_ms(moment: Moment) -> float:
    """Milliseconds until the deadline; below zero once it has passed, when nothing begins any more."""
    return NEVER_MS if moment.deadline.at is None else moment.deadline.left_seconds() * 1_000


@lru_cache(maxsize=1024)
def compose(shape: Shape) -> Statement:
    """The statement for questions of this shape."""
    of_owner = OwnerShape(has_agent=shape.has_agent, has_user=shape.has_user, has_channel=shape.has_channel)
    walls, of_all = walls_of(of_owner, shape.kinds), walls_of(of_owner, (), mark="a")
    ground = Ground(
        shape=shape,
        rows=f"{walls.rows}{wanted(shape, 'memories.id')}",
        vectors=f"{walls.vectors}{wanted(shape, 'memory_vectors.memory_id')}",
        passable=f"{of_all.rows} AND {true_facts(shape, 'memories.id')}",
    )
    parts = []
    before = "begun"
    for name in shape.recallers:
        part = RECALLERS[name].compose(ground)
        hops = "hops" if name == "graph" else "NULL::int AS hops"
        distance = "distance" if name == "vector" else "NULL::float8 AS distance"
        part_of = "part_of" if name == "subgoals" else "NULL::uuid AS part_of"
        parts.append(f"""
            {name} AS MATERIALIZED (
                SELECT id, {hops}, {distance}, {part_of}, row_number() OVER () AS place FROM ({part}) AS part
                WHERE (SELECT at FROM {before}) < statement_timestamp() + %(left_ms)s::float8 * interval '1 ms'
            ),
            {name}_end AS MATERIALIZED (
                SELECT clock_timestamp() AS at, rows, was_left FROM (
                    SELECT count(*) AS rows, (SELECT at FROM {before}) >=
                        statement_timestamp() + %(left_ms)s::float8 * interval '1 ms' AS was_left FROM {name}
                ) AS counted
            ),""")
        before = f"{name}_end"
    text = f"""
        WITH {of_all.ctes} begun AS MATERIALIZED (SELECT clock_timestamp() AS at), {"".join(parts)}
        found AS MATERIALIZED ({union_of(shape.recallers)})
        SELECT {marks_of(shape.recallers)}, scored.* FROM begun {ends_of(shape.recallers)}
        LEFT JOIN ({scored_of(shape)}) AS scored ON true"""
    return numbered(Sql(text=text, parameters={**of_all.parameters, **walls.parameters}))


def wanted(shape: Shape, memory_id: str) -> str:
    """What the question filters by, in terms that memories and vectors share."""
    text = f" AND NOT {memory_id} = ANY(%(without)s::uuid[])"
    if not shape.kinds or Kind.FACT.value in shape.kinds:
        text += f" AND {true_facts(shape, memory_id, confident=CONFIDENT)}"
    if shape.has_contexts:
        text += " AND context_id = ANY(%(contexts)s::uuid[])"
    if shape.has_types:
        text += f""" AND (SELECT typed.entry_type FROM context_entries AS typed
            WHERE typed.memory_ptr_id = {memory_id}) = ANY(%(types)s::text[])"""
    if shape.has_slots:
        text += f""" AND (SELECT own.slot FROM turn_slots AS own
            WHERE own.memory_ptr_id = {memory_id}) = ANY(%(slots)s::text[])"""
    text += " AND event_time >= %(since)s::timestamptz" if shape.has_since else ""
    text += " AND event_time < %(until)s::timestamptz" if shape.has_until else ""
    if shape.scopes:
        within = [CONDITIONS[Scope(scope)].format(memory_id=memory_id) for scope in shape.scopes]
        text += f" AND (({') OR ('.join(within)}))"
    return text


def true_facts(shape: Shape, memory_id: str, *, confident: str = "") -> str:
    """Of facts, those that were true, and believed, at the moments asked for."""
    return (FACTS_KNOWN_THEN if shape.has_known_at else TRUE_FACTS).format(memory_id=memory_id, confident=confident)


def union_of(recallers: Sequence[str]) -> str:
    """Each memory once, with the bits of those that found it."""
    found = "SELECT id, hops, distance, part_of"
    each = [f"{found}, {1 << place} AS way FROM {name}" for place, name in enumerate(recallers)]
    return f"""
        SELECT id, min(hops) AS hops, min(distance) AS distance, bit_or(way) AS ways,
            (array_agg(part_of) FILTER (WHERE part_of IS NOT NULL))[1] AS part_of
        FROM ({" UNION ALL ".join(each)}) AS each GROUP BY id"""


def marks_of(recallers: Sequence[str]) -> str:
    before = "begun"
    marks = []
    for name in recallers:
        marks.append(f"extract(epoch FROM {name}_end.at - {before}.at)::float8 * 1000 AS {name}_ms")
        marks.append(f"{name}_end.rows AS {name}_rows, {name}_end.was_left AS {name}_left")
        before = f"{name}_end"
    return ", ".join(marks)


def ends_of(recallers: Sequence[str]) -> str:
    return " ".join(f"CROSS JOIN {name}_end" for name in recallers)


def scored_of(shape: Shape) -> str:
    """Every candidate with what it says by words and by meaning.

    OFFSET 0: they are looked up one by one, however many the planner expects, or it reads whole tables for hundreds.
    """
    columns: list[str] = list(COLUMNS)
    joins = []
    if not shape.kinds or Kind.TURN.value in shape.kinds:
        columns += OF_TURNS
        joins.append(beside_found("turns"))
    if not shape.kinds or Kind.TURN_SLOT.value in shape.kinds:
        columns += OF_SLOTS
        joins.append(beside_found("turn_slots"))
    if not shape.kinds or Kind.FACT.value in shape.kinds:
        columns += OF_FACTS
        joins.append(beside_found("facts"))
        if shape.has_known_at:
            columns = [IN_WORDS_OF_THEN.get(column, column) for column in columns]
            joins.append(KNOWN_THEN)
    similarity, gist = "NULL::float8", "NULL::float8"
    own = f"""SELECT own.vector FROM memory_vectors AS own
        WHERE own.memory_id = memories.id AND own.model = %(model)s AND own.width = {shape.width}"""
    if shape.has_gist:
        joins.append(f"LEFT JOIN LATERAL ({own} OFFSET 0) AS own ON true")
        similarity = "1 - (own.vector <=> %(vector)s::halfvec)"
        gist = "1 - (own.vector <=> %(gist_vector)s::halfvec)"
    elif shape.width:
        # read again only of what others found
        similarity = f"1 - coalesce(found.distance, ({own}) <=> %(vector)s::halfvec)"
    return f"""
        SELECT {", ".join(columns)}, found.hops, found.ways, found.part_of,
            {similarity} AS similarity, {gist} AS gist, words.*
        FROM found CROSS JOIN LATERAL (SELECT * FROM memories WHERE memories.id = found.id OFFSET 0) AS memories
        {" ".join(joins)}
        CROSS JOIN LATERAL ({scores_of_terms(shape)}) AS words"""


def beside_found(table: str) -> str:
    """Its row of what was found, where it has one."""
    return f"LEFT JOIN LATERAL (SELECT * FROM {table} WHERE memory_ptr_id = found.id OFFSET 0) AS {table} ON true"


def read_gathered(columns: Sequence[str], rows: Sequence[tuple[Any, ...]], names: Sequence[str]) -> Gathered:
    """Each row has the marks of the recallers, and there is one at least; what is scored follows them."""
    first = dict(zip(columns, rows[0], strict=True))
    metrics = [
        Metric(technique=name, took_ms=round(first[f"{name}_ms"], 3), results=first[f"{name}_rows"]) for name in names
    ]
    marks = columns.index("id")
    return Gathered(
        candidates=make_candidates(columns[marks:], [row[marks:] for row in rows if row[marks] is not None], names),
        metrics=metrics,
        dropped=[name for name in names if first[f"{name}_left"]],
    )


def make_candidates(columns: Sequence[str], rows: Sequence[tuple[Any, ...]], names: Sequence[str]) -> list[Candidate]:
    """`columns` are fields of Candidate, but for the bits of the recallers in place of their names."""
    ways, text = columns.index("ways"), columns.index("text")
    ways_of = {bits: spread_ways(bits, names) for bits in {row[ways] for row in rows}}
    # names of arguments are compared sign by sign unless they are interned: that took six times as long as all the rest
    columns = [intern(column) for column in columns]
    made = []
    for row in rows:
        own = dict(zip(columns, row, strict=True))
        own["kind"], own["ways"] = KINDS[own["kind"]], ways_of[row[ways]]
        own["is_cut"] = len(row[text]) > TEXT_CHARACTERS
        made.append(Candidate(**own))
    return made


def spread_ways(bits: int, names: Sequence[str]) -> frozenset[str]:
    return frozenset(name for place, name in enumerate(names) if bits >> place & 1)


KINDS = {kind.value: kind for kind in Kind}
