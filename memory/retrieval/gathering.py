"""Gathering: one statement that runs all retrievers and scores what they found.

Each retriever is a part of the statement. It begins only after the one before it has ended, and only before the
deadline; the rows say when each ended. All candidates are scored by words and by meaning, whichever retriever found
them, so that scores can be standardized over all of them.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from itertools import pairwise
from operator import itemgetter
from typing import Any

from memory.kinds import Kind, all_kinds, kinds_where
from memory.models.facts import ENDED
from memory.models.statements import Ids, half_vector
from memory.owner import Owner
from memory.retrieval.candidates import Candidate, Metric
from memory.retrieval.kept_plans import admit_shape, keeps_plan, name_partition
from memory.retrieval.kind_searches import CONFIDENT, TRUE, TRUE_AND_BELIEVED_NOW, VERSION_BELIEVED_THEN
from memory.retrieval.plans import GatheringShape, QueryAnalysis, RecallContext, Retriever, VisibleRows
from memory.retrieval.queries import MAX_QUERY_CHARACTERS, Mode, Query, Scope
from memory.retrieval.retrievers import RETRIEVERS
from memory.retrieval.retrievers.lexical import ASKED_TERMS, term_params, term_scores_sql
from memory.retrieval.scopes import scope_condition
from memory.retrieval.statements import NumberedStatement, Sql, memory_sql, owner_params, owner_shape
from memory.retrieval.visibility import visibility_filter

MIN_CANDIDATES = 100
MIN_CANDIDATES_OF_ONE = 20
"""The limit if a single retriever finds by the only score there is, so that no other score moves later rows up."""
CANDIDATES_PER_RESULT = 3
DEEP_FACTOR = 2
"""Candidates in `deep` mode, per candidate otherwise, where passages are compared."""
NO_DEADLINE_MS = 600_000
"""Ten minutes, longer than any statement takes: what statements are given without a deadline."""

MAX_TEXT_CHARACTERS = MAX_QUERY_CHARACTERS
"""Characters of a candidate's text that are read: as many as a question or claim may have. A turn may have two million,
and most candidates do not become results, which get their full texts later (`lookups.load_full_texts`)."""
ID_COLUMNS = {"memories": "memories.id", "memory_vectors": "memory_vectors.memory_id"}
"""The column of each table that holds the memory's id."""

TEXT = f"left(memories.text, {MAX_TEXT_CHARACTERS} + 1) AS text"

TEMPORAL = "coalesce({}.temporal, '') AS temporal"
# when a fact was said is its `event_time`: candidates have only starts that are stated
STATED_FROM = "CASE WHEN memories.valid_from_source = 'said' THEN NULL ELSE {}.valid_from END AS valid_from"
CONFIDENCE = "CASE memories.kind WHEN 'fact' THEN memories.confidence END AS confidence"

# texts that a kind lacks are empty, as in a new Candidate. Other kinds have some of the columns too
COLUMNS = (
    *("memories.id", "memories.kind", TEXT, "memories.agent_id", "memories.user_id", "memories.channel"),
    *("memories.conversation_id", "memories.event_time", "memories.last_accessed"),
    *("memories.token_count", "memories.salience", "memories.trust", "memories.pinned"),
    *("memories.source", "memories.index", "coalesce(memories.role, '') AS role"),
    "CASE memories.kind WHEN 'turn' THEN memories.name ELSE '' END AS speaker",
    *("coalesce(memories.slot, '') AS slot", "memories.record_id"),
    *(CONFIDENCE, TEMPORAL.format("memories"), STATED_FROM.format("memories"), "memories.valid_to"),
)
FOUND_BY = {"hops": "graph", "part_of": "subgoals"}
"""Columns that a single retriever fills."""
FACTS_BELIEVED_THEN = f"""(
    SELECT count(*) > 0 FROM fact_versions AS known
    WHERE {VERSION_BELIEVED_THEN.format("{memory_id}")} AND {TRUE.format("known")}{{further}})"""

