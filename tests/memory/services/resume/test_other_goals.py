"""Tests for a packet of one goal next to another, completed one: nothing of that one, and nothing that is settled."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from memory.extraction.turn_slots import Action, Point, Rationale, Reasoning, Slots
from memory.owner import Owner
from memory.reasoning import ReasoningTier
from memory.services.embedding.embed import embed_texts
from memory.services.resume.resume import ResumePacket, ResumeRequest, resume_work
from memory.services.turns import store_turns
from tests.memory.episodes import NOW
from tests.memory.goals import aim, finish
from tests.memory.records import add_record
from tests.memory.turns import turn

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]

NEWSLETTER = "Send the spring newsletter to all subscribers."
MIGRATION = "Migrate the billing database to PostgreSQL 18."

OF_NEWSLETTER = [
    ("user", "We start with the spring newsletter. It must not mention prices."),
    ("assistant", "Understood. I suggest three stories for the newsletter: the orchard, the bakery and the choir."),
    (
        "user",
        "We decided to drop the choir story from the newsletter. The subject line must have at most 50 characters.",
    ),
    ("assistant", "Decided: the newsletter opens with the orchard and ends with the bakery."),
    ("user", "The bakery story needs a photo of the new oven by Elif."),
    ("assistant", "The photo by Elif is in the newsletter draft, 1,200 pixels wide."),
    ("user", "Never send newsletters before eight in the morning."),
    ("assistant", "The newsletter is scheduled for 08:15 and goes to 4,310 subscribers."),
    ("tool", "mailer: 4310 subscribers accepted, 12 bounced"),
    ("assistant", "The newsletter went out to all subscribers."),
]
OF_MIGRATION = [
    ("user", "Now the billing database. Do not touch the invoices table until the audit is over."),
    ("assistant", "Decided: we migrate the billing database with logical replication."),
    ("user", "We decided to keep the old billing cluster for 14 days after the migration."),
    ("assistant", "The dry run of the billing migration took 42 minutes. The sequences were not copied."),
    ("user", "The maintenance window must not exceed 30 minutes."),
    ("assistant", "Next step: copy the sequences of the billing database by script seq_sync.sql."),
    ("user", "Good news: the audit is over."),
    ("assistant", "Then I include the tables with invoices in the next dry run."),
]
NEWSLETTER_MARKS = ("newsletter", "choir", "orchard", "bakery", "elif", "mailer", "subject line", "subscribers")


def say_all(owner: Owner, conversation_id: str, said: Sequence[tuple[str, str]], *, day: int) -> None:
    """Store turns with vectors, one a minute, on a day."""
    embedded = embed_texts([text for _, text in said], deadline_seconds=60)
    began = NOW + timedelta(days=day)
    drafts = [turn(text, role=role, timestamp=began + timedelta(minutes=at)) for at, (role, text) in enumerate(said)]
    store_turns(owner, conversation_id, drafts=drafts, embedded=embedded, now=began + timedelta(hours=1))


def resume(owner: Owner, query: str = "") -> ResumePacket:
    return resume_work(owner, ResumeRequest(deadline_ms=60_000, query=query), now=NOW + timedelta(days=3))


def foreign_lines(packet: ResumePacket) -> list[str]:
    return [item.text for item in packet.items if any(mark in item.text.casefold() for mark in NEWSLETTER_MARKS)]


@pytest.fixture(params=[("news", "billing"), ("work", "work")], ids=["two conversations", "one conversation"])
def worker(owner: Owner, request: pytest.FixtureRequest) -> Owner:
    """Return an owner who has finished one goal and works on another."""
    news, billing = request.param
    done = aim(owner, NEWSLETTER)
    aim(owner, MIGRATION)
    say_all(owner, news, OF_NEWSLETTER, day=0)
    finish(owner, done)
    say_all(owner, billing, OF_MIGRATION, day=1)
    return owner


def test_nothing_of_a_completed_goal_is_in_the_packet(worker: Owner) -> None:
    packet = resume(worker)

    assert foreign_lines(packet) == []
    assert MIGRATION in packet.text


def test_decisions_and_rules_of_the_open_goal_are_in_the_packet(worker: Owner) -> None:
    text = resume(worker).text

    assert "logical replication" in text
    assert "keep the old billing cluster for 14 days" in text
    assert "must not exceed 30 minutes" in text
    assert "seq_sync.sql" in text


def test_a_rule_that_a_later_sentence_settles_is_no_constraint(worker: Owner) -> None:
    packet = resume(worker)

    assert "until the audit is over" not in packet.text
    assert "the audit is over" in packet.text


def test_what_the_query_asks_for_is_in_the_packet(worker: Owner) -> None:
    packet = resume(worker, query="How many subscribers got the newsletter?")

    assert packet.query
    assert any("4,310 subscribers" in line for line in foreign_lines(packet)) or packet.lineage == ()


def test_without_an_open_goal_the_conversation_is_resumed(owner: Owner) -> None:
    done = aim(owner, NEWSLETTER)
    say_all(owner, "news", OF_NEWSLETTER, day=0)
    finish(owner, done)

    packet = resume(owner)

    assert foreign_lines(packet)
    assert not [
        item for item in packet.items if item.item_type in ("decision", "constraint") and "Never" not in item.text
    ]


def test_a_decision_that_was_withdrawn_for_a_completed_goal_is_not_in_the_packet(owner: Owner) -> None:
    """The sentence that withdraws it is left out, since it belongs to the other goal."""
    aim(owner, "Cut the billing database over to the new cluster.")
    done = aim(owner, "Compare dump and restore on staging.")
    said = [
        ("user", "We decided to use logical replication for the cutover of the billing database to the new cluster."),
        ("user", "The billing cluster must stay readable during the cutover."),
        ("user", "We drop logical replication, dump and restore on staging is good enough."),
    ]
    say_all(owner, "billing", said, day=0)
    finish(owner, done)

    text = resume(owner).text

    assert "must stay readable" in text
    assert "logical replication" not in text


def build_checkouts(owner: Owner, *, status: str) -> ResumePacket:
    """Return the packet of an open goal of two parts, one of which is closed, with a record and turns of each."""
    parent = aim(owner, "Payment of bookings.")
    mollie = aim(owner, "Checkout with Mollie.", parent_id=parent.id)
    vipps = aim(owner, "Checkout with Vipps.", parent_id=parent.id)
    of_mollie = [("user", "Let us do payment with Mollie."), ("assistant", "Webhooks go to the server of Mollie.")]
    of_vipps = [("user", "We decided on Vipps for payment."), ("assistant", "The timeout of Vipps is 20 seconds.")]
    say_all(owner, "work", of_mollie, day=0)
    for number, goal in enumerate((mollie, vipps)):
        rationale = Rationale(decisions=[Point(what=f"Hosted page of {goal.text.split()[-1]}", why="no card data")])
        reasoning = Reasoning(tier=ReasoningTier.STRUCTURED_RATIONALE, rationale=rationale)
        slots = Slots(reasoning=reasoning, action=Action(text=f"Built part {number}."))
        add_record(owner, "work", slots=slots, goal_id=goal.id)
    finish(owner, mollie, status=status, result="The bank refuses.")
    say_all(owner, "work", of_vipps, day=1)
    return resume(owner)


def test_the_work_of_an_abandoned_part_of_an_open_goal_is_left_out(owner: Owner) -> None:
    packet = build_checkouts(owner, status="abandoned")

    of_mollie = [item.text for item in packet.items if "Mollie" in item.text]
    assert of_mollie == ["Checkout with Mollie."]
    assert "Hosted page of Vipps" in packet.text
    assert "20 seconds" in packet.text


def test_the_decisions_of_a_completed_part_of_an_open_goal_stay(owner: Owner) -> None:
    assert "Hosted page of Mollie" in build_checkouts(owner, status="completed").text


@pytest.mark.parametrize(
    ("rule", "is_kept"),
    [
        ("Migrations never between 8 and 9, the cleanup locks the tables.", True),
        ("Always wear gloves in the garden.", False),
        ("The migration of positions took 9 minutes.", False),
    ],
)
def test_a_rule_of_another_conversation_is_kept_if_it_is_about_what_was_spoken_of_last(
    owner: Owner, rule: str, *, is_kept: bool
) -> None:
    aim(owner, "Add the capture key to bookings.")
    say_all(owner, "rules", [("user", rule), ("assistant", "Noted.")], day=0)
    written = "Migration 31 is written. Next I will run the migration."
    say_all(owner, "key", [("user", "add a capture key to bookings"), ("assistant", written)], day=1)

    assert (rule in resume(owner).text) is is_kept
