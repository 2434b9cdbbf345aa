"""Accounts, with their language, agents, teams and API keys: create, find, change, revoke.

A memory keeps the language that it was indexed in. After a change of language, rows are re-indexed batch by batch while
others read and write: until all are done, a search may miss a word in the remaining rows. The work may be killed at any
point and run again, because rows in the account's language are skipped.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet

from memory.audit import record_audit
from memory.errors import Conflict, NotFound, Unprocessable, require_found
from memory.masking import masks_secrets
from memory.models import Account, Agent, ApiKey, IdempotentRequest, Memory, Team, TeamMember
from memory.models.accounts import LANGUAGES
from memory.owner import Owner

READ_ONLY = (ApiKey.Scope.READ,)
READ_WRITE = (ApiKey.Scope.READ, ApiKey.Scope.WRITE)
READ_WRITE_OPERATE = (ApiKey.Scope.READ, ApiKey.Scope.WRITE, ApiKey.Scope.OPERATE)
BATCH_ROWS = 500
"""Memories that are re-indexed in one transaction."""


def find_account(name: str) -> Account:
    """Return the account of this name. For callers that are trusted with every account. Raises NotFound."""
    return require_found(Account.objects.filter(name=name).first(), "account")


def set_language(owner: Owner, language: str) -> bool:
    """Set the language that new texts and questions are analysed in. Return False if the account has it already.

    Stored texts are left to `reindex_texts`. Raises Unprocessable for an unknown language, NotFound.
    """
    check_language(language)
    with transaction.atomic():
        rows = Account.objects.select_for_update(no_key=True).filter(id=owner.account_id)
        account = require_found(rows.first(), "account")
        if account.language == language:
            return False
        metadata = {"language": language, "was": account.language}
        account.language = language
        account.save(update_fields=["language"])
        record_audit(owner, operation="update", memory_type="account", affected_ids=[account.id], metadata=metadata)
    return True


def check_language(language: str) -> None:
    """Raise Unprocessable for an unknown language."""
    if language not in LANGUAGES:
        raise Unprocessable(f"{language!r} is not a known language: use one of {', '.join(LANGUAGES)}")


def count_other_languages(owner: Owner, language: str) -> int:
    """Return the number of memories that were indexed in another language."""
    return memories_in_other_languages(owner, language).count()


def reindex_texts(owner: Owner, language: str, *, size: int = BATCH_ROWS) -> Iterator[int]:
    """Index in this language all memories that were indexed in another, in the order of their ids.

    Commits each batch and yields its number of memories. Writers wait for one batch at most. A text stored while the
    language changes may still get the former one behind the last batch: run it again to find such rows.
    """
    after = UUID(int=0)
    while ids := reindex_batch(owner, language, after=after, size=size):
        yield len(ids)
        after = ids[-1]


def reindex_batch(owner: Owner, language: str, *, after: UUID, size: int) -> list[UUID]:
    """Re-index the next memories and return their ids."""
    with transaction.atomic():
        # in the order that all transactions lock memories in
        following = memories_in_other_languages(owner, language).filter(id__gt=after).order_by("id")
        ids = list(following.select_for_update(no_key=True).values_list("id", flat=True)[:size])
        # a trigger recomputes the words and their counts
        Memory.objects.filter(account_id=owner.account_id, id__in=ids).update(language=language)
    return ids


def memories_in_other_languages(owner: Owner, language: str) -> QuerySet[Memory]:
    return Memory.objects.filter(account_id=owner.account_id).exclude(language=language)


def find_agent(owner: Owner, agent_id: str) -> Agent:
    """Return an agent of the account. Raises NotFound, for another account's agent as for an unknown one."""
    return require_found(Agent.objects.in_account(owner.account_id).filter(agent_id=agent_id).first(), "agent")


@masks_secrets
def create_agent(owner: Owner, *, agent_id: str, description: str) -> Agent:
    """Create an agent. Raises Conflict if the account has an agent with this id."""
    with transaction.atomic():
        agent, is_new = Agent.objects.get_or_create(
            account_id=owner.account_id, agent_id=agent_id, defaults={"description": description}
        )
        if not is_new:
            raise Conflict("the account already has an agent with this id")
        record_audit(owner, operation="create", memory_type="agent", affected_ids=[agent.id])
    agent.refresh_from_db(fields=["created_at"])
    return agent