# at most one row, since the versions of a fact do not overlap in time
JOIN_BELIEVED_VERSION = f"""LEFT JOIN LATERAL (
    SELECT * FROM fact_versions AS known WHERE {VERSION_BELIEVED_THEN.format("memories.id")} OFFSET 0
) AS known ON true"""

_WITH_STATUS = ", ".join(f"'{kind}'" for kind in sorted(kinds_where(lambda spec: spec.has_status)))
_IS_OVER = "{}.valid_to <= %(now)s::timestamptz"
STATUS = f"""CASE WHEN memories.kind NOT IN ({_WITH_STATUS}) THEN ''
    WHEN memories.kind = 'fact' AND memories.status = 'active' AND {_IS_OVER.format("memories")} THEN '{ENDED}'
    WHEN memories.status = 'superseded' AND NOT {_IS_OVER.format("memories")} THEN 'active'
    ELSE memories.status END AS status"""
"""The status of facts and goals at the time of the question. A fact is `superseded` from where its successor begins."""
STATUS_BELIEVED_THEN = f"""CASE WHEN memories.kind NOT IN ({_WITH_STATUS}) THEN ''
    WHEN memories.kind <> 'fact' THEN memories.status
    WHEN known.valid_to IS NULL OR NOT {_IS_OVER.format("known")} THEN 'active'
    WHEN known.reason = 'superseded' OR known.retracted_at IS NULL AND memories.status = 'superseded' THEN 'superseded'
    ELSE '{ENDED}' END AS status"""

