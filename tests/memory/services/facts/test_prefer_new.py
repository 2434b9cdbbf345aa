"""Preferring the newer of two contradicting facts: by when they were said, and when they begin."""

from datetime import datetime, timedelta

import pytest

from memory.models import Fact
from memory.services.facts.learn import FactDraft
from memory.services.facts.review import Rival, prefer_new
from tests.memory.knowledge import TURN_TIME

NEVER = None


def day(number: int) -> datetime:
    return TURN_TIME + timedelta(days=number)


def rival(first: int, *, last: int | None = None, begins: int | None = None, temporal: str = "current") -> Rival:
    """Return a rival that was said first and last on these days, and that is true from day `begins` on."""
    fact = Fact(
        text="Ana lives in Porto",
        temporal=temporal,
        event_time=day(first),
        valid_from=None if begins is None else day(begins),
    )
    return Rival(fact=fact, similarity=0.8, said_at=day(first if last is None else last))


@pytest.mark.parametrize(
    ("name", "draft", "rivals", "span", "outdated"),
    [
        ("said later", {}, [rival(0)], (30, NEVER), 1),
        ("said later, of two channels", {}, [rival(0), rival(5)], (30, NEVER), 2),
        ("said later, and with its own start", {"valid_from": 20}, [rival(0)], (20, NEVER), 1),
        ("said later, and true since before the other began", {"valid_from": -9}, [rival(0, begins=0)], (-9, NEVER), 1),
        ("said earlier, extracted later", {}, [rival(40)], (NEVER, 40), 0),
        ("said earlier than one that holds since before", {}, [rival(40, begins=10)], (NEVER, 40), 0),
        ("said between two times that the other was said", {}, [rival(0, last=60)], (NEVER, 60), 0),
        ("a plan is dated later", {}, [rival(0, begins=50, temporal="future")], (NEVER, 50), 0),
        ("a plan without a date", {}, [rival(0, temporal="future")], (NEVER, NEVER), 0),
        ("the other is over", {}, [rival(0, temporal="past")], (NEVER, NEVER), 0),
        ("it is planned", {"temporal": "future"}, [rival(0)], (NEVER, NEVER), 0),
        ("it is no longer so", {"temporal": "past"}, [rival(0)], (30, NEVER), 1),
        ("it was so since some day", {"temporal": "past", "valid_from": -99}, [rival(0)], (-99, NEVER), 0),
        ("it ended before it was said", {"valid_to": 10}, [rival(0)], (NEVER, 10), 0),
        ("it ends before the other begins", {"valid_to": 35}, [rival(40)], (NEVER, 35), 0),
        ("nothing contradicts it", {}, [], (NEVER, NEVER), 0),
    ],
)
def test_the_newer_claim_is_preferred(
    name: str, draft: dict[str, object], rivals: list[Rival], span: tuple[int | None, int | None], outdated: int
) -> None:
    """The new claim is said on day 30."""
    days = {key: day(value) for key, value in draft.items() if isinstance(value, int)}
    temporal = str(draft.get("temporal", "current"))
    new = FactDraft(claim="Ana lives in Lisbon", temporal=temporal, **days)  # type: ignore[arg-type]

    verdict = prefer_new(new, rivals, said_at=day(30))

    wanted = tuple(None if number is None else day(number) for number in span)
    assert ((verdict.draft.valid_from, verdict.draft.valid_to), len(verdict.outdated)) == (wanted, outdated), name


def test_an_end_before_the_beginning_leaves_the_beginning_open() -> None:
    draft = FactDraft(claim="Ana lives in Lisbon", valid_from=day(45))

    verdict = prefer_new(draft, [rival(40)], said_at=day(30))

    assert (verdict.draft.valid_from, verdict.draft.valid_to) == (None, day(40))
