"""Facts end when their statement was surely replaced, also where nothing is learned from what replaced it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from memory.extraction.fact_endings import ENDING_FLOOR
from memory.maintenance import Batch
from memory.maintenance.fact_jobs import find_contradictions
from memory.models import Account, Conversation, Fact, Link, Turn
from memory.owner import Owner
from memory.scoring import POSSIBLE_REPLACEMENT, SURE_REPLACEMENT
from memory.services.facts.globalize import globalize_fact
from memory.services.facts.outdate import OutdatedFact
from memory.services.facts.store import read_visible_history
from memory.services.memories.links import REPLACES, NewLink, insert_links
from tests.memory.episodes import NOTHING, NOW
from tests.memory.knowledge import TURN_TIME, extract_all, say_sentences
from tests.memory.turns import say, turn

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]

EARLIER, LATER = "Our standup is at 9:15.", "standup got bumped, 45 minutes more sleep for everybody"
COFFEE = "Coffee went up to 4 euros"
CLAIM = "The user's standup is at 9:15"
LATER_AT = TURN_TIME + timedelta(days=30)


@pytest.fixture
def user(owner: Owner) -> Owner:
    return replace(owner, user_id="u1")


def say_one(owner: Owner, *sentences: str, days: int, name: str = "") -> None:
    at = TURN_TIME + timedelta(days=days)
    say_sentences(owner, *sentences, name=name, conversation_id=f"day-{days}", at=at)


def link(owner: Owner, *, weight: float = SURE_REPLACEMENT) -> None:
    """Link the last turn to the first one."""
    first, *_others, last = Turn.objects.order_by("event_time", "index")
    insert_links(owner.account_id, [NewLink(source_id=last.id, type=REPLACES, target_id=first.id, weight=weight)])


def replace_statement(
    owner: Owner, *earlier: str, later: str = LATER, name: str = "", weight: float = SURE_REPLACEMENT
) -> None:
    """Learn from the earlier statements, and extract the later one after it was linked to the first of them."""
    say_one(owner, *(earlier or [EARLIER]), days=0)
    extract_all(NOW)
    say_one(owner, later, days=30, name=name)
    link(owner, weight=weight)
    extract_all(NOW)


def test_the_fact_ends_when_the_later_statement_was_made(user: Owner) -> None:
    replace_statement(user)

    [fact] = Fact.objects.all()
    [replacing] = Turn.objects.filter(text=LATER)
    assert (fact.text, fact.status, fact.valid_to) == (CLAIM, "superseded", LATER_AT)
    assert read_visible_history(user, fact).superseded_by == [replacing.id]


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        (EARLIER, f"{LATER}. Could you move my alarm?"),
        (f"{EARLIER} What should I eat before it?", LATER),
    ],
)
def test_a_question_besides_it_changes_nothing(user: Owner, earlier: str, later: str) -> None:
    replace_statement(user, earlier, later=later)

    assert Fact.objects.get(text=CLAIM).status == "superseded"


def test_it_ends_too_where_the_earlier_statement_is_extracted_last(user: Owner) -> None:
    say_one(user, LATER, days=30)
    extract_all(NOW)
    say_one(user, EARLIER, days=0)
    link(user)

    extract_all(NOW)

    assert Fact.objects.get().valid_to == LATER_AT


@pytest.mark.parametrize(
    ("earlier", "later", "name", "weight"),
    [
        pytest.param([EARLIER], LATER, "", POSSIBLE_REPLACEMENT, id="hardly replaced"),
        pytest.param([EARLIER], LATER, "Ana", SURE_REPLACEMENT, id="somebody else says it"),
        pytest.param([EARLIER], "Is standup at ten now?", "", SURE_REPLACEMENT, id="a question"),
        pytest.param([EARLIER], "Is standup at ten now? Thanks!", "", SURE_REPLACEMENT, id="a question and thanks"),
        pytest.param([f"{EARLIER} Coffee costs 3 euros."], COFFEE, "", SURE_REPLACEMENT, id="other words of it"),
        pytest.param([EARLIER, EARLIER], LATER, "", SURE_REPLACEMENT, id="it was said twice"),
        pytest.param([f"{EARLIER} {'It rained and rained. ' * 12}"], LATER, "", SURE_REPLACEMENT, id="a long turn"),
    ],
)
def test_it_holds_on_unless_its_statement_was_surely_replaced(
    user: Owner, earlier: list[str], later: str, name: str, weight: float
) -> None:
    replace_statement(user, *earlier, later=later, name=name, weight=weight)

    assert Fact.objects.get(text=CLAIM).status == "active"


@pytest.mark.parametrize(
    ("later", "statuses"),
    [
        (LATER, {CLAIM: "superseded", "The user lives in Porto": "active"}),
        ("packed the boxes, goodbye Porto", {CLAIM: "active", "The user lives in Porto": "superseded"}),
        ("packed the boxes at last, what a day", {CLAIM: "active", "The user lives in Porto": "active"}),
    ],
)
def test_of_two_facts_of_one_turn_the_one_that_the_later_statement_speaks_of_ends(
    user: Owner, later: str, statuses: dict[str, str]
) -> None:
    replace_statement(user, f"{EARLIER} I live in Porto.", later=later)

    assert dict(Fact.objects.values_list("text", "status")) == statuses


@pytest.mark.parametrize(
    ("role", "conversation_id", "status"),
    [
        pytest.param("assistant", "day-0", "superseded", id="the answer to it"),
        pytest.param("user", "day-0", "active", id="the speaker again"),
        pytest.param("assistant", "other", "active", id="an answer to something else"),
    ],
)
def test_an_answer_that_repeats_the_statement_is_no_other_statement(
    user: Owner, role: str, conversation_id: str, status: str
) -> None:
    say_one(user, EARLIER, days=0)
    again = say(
        user, turn("Got it, 9:15 for the standup.", role=role, timestamp=TURN_TIME), conversation_id=conversation_id
    )
    extract_all(NOW)
    say_one(user, LATER, days=30)
    link(user)
    later = Turn.objects.get(text=LATER)
    insert_links(
        user.account_id, [NewLink(source_id=later.id, type=REPLACES, target_id=again.turns[0].id, weight=0.99)]
    )

    extract_all(NOW)

    assert Fact.objects.get(text=CLAIM).status == status


@pytest.mark.parametrize(("weight", "status"), [(0.99, "active"), (0.7, "superseded")])
def test_it_holds_on_where_another_statement_was_far_more_surely_replaced(
    user: Owner, weight: float, status: str
) -> None:
    say_one(user, EARLIER, days=0)
    extract_all(NOW)
    say_one(user, "the bus leaves at nine", days=10)
    say_one(user, LATER, days=30)
    link(user)
    _first, bus, later = Turn.objects.order_by("event_time")
    insert_links(user.account_id, [NewLink(source_id=later.id, type=REPLACES, target_id=bus.id, weight=weight)])

    extract_all(NOW)

    assert Fact.objects.get(text=CLAIM).status == status


@pytest.mark.parametrize("policy", ["prefer_old", "flag_review"])
def test_accounts_that_do_not_prefer_new_facts_keep_it(user: Owner, account: Account, policy: str) -> None:
    Account.objects.filter(id=account.id).update(contradictions=policy)

    replace_statement(user)

    assert Fact.objects.get().status == "active"


@pytest.mark.parametrize("changes", [{"pinned": True}, {"source": "api"}])
def test_what_somebody_stored_or_pinned_is_kept(user: Owner, changes: dict[str, object]) -> None:
    say_one(user, EARLIER, days=0)
    extract_all(NOW)
    Fact.objects.update(**changes)
    say_one(user, LATER, days=30)
    link(user)

    extract_all(NOW)

    assert Fact.objects.get().status == "active"


def test_it_is_learned_again_once_it_is_said_again(user: Owner) -> None:
    replace_statement(user)

    say_one(user, EARLIER, days=40)
    extract_all(NOW + timedelta(days=50))

    assert sorted(Fact.objects.values_list("status", flat=True)) == ["active", "superseded"]


def outdated(claim: str, statement: str, replacing: str, *others: str, weight: float = 0.9) -> OutdatedFact:
    some = UUID(int=1)
    return OutdatedFact(some, some, some, TURN_TIME, claim, statement, replacing, weight, others=others)


@pytest.mark.parametrize(
    ("claim", "statement", "replacing", "others", "expected"),
    [
        (CLAIM, EARLIER, LATER, (), True),
        (
            "The user works at Globex",
            "I work at Globex, parking costs 40 euros.",
            "Parking there is 60 now.",
            (),
            False,
        ),
        ("The user works at Globex", "I work at Globex, parking costs 40 euros.", "Globex let me go.", (), True),
        ("The user works at Globex", "I work at Globex, parking costs 40 euros.", "I was let go.", (), True),
        ("The user plays piano", "I play piano, lessons are on Mondays.", "lessons got bumped to thurs", (), False),
        ("Ana is 6", "Ana is 6 and Leo is 3.", "Leo turned four", ("Leo is 3",), False),
        ("Leo is 3", "Ana is 6 and Leo is 3.", "Leo turned four", ("Ana is 6",), True),
        ("Leo is 3", "Ana is 6 and Leo is 3.", "Another birthday done", ("Ana is 6",), False),
    ],
)
def test_the_later_statement_speaks_of_the_claim(
    claim: str, statement: str, replacing: str, others: Sequence[str], *, expected: bool
) -> None:
    found = outdated(claim, statement, replacing, *others)

    assert found.is_what_was_replaced is expected
    assert bool(found.probability) is expected


@pytest.mark.parametrize(
    ("replacing", "ends"),
    [
        ("Netflix is going up to £35 in March.", datetime(2026, 3, 1, tzinfo=UTC)),
        ("netflix will be £35 from March", datetime(2026, 3, 1, tzinfo=UTC)),
        ("standup moves to ten next week", datetime(2026, 2, 9, tzinfo=UTC)),
        ("Netflix went up to £35 in January.", TURN_TIME),
        ("Netflix is £35, the invoice of 3 March says.", TURN_TIME),
        ("Netflix is going up to £35.", TURN_TIME),
    ],
)
def test_it_holds_until_the_day_that_a_statement_on_what_is_to_come_names(replacing: str, ends: datetime) -> None:
    assert outdated(CLAIM, EARLIER, replacing).ends_at == ends


def test_a_fact_ends_on_the_day_of_the_change(user: Owner) -> None:
    replace_statement(user, "I pay £30 for Netflix.", later="Netflix is going up to £35 in June.")

    assert Fact.objects.get(text="The user pays £30 for Netflix").valid_to == datetime(2026, 6, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("later", "status"),
    [
        pytest.param("The tiler called it off, his new date for us is 30 June.", "superseded", id="another date"),
        pytest.param("The tiler came at noon.", "active", id="it was over by then"),
    ],
)
def test_what_is_to_come_ends_until_it_is_over(user: Owner, later: str, status: str) -> None:
    day = "9 June" if status == "superseded" else "10 February"
    replace_statement(user, f"The tiler comes for our bathroom on {day}.", later=later)

    fact = Fact.objects.get(text__startswith="The tiler comes for the user's bathroom")
    assert (fact.temporal, fact.status) == ("future", status)
    assert (fact.valid_to == LATER_AT) == (status == "superseded")


@pytest.mark.parametrize(
    ("later", "status"),
    [
        pytest.param("The budget of Project Heron is 240,000 euros.", "active", id="something else of the same"),
        pytest.param("Project Heron was moved to Rust.", "superseded", id="another value"),
    ],
)
def test_the_link_alone_ends_nothing(user: Owner, later: str, status: str) -> None:
    replace_statement(user, "Project Heron is written in Java.", later=later, weight=0.4)

    assert Fact.objects.get(text="Project Heron is written in Java").status == status


def test_the_earlier_turn_is_replaced_as_probably_as_its_fact(user: Owner) -> None:
    replace_statement(user, weight=0.4)

    [replaced] = Link.objects.filter(type=REPLACES)
    assert Fact.objects.get(text=CLAIM).status == "superseded"
    assert replaced.weight >= ENDING_FLOOR


def test_its_copy_in_global_ends_with_it(user: Owner) -> None:
    project = replace(user, channel="atlas")
    say_one(project, EARLIER, days=0)
    extract_all(NOW)
    globalize_fact(project, Fact.objects.get().id, reason="for all", embedded=NOTHING, now=NOW)
    say_one(project, LATER, days=30)
    link(project)

    extract_all(NOW)

    assert list(Fact.objects.values_list("status", "valid_to")) == [("superseded", LATER_AT)] * 2


def test_an_earlier_statement_that_is_extracted_again_brings_nothing_back(user: Owner) -> None:
    say_one(user, LATER, days=30)
    extract_all(NOW)
    say_one(user, EARLIER, days=0)
    link(user)
    extract_all(NOW)

    Conversation.objects.filter(conversation_id="day-0").update(extracted_count=0, extract_after=NOW)
    extract_all(NOW + timedelta(days=1))

    assert not Fact.objects.filter(status="active").exists()


@pytest.mark.parametrize("channel", ["garden", "atlas"])
def test_the_job_ends_what_was_linked_after_both_turns_had_been_extracted(user: Owner, channel: str) -> None:
    project = replace(user, channel=channel)
    say_one(project, EARLIER, days=0)
    say_one(project, LATER, days=30)
    extract_all(NOW)
    if channel == "atlas":
        globalize_fact(project, Fact.objects.get().id, reason="for all", embedded=NOTHING, now=NOW)
    link(project)

    reports = [run_contradictions(dry_run=dry_run) for dry_run in (True, False, False)]

    assert [each.get("outdated", 0) for each in reports] == [1, 1, 0]
    assert set(Fact.objects.values_list("status", "valid_to")) == {("superseded", LATER_AT)}


def run_contradictions(*, dry_run: bool) -> dict[str, int]:
    """Run all batches of the job, and return its figures."""
    figures: Counter[str] = Counter()
    cursor = None
    while cursor is None or cursor:
        report = find_contradictions(now=NOW, batch=Batch(size=10, cursor=cursor or "", dry_run=dry_run))
        figures += Counter(report.figures)
        cursor = report.cursor
    return figures