COLUMNS_BELIEVED_THEN = {
    TEXT: f"left(coalesce(known.claim, memories.text), {MAX_TEXT_CHARACTERS} + 1) AS text",
    TEMPORAL.format("memories"): TEMPORAL.format("known"),
    CONFIDENCE: "known.confidence",
    STATED_FROM.format("memories"): STATED_FROM.format("known"),
    "memories.valid_to": "known.valid_to",
    STATUS: STATUS_BELIEVED_THEN,
}
"""Columns of a fact as it was believed at `known_at`. It is found by its current text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatheredCandidates:
    """Candidates in no order, the time and rows of each retriever, and those that the deadline left out."""

    candidates: Sequence[Candidate]
    metrics: Sequence[Metric]
    dropped: Sequence[str]


def gather_candidates(
    owner: Owner,
    query: Query,
    analysis: QueryAnalysis,
    retrievers: Sequence[Retriever],
    context: RecallContext,
    limit: int | None = None,
) -> GatheredCandidates:
    """Run the retrievers in one statement, or none if no retriever has anything to look for.

    Each finds at most `limit` candidates. Default: `candidate_limit`.
    """
    applying = [retriever for retriever in retrievers if retriever.applies(query, analysis)]
    if not applying:
        return GatheredCandidates(candidates=[], metrics=[], dropped=[])
    names = [retriever.name for retriever in applying]
    statement = build_gathering_statement(admit_shape(gathering_shape(owner, query, analysis, names)))
    values = {**owner_params(owner, now=context.now), **query_params(query, analysis, context)}
    values["candidates"] = limit or candidate_limit(query, analysis, names)
    for retriever in applying:
        values |= retriever.params(query, analysis)
    columns, rows = statement.read(values)
    return parse_gathered_rows(columns, rows, names)


def gathering_shape(owner: Owner, query: Query, analysis: QueryAnalysis, retrievers: Sequence[str]) -> GatheringShape:
    is_kept = keeps_plan(query, analysis)
    return GatheringShape(
        owner=owner_shape(owner),
        kinds=tuple(sorted(query.kinds)),
        retrievers=tuple(retrievers),
        width=query.width,
        has_gist=query.gist_vector is not None,
        is_nested=query.is_nested,
        mode=(query.mode or Mode.DEFAULT).value,
        has_index=analysis.indexed_rows > 0,
        has_passages=analysis.has_passages,
        has_since=query.since is not None,
        has_until=query.until is not None,
        has_contexts=bool(query.contexts),
        has_types=bool(query.types),
        has_slots=bool(query.slots),
        has_phrases=bool(analysis.phrases),
        is_cut=not all(term.selects for term in analysis.terms),
        has_known_at=query.known_at is not None,
        scopes=tuple(sorted({scope.value for scope in query.scopes})),
        keeps_plan=is_kept,
        partition=analysis.partition if is_kept and query.width else "",
    )


def query_params(query: Query, analysis: QueryAnalysis, context: RecallContext) -> dict[str, Any]:
    return {
        # negative once the deadline has passed: no retriever begins then
        "left_ms": min(context.deadline.left_seconds() * 1_000, NO_DEADLINE_MS),
        "model": query.model,
        "vector": None if query.vector is None else half_vector(query.vector),
        "gist_vector": None if query.gist_vector is None else half_vector(query.gist_vector),
        "since": query.since,
        "until": query.until,
        "contexts": list(query.contexts),
        "types": list(query.types),
        "slots": list(query.slots),
        "without": Ids(query.without) if query.without else [],
        "conversation_id": query.conversation_id,
        "lineage": list(analysis.lineage),
        "first_of_turn": analysis.first_of_turn,
        "records_of_turn": list(analysis.records_of_turn),
        "as_of": query.as_of or context.now,
        "known_at": query.known_at,
        "min_confidence": query.min_confidence,
        **term_params(analysis),
    }


def candidate_limit(query: Query, analysis: QueryAnalysis, retrievers: Collection[str]) -> int:
    """Return how many candidates each retriever may find: in `deep` mode more of those whose passages are compared."""
    is_single = set(retrievers) - {"pinned"} in ({"lexical"}, {"vector"})
    has_one_score = not (query.has_words and query.vector is not None)
    minimum = MIN_CANDIDATES_OF_ONE if is_single and has_one_score else MIN_CANDIDATES
    further = DEEP_FACTOR if query.mode is Mode.DEEP and analysis.has_passages else 1
    return further * max(minimum, CANDIDATES_PER_RESULT * query.top_k)


@lru_cache(maxsize=1024)
def build_gathering_statement(shape: GatheringShape) -> NumberedStatement:
    own, all_kinds_filter = visibility_filter(shape.owner, shape.kinds), visibility_filter(shape.owner, (), mark="a")
    visible = VisibleRows(
        shape=shape,
        rows=f"{own.rows}{filter_sql(shape, 'memories')}",
        vectors=f"{own.vectors}{filter_sql(shape, 'memory_vectors')}",
        passable=f"{all_kinds_filter.rows} AND {true_facts_sql(shape, 'memories')}",
    )
    parts = []
    before = "begun"
    for name in shape.retrievers:
        part = RETRIEVERS[name].to_sql(visible)
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
        WITH {all_kinds_filter.ctes} {ASKED_TERMS}
        begun AS MATERIALIZED (SELECT clock_timestamp() AS at), {"".join(parts)}
        found AS MATERIALIZED ({union_sql(shape.retrievers)})
        SELECT CASE WHEN row_number() OVER () = 1 THEN {timings_sql(shape.retrievers)} END
            AS timings, scored.* FROM begun
        {" ".join(f"CROSS JOIN {name}_end" for name in shape.retrievers)}
        LEFT JOIN ({scored_sql(shape)}) AS scored ON true"""
    if shape.partition:
        text = name_partition(text, shape.partition)
    statement = Sql(text=text, parameters={**all_kinds_filter.parameters, **own.parameters})
    return statement.numbered(plans_once=shape.keeps_plan)


