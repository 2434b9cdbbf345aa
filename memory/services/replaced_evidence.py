"""Links between turns that facts tell of: what replaced the evidence of a fact, and how much of it was replaced.

Where a fact supersedes others, the turns that are its evidence replace those that are theirs. A link of greater weight
marks the earlier turn, unless that says more than what was superseded.
"""

from collections.abc import Collection, Sequence
from uuid import UUID

from memory.extraction.statement_words import says_no_more
from memory.models import Link
from memory.models.statements import fetch_rows
from memory.scoring import SURE_REPLACEMENT
from memory.services.memories.links import REPLACES, NewLink, insert_links

# the facts that the turn `before` is evidence of: how many hold still, and what the others claim
LEARNED = """CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE fact.status = 'active') AS holding,
        array_agg(fact.text) FILTER (WHERE fact.status <> 'active') AS ended
    FROM memory_links AS also JOIN memories AS fact
        ON fact.account_id = %(account_id)s AND fact.id = also.source_id
    WHERE also.account_id = %(account_id)s AND also.type = 'DERIVED_FROM' AND also.target_id = before.id
        AND fact.kind = 'fact'
) AS learned"""
EVIDENCE_PAIRS = f"""
SELECT newer.target_id, older.target_id, before.text, learned.holding, learned.ended
FROM memory_links AS newer
JOIN memories AS said ON said.account_id = %(account_id)s AND said.id = newer.target_id AND said.kind = 'turn'
JOIN memory_links AS older ON older.account_id = %(account_id)s AND older.type = 'DERIVED_FROM'
    AND older.source_id = ANY(%(older)s::uuid[])
JOIN memories AS before ON before.account_id = %(account_id)s AND before.id = older.target_id AND before.kind = 'turn'
{LEARNED}
WHERE newer.account_id = %(account_id)s AND newer.source_id = %(newer)s AND newer.type = 'DERIVED_FROM'
    AND before.event_time < said.event_time
"""  # noqa: S608 (composed of constants alone)
SURE_LINKS = f"""
SELECT link.id, before.text, learned.holding, learned.ended FROM memory_links AS link
JOIN memories AS before ON before.account_id = %(account_id)s AND before.id = link.target_id AND before.kind = 'turn'
{LEARNED}
WHERE link.account_id = %(account_id)s AND link.type = 'REPLACES' AND link.weight >= {SURE_REPLACEMENT}
    AND (link.source_id = ANY(%(ids)s::uuid[]) OR link.target_id = ANY(%(ids)s::uuid[]))
"""  # noqa: S608 (composed of constants alone)
WHOLE_TURN, PART_OF_TURN = 0.9, 0.4
"""Weights of links where facts tell whether all that the earlier turn says was superseded, which marks it."""


def link_replaced_evidence(account_id: UUID, *, newer: UUID, older: Sequence[UUID]) -> int:
    """Link the turns that are evidence of a fact to the earlier ones that are evidence of those it superseded.

    A turn that says more than what was superseded gets a link of less weight, which orders but does not mark: other
    active facts rest upon it, or no fact was learned from another sentence of it. One statement, and as many as
    `add_links` needs. Returns the number of new links.
    """
    weights = {
        (said, before): WHOLE_TURN if not holding and says_no_more(text, ended or ()) else PART_OF_TURN
        for said, before, text, holding, ended in fetch_rows(
            EVIDENCE_PAIRS, {"account_id": account_id, "newer": newer, "older": list(older)}
        )
    }
    return add_links(
        account_id,
        [
            NewLink(source_id=said, type=REPLACES, target_id=before, weight=weight)
            for (said, before), weight in weights.items()
        ],
    )


def weaken_partial_replacements(account_id: UUID, ids: Collection[UUID]) -> int:
    """Let links of these turns that surely replace, or are replaced, mark nothing if the earlier one says more.

    It does if other active facts rest upon it, or if one of its facts has ended and no fact was learned from another
    sentence of it. Two statements at most. Returns how many links got less weight.
    """
    parameters = {"account_id": account_id, "ids": list(ids)}
    partial = [
        link_id
        for link_id, text, holding, ended in fetch_rows(SURE_LINKS, parameters)
        if holding > 1 or (ended and (holding or not says_no_more(text, ended)))
    ]
    if not partial:
        return 0
    return Link.objects.filter(account_id=account_id, id__in=partial).update(weight=PART_OF_TURN)


def add_links(account_id: UUID, links: Sequence[NewLink]) -> int:
    """Store links, or raise the weights of those that exist with a smaller one. Returns the number of new links."""
    if not links:
        return 0
    ends = {"source_id__in": {link.source_id for link in links}, "target_id__in": {link.target_id for link in links}}
    rows = Link.objects.filter(account_id=account_id, type=REPLACES, **ends)
    known = {(row.source_id, row.target_id): row for row in rows}
    # the surest of each pair, which may have been found from both of its ends
    surest = {(each.source_id, each.target_id): each for each in sorted(links, key=lambda link: link.weight)}
    new = [link for ends_of, link in surest.items() if ends_of not in known]
    insert_links(account_id, new)
    for ends_of, link in surest.items():
        row = known.get(ends_of)
        if row is not None and row.weight < link.weight:
            Link.objects.filter(account_id=account_id, id=row.id, weight__lt=link.weight).update(weight=link.weight)
    return len(new)
