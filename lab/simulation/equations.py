"""Equations by which the figures of each job explain the changes. Any other change is unexplained.

An equation says that the changes of some counts, each with its sign, add up to a figure of the job, or to zero. Counts
are named by patterns (`memories * live`). Laws hold for every job and for all that people do.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from uuid import UUID

from lab.simulation.counts import Counts
from memory.kinds import all_specs


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The figures of the runs of a job, added up."""

    runs: int
    examined: int
    changed: int
    failed: int
    figures: Mapping[str, int] = field(default_factory=dict)

    def figure(self, *names: str) -> int:
        """Return the sum of these figures; a missing one counts as 0."""
        return sum(self.figures.get(name, 0) for name in names)


Explains = Callable[[Done], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Equation:
    """The changes of what `counts` name, times their signs, add up to `total`.

    It explains whatever it names, a law only what is in `of`.
    """

    counts: Mapping[str, int]
    total: Explains
    of: Sequence[str] = ()

    def explains(self, name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in self.of or self.counts)

    def difference(self, changed: Counts, done: Done) -> int:
        found = sum(
            number * sign
            for name, number in changed.items()
            for pattern, sign in self.counts.items()
            if fnmatchcase(name, pattern)
        )
        return abs(found - self.total(done))

    def __str__(self) -> str:
        return ", ".join(f"{'' if sign > 0 else '-'}{name}" for name, sign in self.counts.items()) or "figures alone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unexplained:
    """The difference by which a count, or an equation of several counts, is off."""

    what: str
    count: int


def nothing(_done: Done) -> int:
    return 0


def changed(done: Done) -> int:
    return done.changed


def figures(*names: str) -> Explains:
    return lambda done: done.figure(*names)


def fewer(*names: str) -> Explains:
    return lambda done: -done.figure(*names)


def equal(total: Explains, *counts: str) -> Equation:
    """Return the equation that the counts together grew by the total."""
    return Equation(counts=dict.fromkeys(counts, 1), total=total)


def balanced(one: str, other: str) -> Equation:
    """Return the equation that both counts grew by the same number."""
    return Equation(counts={one: 1, other: -1}, total=nothing)


EXTRACTED_LINKS = "from extractions: links made"
"""Counted from the audit log."""
REPLACEMENTS = Equation(counts={"links REPLACES": 0}, total=nothing)
"""No figure counts the links from what is stored or gets its vector to what it may replace."""
MERGED_KINDS = tuple(spec.name for spec in all_specs() if spec.merging)

LAWS = (
    # each memory has a vector, or waits for one
    Equation(
        counts={"memories * *": 1, "vectors *": -1, "unembedded": -1}, total=nothing, of=("vectors *", "unembedded")
    ),
    # words are counted of what is live
    Equation(counts={"memories * live": 1, "documents": -1}, total=nothing, of=("documents",)),
    # a fact is a memory, and an entity goes by its own names
    Equation(counts={"memories fact *": 1, "facts *": -1}, total=nothing, of=("facts active",)),
    Equation(counts={"fact versions *": 1, "beliefs of facts": -1}, total=nothing, of=("beliefs of facts",)),
    balanced("entity names", "names of entities"),
    balanced("strategy tools", "tools named by strategies"),
    # each conversation is looked through, or is due, or parked
    Equation(
        counts={f"conversations {state}": 1 for state in ("extracted", "to extract", "extraction parked")}
        | {"conversations": -1},
        total=nothing,
        of=("conversations extracted", "conversations to extract"),
    ),
)
WORDS = Equation(counts={}, total=nothing, of=("terms",))
"""Rows of the counts of words are as many as there are words in what was written: nobody counts them but who folds."""

OF_JOBS: Mapping[str, Sequence[Equation]] = {
    "audit_partitions": [equal(changed, "partitions")],
    "cleanup": [
        equal(figures("conversations"), "conversations archived"),
        equal(figures("conversations"), "audited archive conversation"),
        equal(nothing, "memories turn *"),
        balanced("memories turn archived", "turns of archived conversations"),
        equal(fewer("access_log"), "access log *"),
    ],
    "clear_ended": [equal(changed, "conversations cleared")],
    "compress": [
        equal(figures("slots"), "memories turn_slot *"),
        # what was stored and is no slot of a record is a work episode, merged or archived
        Equation(counts={"memories work_episode *": 1, "records of level 0": -1}, total=changed),
        equal(figures("archived"), "memories work_episode archived"),
        equal(figures("merged"), "records of level 2", "records of level 3"),
        equal(nothing, "records of level *"),
        Equation(
            counts={"memories turn_slot *": 1, "memories work_episode *": 1, "audited store episodic": -1},
            total=nothing,
        ),
        Equation(
            counts={"memories turn_slot archived": 1, "memories work_episode archived": 1, "links DERIVED_FROM": -1},
            total=nothing,
        ),
        balanced("links DERIVED_FROM", "audited archive episodic"),
        # all work in the script has a goal
        balanced("links WORKS_ON", "audited store episodic"),
    ],
    "extract_knowledge": [
        equal(lambda done: done.figure("in") - done.figure("learnt", "merged", "refused", "failed")),
        equal(figures("entities_learnt"), "memories entity *"),
        equal(figures("facts_learnt"), "memories fact *"),
        equal(figures("preferences_learnt"), "preferences"),
        # no figure counts them: the audit log does, whose entries are of the same transactions
        balanced("links *", EXTRACTED_LINKS),
        balanced("fact versions *", "beliefs of facts"),
        equal(figures("facts_learnt"), "fact versions learned"),
        equal(figures("entities_learnt", "facts_learnt"), "audited store semantic"),
        equal(figures("facts_superseded"), "facts superseded"),
        equal(figures("facts_superseded", "corrections", "successions"), "audited supersede semantic"),
        equal(changed, "audited extract semantic"),
        balanced("audited create profile", "profiles"),
        equal(figures("preferences_learnt", "preferences_merged"), "audited create profile", "audited update profile"),
    ],
    "find_contradictions": [
        equal(figures("facts_superseded"), "facts superseded"),
        equal(figures("facts_superseded"), "links SUPERSEDES"),
        equal(figures("turns_replaced"), "links REPLACES"),
        equal(lambda done: 2 * done.figure("facts_superseded"), "audited supersede semantic"),
        balanced("fact versions *", "beliefs of facts"),
    ],
    "link_replacements": [equal(figures("links_made"), "links REPLACES")],
    "context_rot": [
        equal(figures("entries_archived"), "memories context_entry archived"),
        equal(nothing, "memories context_entry *"),
        equal(figures("entries_archived"), "access log archive"),
        equal(figures("entries_archived"), "audited archive *"),
    ],
    "deduplicate": [
        *(equal(figures(f"{kind}_merged"), f"memories {kind} archived") for kind in MERGED_KINDS),
        *(equal(nothing, f"memories {kind} *") for kind in MERGED_KINDS),
        equal(figures("links_made"), "links *"),
        equal(figures("fact_versions_made"), "fact versions *"),
        equal(figures("access_log_lines"), "access log *"),
        equal(lambda done: 2 * done.changed, "audited deduplicate *"),
        # a survivor that was believed less than the other
        balanced("audited confirm semantic", "fact versions confirmed"),
    ],
    "embed": [
        equal(changed, "vectors *"),
        equal(lambda done: -done.changed, "unembedded"),
        REPLACEMENTS,
    ],
    "expire": [
        equal(fewer("short_term"), "short-term *"),
        equal(fewer("tool_cache"), "results of tools"),
        equal(fewer("pools"), "pools"),
        equal(fewer("answers"), "answers"),
    ],
    "promote_short_term": [
        equal(lambda done: -done.changed, "short-term waiting"),
        equal(changed, "entry versions"),
        equal(changed, "access log create", "access log update"),
        balanced("memories context_entry live", "access log create"),
        equal(changed, "audited store semantic", "audited update semantic"),
        equal(changed, "audited promote short_term"),
    ],
    "journal_injections": [equal(changed, "injections *")],
    "measure": [equal(lambda done: done.figure("samples_taken") - done.figure("samples_deleted"), "samples")],
    "patterns": [
        equal(figures("goals"), "goals looked at for patterns"),
        equal(figures("conversations"), "conversations looked at for patterns"),
        equal(figures("strategies_learnt", "failures_learnt"), "memories strategy *"),
        equal(figures("strategies_learnt", "failures_learnt"), "audited store procedural"),
        equal(figures("strategies_learnt", "strategies_counted"), "strategy uses *"),
        balanced("strategy uses succeeded", "strategies succeeded"),
        balanced("strategy uses failed", "strategies failed"),
        balanced("strategy uses *", "audited reinforce procedural"),
    ],
    "globalize_facts": [
        equal(figures("facts_promoted"), "memories fact *"),
        equal(figures("versions_made"), "fact versions *"),
        equal(figures("links_made"), "links *"),
        equal(figures("facts_promoted"), "audited store semantic"),
        # both are named: the fact, and what became of it in `_global`
        equal(lambda done: 2 * done.changed, "audited promote semantic"),
    ],
    "queue_unembedded": [equal(changed, "unembedded")],
    "recall_statistics": [equal(lambda done: -done.changed, "terms")],
    "summarize": [
        equal(figures("episodes_stored"), "memories episode *"),
        equal(figures("episodes_archived"), "memories episode archived"),
        equal(figures("links_made"), "links SUPERSEDES"),
        equal(figures("episodes_stored"), "audited store episodic"),
        equal(figures("episodes_archived"), "audited archive episodic"),
        equal(lambda done: -done.changed, "conversations to summarize"),
        balanced("turns summarized", "turns covered by summaries"),
        REPLACEMENTS,
    ],
    "vector_indexes": [equal(changed, "vector indexes")],
    "write_access_log": [equal(changed, "access log *"), equal(changed, "access counts")],
    "write_audit_reads": [equal(figures("reads_written"), "reads audited")],
}


def explain(job: str, changes: Counts, done: Done) -> list[Unexplained]:
    """Return the changes that the job's figures and the laws leave unexplained."""
    equations = [*OF_JOBS.get(job, ()), equal(runs_left, "job runs"), *LAWS]
    return find_unexplained(equations, changes, done)


def runs_left(done: Done) -> int:
    """Return the job's own runs, less the old ones that it deleted."""
    return done.runs - done.figure("job_runs")


def find_unexplained(equations: Sequence[Equation], changes: Counts, done: Done) -> list[Unexplained]:
    """Return the equations that do not hold, with the difference, and changes that no equation mentions."""
    wrong = [
        Unexplained(what=str(equation), count=difference)
        for equation in equations
        if (difference := equation.difference(changes, done))
    ]
    known = [*equations, *([] if any(each.explains("terms") for each in equations) else [WORDS])]
    unknown = [
        Unexplained(what=name, count=abs(number))
        for name, number in changes.items()
        if not any(equation.explains(name) for equation in known)
    ]
    return [*wrong, *unknown]


Worths = Mapping[tuple[UUID, str], float]
"""The salience of memories by id and kind, and the confidence of facts by id and the word `confidence`."""


def explain_fading(job: str, before: Worths, after: Worths, done: Done) -> list[Unexplained]:
    """Compare the figures of `decay`, kind by kind, with the memories whose salience changed."""
    if job != "decay":
        return []
    found = Counter(what for (memory_id, what), worth in after.items() if before.get((memory_id, what)) != worth)
    reported = {what: done.figure(name_of_fading(what)) for what in {what for _id, what in after}}
    return [
        Unexplained(what=name_of_fading(what), count=abs(number - found[what]))
        for what, number in sorted(reported.items())
        if number != found[what]
    ]


def name_of_fading(what: str) -> str:
    return what if what == "confidence" else f"salience_{what}"