def filter_sql(shape: GatheringShape, table: str) -> str:
    """Return the question's filters as a condition on rows of `memories` or of `memory_vectors`."""
    text = f" AND NOT {ID_COLUMNS[table]} = ANY(%(without)s::uuid[])"
    if not shape.kinds or Kind.FACT.value in shape.kinds:
        text += f" AND {true_facts_sql(shape, table, further=f' AND {CONFIDENT}')}"
    if shape.has_contexts:
        text += " AND context_id = ANY(%(contexts)s::uuid[])"
    if shape.has_types:
        text += f" AND {memory_sql('{own}.entry_type', table=table)} = ANY(%(types)s::text[])"
    if shape.has_slots:
        text += f" AND {memory_sql('{own}.slot', table=table)} = ANY(%(slots)s::text[])"
    text += " AND event_time >= %(since)s::timestamptz" if shape.has_since else ""
    text += " AND event_time < %(until)s::timestamptz" if shape.has_until else ""
    if shape.scopes:
        within = [scope_condition(Scope(scope), table=table) for scope in shape.scopes]
        text += f" AND (({') OR ('.join(within)}))"
    return text


def true_facts_sql(shape: GatheringShape, table: str, *, further: str = "") -> str:
    """Return the condition that facts were true, and believed, at the times asked for. Rows of other kinds pass.

    `further` is a condition on what was believed, which is called `{0}` in it.
    """
    if shape.has_known_at:
        fact = FACTS_BELIEVED_THEN.format(memory_id=ID_COLUMNS[table], further=further.format("known"))
    else:
        fact = memory_sql(f"{TRUE_AND_BELIEVED_NOW}{further.format('{own}')}", table=table)
    return f"CASE {table}.kind WHEN 'fact' THEN {fact} ELSE true END"


def union_sql(retrievers: Sequence[str]) -> str:
    """Return a SELECT of each found memory once. `ways` has bit n set if retriever n found it."""
    found = "SELECT id, hops, distance, part_of"
    each = [f"{found}, {1 << place} AS way FROM {name}" for place, name in enumerate(retrievers)]
    return f"""
        SELECT id, min(hops) AS hops, min(distance) AS distance, bit_or(way) AS ways,
            (array_agg(part_of) FILTER (WHERE part_of IS NOT NULL))[1] AS part_of
        FROM ({" UNION ALL ".join(each)}) AS each GROUP BY id"""


def timings_sql(retrievers: Sequence[str]) -> str:
    """Return a JSON array of how long each retriever took, how many rows it found, and if it was left out."""
    ends = ["begun", *(f"{name}_end" for name in retrievers)]
    timings = [
        f"json_build_array(extract(epoch FROM {end}.at - {before}.at)::float8 * 1000, {end}.rows, {end}.was_left)"
        for before, end in pairwise(ends)
    ]
    return f"json_build_array({', '.join(timings)})"


def scored_sql(shape: GatheringShape) -> str:
    """Return a SELECT of every found memory with its scores by words and by meaning.

    OFFSET 0 makes the planner look memories up one by one; it would read whole tables for some hundreds.
    """
    columns: list[str] = [*COLUMNS, STATUS]
    joins: list[str] = []
    if shape.has_known_at:
        columns = [COLUMNS_BELIEVED_THEN.get(column, column) for column in columns]
        joins.append(JOIN_BELIEVED_VERSION)
    similarity = gist = "NULL::float8"
    own = f"""SELECT own.vector FROM memory_vectors AS own
        WHERE own.account_id = %(account_id)s AND own.memory_id = memories.id
            AND own.model = %(model)s AND own.width = {shape.width}"""
    if not shape.has_passages:
        # of a text that got passages since the question was analyzed, the whole
        own += " AND own.passage = 0"
    if shape.width and shape.has_passages:
        joins.append(f"LEFT JOIN LATERAL ({best_passage_sql(shape)}) AS own ON true")
        columns += ["own.passages", "own.passage_start", "own.passage_end"]
        similarity, gist = "own.similarity", "own.gist"
    elif shape.has_gist:
        joins.append(f"LEFT JOIN LATERAL ({own} OFFSET 0) AS own ON true")
        similarity = "1 - (own.vector <=> %(vector)s::halfvec)"
        gist = "1 - (own.vector <=> %(gist_vector)s::halfvec)"
    elif shape.width:
        # vectors of what `vector` found are not read again
        similarity = f"1 - coalesce(found.distance, ({own}) <=> %(vector)s::halfvec)"
    if shape.has_gist:
        columns.append(f"{gist} AS gist")
    # what no retriever of the statement finds is as in a new Candidate
    found = [name for name, retriever in FOUND_BY.items() if retriever in shape.retrievers]
    return f"""
        SELECT own.*, {", ".join(f"found.{name}" for name in ("ways", *found))} FROM found CROSS JOIN LATERAL (
            SELECT {", ".join(columns)}, {similarity} AS similarity, words.*
            FROM memories {" ".join(joins)} CROSS JOIN LATERAL ({term_scores_sql(shape)}) AS words
            WHERE memories.account_id = %(account_id)s AND memories.id = found.id OFFSET 0
        ) AS own"""