def ensure_agent(account: Account, agent_id: str) -> None:
    """Create the agent if it is new."""
    Agent.objects.get_or_create(account=account, agent_id=agent_id)


def register_agent(account_id: UUID, agent_id: str) -> None:
    """Create the agent of a write after that is committed; do nothing for a write by the account itself.

    Each process asks once per agent, so busy agents cost nothing. It happens after the commit, because a write that is
    rolled back must not count as having created the agent. Errors are logged: the write stands.
    """
    if agent_id:
        # a lambda, because Django's error log cannot name a partial and would raise instead
        transaction.on_commit(lambda: insert_agent(account_id, agent_id), robust=True)


@lru_cache(maxsize=10_000)
def insert_agent(account_id: UUID, agent_id: str) -> None:
    Agent.objects.bulk_create([Agent(account_id=account_id, agent_id=agent_id)], ignore_conflicts=True)


@masks_secrets
def update_agent_description(owner: Owner, agent_id: str, *, description: str) -> Agent:
    """Change the description of an agent. Raises NotFound."""
    with transaction.atomic():
        agent = find_agent(owner, agent_id)
        agent.description = description
        agent.save(update_fields=["description"])
        record_audit(owner, operation="update", memory_type="agent", affected_ids=[agent.id])
    return agent


def find_team(owner: Owner, team_id: UUID) -> Team:
    """Return a team of the account. Raises NotFound, for another account's team as for an unknown one."""
    return require_found(Team.objects.in_account(owner.account_id).filter(id=team_id).first(), "team")


def lock_team(owner: Owner, team_id: UUID) -> Team:
    """Return the team, locked against deletion and changes of members until the transaction ends. Raises NotFound."""
    rows = Team.objects.in_account(owner.account_id).filter(id=team_id)
    return require_found(rows.select_for_update(no_key=True).first(), "team")


def create_team(owner: Owner, *, name: str) -> Team:
    """Create a team. Raises Conflict if the account has a team of this name."""
    with transaction.atomic():
        team, is_new = Team.objects.get_or_create(account_id=owner.account_id, name=name)
        if not is_new:
            raise Conflict("the account already has a team with this name")
        record_audit(owner, operation="create", memory_type="team", affected_ids=[team.id])
    team.refresh_from_db(fields=["created_at"])
    return team


def delete_team(owner: Owner, team_id: UUID) -> None:
    """Delete the team. Raises NotFound."""
    with transaction.atomic():
        lock_team(owner, team_id).delete()
        record_audit(owner, operation="delete", memory_type="team", affected_ids=[team_id])


def add_member(owner: Owner, team_id: UUID, *, agent_id: str) -> TeamMember:
    """Add an agent to the team; adding it twice changes nothing. Raises NotFound."""
    with transaction.atomic():
        team = lock_team(owner, team_id)
        member, is_new = TeamMember.objects.get_or_create(
            account_id=owner.account_id, team_id=team.id, agent_id=agent_id
        )
        if is_new:
            record_audit(owner, operation="add_member", memory_type="team", affected_ids=[team_id, agent_id])
    member.refresh_from_db(fields=["created_at"])
    return member


def remove_member(owner: Owner, team_id: UUID, *, agent_id: str) -> None:
    """Remove an agent from the team. Raises NotFound, for the team or for the member."""
    with transaction.atomic():
        team = find_team(owner, team_id)
        removed, _ = TeamMember.objects.filter(account_id=owner.account_id, team_id=team.id, agent_id=agent_id).delete()
        if not removed:
            raise NotFound("no such member")
        record_audit(owner, operation="remove_member", memory_type="team", affected_ids=[team_id, agent_id])


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedKey:
    """The row of a new API key, and its secret, which is stored nowhere."""

    key: ApiKey
    secret: str


