"""The whole texts of results: candidates come with the beginning of theirs."""

from collections.abc import Sequence

from memory.owner import Owner
from memory.retrieval.candidates import Candidate
from memory.retrieval.statements import Sql, numbered

WHOLE = numbered(
    Sql(
        text="SELECT id, text FROM memories WHERE account_id = %(account_id)s AND id = ANY(%(ids)s::uuid[])",
        parameters={},
    )
)


def read_whole(owner: Owner, candidates: Sequence[Candidate]) -> None:
    """Give those whose texts were cut all of theirs, which the owner was found to see. One statement, or none.

    No claim is so long that it would be cut: what was believed once stays what is told.
    """
    cut = {each.id: each for each in candidates if each.is_cut}
    if not cut:
        return
    _columns, rows = WHOLE.read({"account_id": owner.account_id, "ids": list(cut)})
    for memory_id, text in rows:
        cut[memory_id].text, cut[memory_id].is_cut = text, False