def best_passage_sql(shape: GatheringShape) -> str:
    """Return a SELECT of the greatest similarities of the current row's vectors, and the range of the best passage.

    A vector of the whole text counts as well, so that one that a client sent counts alone.
    """
    gist = "1 - min(own.vector <=> %(gist_vector)s::halfvec)" if shape.has_gist else "NULL::float8"
    best = "ORDER BY own.vector <=> %(vector)s::halfvec, passage) FILTER (WHERE passage > 0))[1]"
    return f"""
        SELECT 1 - min(own.vector <=> %(vector)s::halfvec) AS similarity, {gist} AS gist,
            count(*) FILTER (WHERE passage > 0) AS passages,
            (array_agg(passage_start {best} AS passage_start, (array_agg(passage_end {best} AS passage_end
        FROM memory_vectors AS own
        WHERE own.account_id = %(account_id)s AND own.memory_id = memories.id
            AND own.model = %(model)s AND own.width = {shape.width}"""


def parse_gathered_rows(
    columns: Sequence[str], rows: Sequence[tuple[Any, ...]], names: Sequence[str]
) -> GatheredCandidates:
    """Parse the result. At least one row comes back, and one of them has the timings of the retrievers."""
    timings, identifier = columns.index("timings"), columns.index("id")
    [measured] = [row[timings] for row in rows if row[timings] is not None]
    metrics = [
        Metric(technique=name, took_ms=round(took_ms, 3), results=results)
        for name, (took_ms, results, _) in zip(names, measured, strict=True)
    ]
    return GatheredCandidates(
        candidates=make_candidates(columns, [row for row in rows if row[identifier] is not None], names),
        metrics=metrics,
        dropped=[name for name, (_, _, was_left) in zip(names, measured, strict=True) if was_left],
    )


def make_candidates(columns: Sequence[str], rows: Sequence[tuple[Any, ...]], names: Sequence[str]) -> list[Candidate]:
    """Return a Candidate per row. `columns` are its fields and more; `ways` has bits instead of names."""
    kind, ways, text = (columns.index(name) for name in ("kind", "ways", "text"))
    names_of = {
        bits: frozenset(name for place, name in enumerate(names) if bits >> place & 1)
        for bits in {row[ways] for row in rows}
    }
    kinds = {each.value: each for each in all_kinds()}
    pick, defaults = candidate_arguments((*columns, *COMPUTED))
    return [
        Candidate(*pick((*row, kinds[row[kind]], names_of[row[ways]], len(row[text]) > MAX_TEXT_CHARACTERS, *defaults)))
        for row in rows
    ]


COMPUTED = ("kind", "ways", "is_cut")
"""Fields of a Candidate that follow a row of the statement."""


@lru_cache(maxsize=64)
def candidate_arguments(columns: tuple[str, ...]) -> tuple[Callable[[Sequence[Any]], tuple[Any, ...]], tuple[Any, ...]]:
    """Return what puts values of these fields into the order of a Candidate's, and the defaults to add to the values.

    Of a field that is named twice the later value counts.
    """
    own = fields(Candidate)
    places = {name: place for place, name in enumerate(columns)}
    needed = own[: 1 + max(number for number, each in enumerate(own) if each.name in places)]
    missing = [each for each in needed if each.name not in places]
    places |= {each.name: len(columns) + number for number, each in enumerate(missing)}
    return itemgetter(*(places[each.name] for each in needed)), tuple(each.default for each in missing)