def issue_key(
    account: Account,
    *,
    scopes: Iterable[str],
    agent_id: str = "",
    user_id: str = "",
    name: str = "",
    expires_at: datetime | None = None,
    actor: str = "command",
) -> IssuedKey:
    """Create an API key, bound to an agent and to a user if these are given; a new agent is created.

    Raises Unprocessable for a key of a user with the scope `operate`.
    """
    check_key_scopes(scopes := list(scopes), user_id=user_id)
    secret = ApiKey.make_secret()
    with transaction.atomic():
        if agent_id:
            ensure_agent(account, agent_id)
        key = ApiKey.objects.create(
            account=account,
            agent_id=agent_id,
            user_id=user_id,
            name=name,
            prefix=secret[: ApiKey.PREFIX_LENGTH],
            secret_hash=ApiKey.hash_secret(secret),
            scopes=scopes,
            expires_at=expires_at,
        )
        owner = Owner(account_id=account.id, agent_id=agent_id, actor=actor)
        record_audit(owner, operation="create", memory_type="api_key", affected_ids=[key.id])
    return IssuedKey(key=key, secret=secret)


def rotate_key(owner: Owner, key_id: UUID, *, overlap: timedelta, now: datetime) -> IssuedKey:
    """Issue a key like this one, which stays valid for `overlap`; without one it is revoked immediately.

    Raises NotFound, and Conflict for a key that is revoked or expired, or was rotated already: a key that copied its
    shortened validity would end with it.
    """
    with transaction.atomic():
        rows = ApiKey.objects.filter(account_id=owner.account_id, id=key_id).select_related("account")
        old = require_found(rows.select_for_update(of=("self",)).first(), "API key")
        if old.revoked_at is not None or (old.expires_at is not None and old.expires_at <= now):
            raise Conflict("the key is not valid any more: issue a new one")
        if old.rotated_at is not None:
            raise Conflict(
                "the key was rotated already: if the secret of the newer key was not kept, rotate the newer key"
            )
        shared = {name: getattr(old, name) for name in ("scopes", "agent_id", "user_id", "name", "expires_at")}
        issued = issue_key(old.account, actor=owner.actor, **shared)
        until = min(now + overlap, old.expires_at or now + overlap) if overlap else old.expires_at
        rows.update(rotated_at=now, expires_at=until)
        if not overlap:
            revoke_keys(owner, [key_id], now=now)
        record_audit(owner, operation="rotate", memory_type="api_key", affected_ids=[key_id, issued.key.id])
    return issued


def check_key_scopes(scopes: Collection[str], *, user_id: str) -> None:
    """Raise Unprocessable if a key with these scopes cannot be bound to the user."""
    if user_id and ApiKey.Scope.OPERATE in scopes:
        raise Unprocessable(
            "a key that is bound to a user cannot have the scope operate, which is for the whole account"
        )


def key_expiry(now: datetime, days: int | None) -> datetime | None:
    """Return the time when a key issued now expires; None without a number of days."""
    return None if days is None else now + timedelta(days=days)


def revoke_keys(owner: Owner, key_ids: Sequence[UUID], *, now: datetime) -> int:
    """Revoke those of the account's keys that are still valid, from the next request on, and return their number."""
    with transaction.atomic():
        keys = ApiKey.objects.filter(account_id=owner.account_id, id__in=key_ids, revoked_at=None)
        revoked = list(keys.order_by("id").select_for_update().values_list("id", flat=True))
        ApiKey.objects.filter(id__in=revoked).update(revoked_at=now)
        if revoked:
            record_audit(owner, operation="revoke", memory_type="api_key", affected_ids=revoked)
    return len(revoked)


def delete_key(owner: Owner, key_id: UUID, *, now: datetime) -> None:
    """Delete a key that has ended, with the answers that are kept for repeated requests with it.

    Raises NotFound, and Conflict for a key that is still valid.
    """
    with transaction.atomic():
        keys = ApiKey.objects.filter(account_id=owner.account_id, id=key_id)
        require_found(keys.select_for_update().first(), "API key")
        ended = keys.filter(Q(revoked_at__isnull=False) | Q(expires_at__lte=now))
        if not ended.exists():
            raise Conflict("a key that is still valid is not deleted: revoke it first")
        IdempotentRequest.objects.filter(account_id=owner.account_id, api_key_id=key_id).delete()
        keys.delete()
        record_audit(owner, operation="delete", memory_type="api_key", affected_ids=[key_id])
