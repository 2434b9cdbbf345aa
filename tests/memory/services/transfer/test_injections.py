"""Archives of injections: the ledgers of conversations, and the journal that they are made from."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from django.core.management import call_command

from ledger import store
from ledger.journal import EPOCH, JOURNAL, flush_everything, restore_all_ledgers
from ledger.models import Injection
from memory import conf
from memory.models import Account
from memory.owner import Owner
from memory.services.transfer.archive import BadArchive
from memory.services.transfer.ledgers import check_stream_id, moved_back
from memory.services.transfer.remap import new_id
from memory_project.redis import ConversationRef, client
from tests.memory.facts import know
from tests.memory.transfers import empty_account, export_bytes, import_bytes
from tests.memory.turns import say, turn

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ana(owner: Owner, empty_redis: None) -> Owner:
    restore_all_ledgers()
    return replace(owner, user_id="ana")


@pytest.fixture
def talk(ana: Owner) -> ConversationRef:
    """A conversation with a turn, whose ledger has two marks and one that was taken back."""
    say(ana, turn("I like figs."), conversation_id="talk-1")
    place = ConversationRef(account_id=ana.account_id, conversation_id="talk-1")
    store.mark_many(place, {"skill:baking": "v1", "skill:brewing": "v2", "skill:hiking": "v1"}, agent_id="assistant")
    store.evict(place, "skill:hiking")
    return place


MARKS = {"skill:baking": "v1", "skill:brewing": "v2"}


def lose_redis() -> None:
    client().flushdb()


def test_what_was_injected_is_not_injected_again_after_an_import(
    ana: Owner, account: Account, talk: ConversationRef
) -> None:
    archive = export_bytes(account.id)
    empty_account(account)
    restore_all_ledgers()

    import_bytes(account.id, archive)

    assert store.get_all(talk) == MARKS
    assert not store.mark(talk, "skill:baking", "v3").first
    assert store.mark(talk, "skill:hiking").first


def test_the_copy_of_a_conversation_names_the_copies_of_what_was_injected(ana: Owner, stranger: Account) -> None:
    say(ana, turn("I like figs."), conversation_id="talk-1")
    fact = know(ana, "Likes figs.")
    store.mark(ConversationRef(account_id=ana.account_id, conversation_id="talk-1"), f"fact:{fact.id}")

    import_bytes(stranger.id, export_bytes(ana.account_id))

    copy = ConversationRef(account_id=stranger.id, conversation_id="talk-1")
    assert store.get_all(copy) == {f"fact:{new_id(stranger.id, fact.id)}": "injected"}


def test_an_imported_ledger_is_restored_when_redis_is_lost(stranger: Account, talk: ConversationRef) -> None:
    import_bytes(stranger.id, export_bytes(talk.account_id))
    copy = replace(talk, account_id=stranger.id)
    store.evict(copy, "skill:brewing")
    flush_everything()

    lose_redis()

    assert store.get_all(copy) == {"skill:baking": "v1"}


@pytest.mark.parametrize("lost_for", ["export", "import"])
def test_an_archive_has_ledgers_that_redis_lost_and_no_one_asked_for_since(
    stranger: Account, talk: ConversationRef, lost_for: str
) -> None:
    flush_everything()
    lose_redis()
    archive = export_bytes(talk.account_id)
    if lost_for == "export":
        restore_all_ledgers()

    import_bytes(stranger.id, archive)

    assert store.get_all(replace(talk, account_id=stranger.id)) == MARKS


def test_marks_of_an_archive_are_added_to_those_of_the_account(stranger: Account, talk: ConversationRef) -> None:
    copy = replace(talk, account_id=stranger.id)
    store.mark_many(copy, {"skill:baking": "own", "skill:sewing": "own"})

    import_bytes(stranger.id, export_bytes(talk.account_id))

    both = {"skill:baking": "own", "skill:brewing": "v2", "skill:sewing": "own"}
    assert store.get_all(copy) == both
    flush_everything()
    lose_redis()
    assert store.get_all(copy).keys() == both.keys()


def test_marks_of_one_moment_in_two_installations_are_both_kept(account: Account, talk: ConversationRef) -> None:
    archive = export_bytes(account.id)
    moments = list(Injection.objects.in_account(account.id).order_by("stream_id").values_list("stream_id", flat=True))
    empty_account(account)
    restore_all_ledgers()
    Injection.objects.create(
        account=account,
        conversation_id="talk-2",
        item_key="skill:sewing",
        event="marked",
        at=datetime.now(UTC),
        stream_id=moments[0],
    )

    import_bytes(account.id, archive)

    lose_redis()
    assert store.get_all(talk) == MARKS
    assert store.get_all(replace(talk, conversation_id="talk-2")) == {"skill:sewing": ""}


def export_ahead(talk: ConversationRef, **ahead: float) -> bytes:
    """Return an archive of a talk whose two marks were made by a clock that is ahead, and delete them."""
    later = datetime.now(UTC) + timedelta(**ahead)
    Injection.objects.in_account(talk.account_id).delete()
    client().delete(JOURNAL)
    for number, item_key in enumerate(("skill:brewing", "skill:baking")):
        row = Injection(account_id=talk.account_id, conversation_id="talk-1", item_key=item_key, value="v1")
        at = later - timedelta(minutes=5) * (1 - number)
        row.event, row.at, row.stream_id = "marked", at, f"{int(at.timestamp() * 1_000):020}-{7:020}"
        row.save()
    archive = export_bytes(talk.account_id)
    Injection.objects.in_account(talk.account_id).delete()
    return archive


def read_times(account_id: UUID) -> list[tuple[str, datetime]]:
    flush_everything()
    return list(Injection.objects.in_account(account_id).order_by("stream_id").values_list("item_key", "at"))


def test_an_import_from_a_clock_that_is_ahead_changes_no_times_of_other_accounts(
    stranger: Account, talk: ConversationRef
) -> None:
    archive = export_ahead(talk, hours=1)

    import_bytes(stranger.id, archive)
    store.mark(talk, "skill:sewing")

    [(brewing, first), (baking, last)] = read_times(stranger.id)
    [(_, marked_at)] = read_times(talk.account_id)
    assert (brewing, baking, last - first) == ("skill:brewing", "skill:baking", timedelta(minutes=5))
    assert last <= marked_at <= datetime.now(UTC) + timedelta(seconds=1)


@pytest.mark.parametrize("zone", ["+00:00", "-05:00", "+05:00"])
def test_times_are_moved_back_to_the_first_one_at_most(zone: str) -> None:
    rows = [{"at": f"0001-01-01T{time}:00{zone}", "stream_id": f"{0:020}-{7:020}"} for time in ("00:30", "02:00")]

    moved = moved_back(rows, timedelta(hours=1))

    assert [row["at"] for row in moved] == [f"0001-01-01T{time}:00{zone}" for time in ("00:00", "01:00")]


def test_an_import_from_a_clock_that_is_not_ahead_keeps_all_times(stranger: Account, talk: ConversationRef) -> None:
    archive = export_bytes(talk.account_id)

    import_bytes(stranger.id, archive)

    assert read_times(stranger.id) == read_times(talk.account_id)


def test_marks_after_an_import_from_a_clock_that_is_ahead_are_kept(stranger: Account, talk: ConversationRef) -> None:
    archive = export_ahead(talk, hours=1)

    import_bytes(stranger.id, archive)

    copy = replace(talk, account_id=stranger.id)
    store.evict(copy, "skill:baking")
    store.mark(copy, "skill:sewing")
    flush_everything()
    lose_redis()
    assert "skill:baking" not in store.get_all(copy)
    assert "skill:sewing" in store.get_all(copy)


@pytest.mark.parametrize(
    ("stream_id", "problem"),
    [
        (f"{1_767_225_600_000:020}-{7:020}", ""),
        (f"{1_767_312_000_001:020}-{0:020}", "later than now"),
        (f"{1_767_225_600_000:020}-{2**63:020}", "later than now"),
        ("1767225600000-0", "20 digits"),
        (f"{'x' * 20}-{0:020}", "20 digits"),
    ],
)
def test_a_change_has_a_place_that_others_can_follow(stream_id: str, problem: str) -> None:
    found = check_stream_id(stream_id, now=datetime(2026, 1, 1, tzinfo=UTC))

    assert problem in found
    assert bool(problem) == bool(found)


def test_an_archive_whose_journal_is_ahead_of_the_clock_is_refused(stranger: Account, talk: ConversationRef) -> None:
    flush_everything()
    Injection.objects.in_account(talk.account_id).update(at=datetime(2100, 1, 1, tzinfo=UTC))
    row = Injection.objects.in_account(talk.account_id).latest("stream_id")
    Injection.objects.filter(id=row.id).update(stream_id=f"{4_102_444_800_000:020}-{0:020}")

    with pytest.raises(BadArchive, match=r"injections.jsonl, line \d: stream_id is later than now"):
        import_bytes(stranger.id, export_bytes(talk.account_id))

    assert not Injection.objects.in_account(stranger.id).exists()


def test_an_erased_user_s_imported_marks_are_gone(
    stranger: Account, talk: ConversationRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    # no request is under way that an erasure would have to wait for
    monkeypatch.setattr(conf, "ERASURE_WAIT_SECONDS", 0)
    import_bytes(stranger.id, export_bytes(talk.account_id))

    call_command("erase_subject", "--account", stranger.name, "--user", "ana", verbosity=0)

    copy = replace(talk, account_id=stranger.id)
    assert not Injection.objects.in_account(stranger.id).exists()
    assert store.get_all(copy) == {}
    assert Injection.objects.in_account(talk.account_id).exists()


def test_the_archives_of_a_user_and_an_agent_have_the_ledgers_of_their_conversations(
    ana: Owner, stranger: Account, talk: ConversationRef
) -> None:
    say(replace(ana, user_id="ben", agent_id="planner"), turn("I like nuts."), conversation_id="talk-2")
    store.mark(replace(talk, conversation_id="talk-2"), "skill:sewing", agent_id="planner")

    of_user = export_bytes(ana.account_id, user_id="ana")
    of_agent = export_bytes(ana.account_id, agent_id="assistant")

    for archive in (of_user, of_agent):
        import_bytes(stranger.id, archive)
        rows = Injection.objects.in_account(stranger.id)

        assert store.get_all(replace(talk, account_id=stranger.id)) == MARKS
        assert {row.conversation_id for row in rows} == {"talk-1"}


def test_an_agent_s_archive_has_its_marks_in_conversations_without_a_turn(ana: Owner, stranger: Account) -> None:
    silent = ConversationRef(account_id=ana.account_id, conversation_id="silent")
    store.mark(silent, "skill:baking", agent_id="assistant")
    store.mark(silent, "skill:sewing", agent_id="planner")

    import_bytes(stranger.id, export_bytes(ana.account_id, agent_id="assistant"))

    assert store.get_all(replace(silent, account_id=stranger.id)) == {"skill:baking": "injected"}
    assert client().exists(EPOCH)
