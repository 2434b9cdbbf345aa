"""Accounts (the tenants), their teams and agents, the keys of the API, and the profiles of users."""

import hashlib
import secrets
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from memory.models.statements import numbered_cursor
from memory.reasoning import ReasoningTier
from memory_project.ids import uuid7
from memory_project.tenancy import AccountForeignKey, AccountQuerySet, ReferenceInAccount, RowInAccount

LAST_USED_RESOLUTION = timedelta(minutes=1)


LANGUAGES = (
    *("simple", "arabic", "armenian", "basque", "catalan", "danish", "dutch", "english", "finnish", "french"),
    *("german", "greek", "hindi", "hungarian", "indonesian", "irish", "italian", "lithuanian", "nepali", "norwegian"),
    *("portuguese", "romanian", "russian", "serbian", "spanish", "swedish", "tamil", "turkish", "yiddish"),
)
"""Languages whose words are stemmed (Snowball). `simple` leaves words as they are and is for all other languages."""


DEFAULT_LANGUAGE = "english"
DEFAULT_TRACE_TOKENS = 8_000
AUDIT_LEVELS = ("off", "writes", "reads", "verbose")
"""Levels of the audit log. Each keeps what the levels before it keep, and more."""


CONTRADICTIONS = ("prefer_new", "prefer_old", "flag_review")
"""Policies of an account about a fact that contradicts a believed one."""

SECRETS = ("off", "mark", "mask")
"""What an account does with texts that hold secrets: nothing, mark the memory, or mask the secret on arrival."""

CLOCKS = ("write", "turn")
"""Times from which the days until a conversation is archived count: its last write, or its last turn's own time."""

ENTITY_DAYS = 30


class Account(models.Model):
    """A tenant. No data crosses its border. `language` is the one in which word search reads its texts."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = models.CharField(max_length=100, unique=True)
    language = models.CharField(max_length=20, default=DEFAULT_LANGUAGE, choices=[(name, name) for name in LANGUAGES])
    reasoning_tier = models.CharField(
        max_length=30,
        default=ReasoningTier.STRUCTURED_RATIONALE.value,
        choices=[(tier.value, tier.value.replace("_", " ")) for tier in ReasoningTier],
        help_text="Deepest tier of reasoning that is stored and returned.",
    )
    raw_trace_tokens = models.PositiveIntegerField(
        default=DEFAULT_TRACE_TOKENS,
        help_text="Maximum length of a raw trace, in tokens. Longer traces are not stored.",
    )
    audit_level = models.CharField(
        max_length=10,
        blank=True,
        default="",
        choices=[(level, level) for level in AUDIT_LEVELS],
        help_text="Level of detail of the audit log. Empty: the level that the setting MEMORY_AUDIT_LEVEL names.",
    )
    contradictions = models.CharField(
        max_length=20,
        blank=True,
        default="",
        choices=[(policy, policy.replace("_", " ")) for policy in CONTRADICTIONS],
        help_text="What becomes of a fact that contradicts a believed one. Empty: what MEMORY_CONTRADICTIONS says.",
    )
    quarantines_instructions = models.BooleanField(
        default=False,
        help_text="Quarantine new memories whose texts give orders to the model that reads them. Recalls mark them in "
        "any case.",
    )
    secrets = models.CharField(
        max_length=10,
        default="off",
        db_default="off",
        choices=[(policy, policy) for policy in SECRETS],
        help_text="“Mark” marks new memories whose texts hold what looks like a key, a password or the number of a "
        "card. “Mask” replaces it by [redacted] before anything is stored.",
    )
    legal_hold = models.BooleanField(
        db_default=False, help_text="Retention deletes nothing of the account. What a person asks to erase is erased."
    )
    archive_after_days = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="Days until a conversation is archived. Empty: what MEMORY_RETENTION_DAYS says.",
    )
    archive_by = models.CharField(
        max_length=10,
        db_default="write",
        default="write",
        choices=[("write", "last write"), ("turn", "last turn")],
        help_text="Time from which these days count. “Last turn” is the time of the message, also of an imported one.",
    )
    erase_after_days = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="Days after its archiving until a conversation is erased for good. Empty: never.",
    )
    entity_days = models.PositiveIntegerField(
        null=True,
        blank=True,
        db_default=ENTITY_DAYS,
        default=ENTITY_DAYS,
        help_text="Days without a read or write until an entity whose salience is below 0.1 is deleted. Empty: never.",
    )
    tool_days = models.PositiveIntegerField(
        null=True, blank=True, help_text="Days until invocations of tools are deleted. Empty: never."
    )
    strategy_days = models.PositiveIntegerField(
        null=True, blank=True, help_text="Days without a read or write until a strategy is deleted. Empty: never."
    )
    journal_days = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="Days until the journal of an ended ledger (what was injected) is deleted. Empty: never.",
    )
    usage_days = models.PositiveIntegerField(
        null=True, blank=True, help_text="Days until the usage of language models is deleted. Empty: never."
    )
    settings = models.JSONField(default=dict, blank=True)
    # the statement that finds an API key reads it, so that other accounts need not look for marks
    has_erasures = models.BooleanField(
        db_default=False, editable=False, help_text="True once the erasure of a user was requested."
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        db_table = "accounts"
        constraints = [
            models.CheckConstraint(condition=Q(language__in=LANGUAGES), name="account_language_known"),
            models.CheckConstraint(
                condition=Q(reasoning_tier__in=[tier.value for tier in ReasoningTier]), name="account_tier_known"
            ),
            models.CheckConstraint(condition=Q(audit_level__in=("", *AUDIT_LEVELS)), name="account_audit_level_known"),
            models.CheckConstraint(
                condition=Q(contradictions__in=("", *CONTRADICTIONS)), name="account_contradictions_known"
            ),
            models.CheckConstraint(condition=Q(secrets__in=SECRETS), name="account_secrets_known"),
            models.CheckConstraint(condition=Q(archive_by__in=CLOCKS), name="account_archive_by_known"),
        ]

    def __str__(self) -> str:
        return self.name


class AccountRow(RowInAccount):
    """The first columns of tables whose rows belong to an account."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    account = models.ForeignKey(Account, models.CASCADE, related_name="+", db_index=False)

    class Meta:
        abstract = True


class AgentQuerySet(AccountQuerySet["Agent"]):
    """Agents by account."""


class Agent(RowInAccount):
    """An agent that stores memories. Created by its first write. `agent_id` is the name that clients use."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    account = models.ForeignKey(Account, models.CASCADE, related_name="agents", db_index=False)
    agent_id = models.CharField(max_length=100)
    description = models.TextField(blank=True, default="")
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = AgentQuerySet.as_manager()

    class Meta:
        db_table = "agents"
        constraints = [
            models.UniqueConstraint(fields=["account", "agent_id"], name="agent_once_in_account"),
            models.CheckConstraint(condition=~Q(agent_id=""), name="agent_has_an_id"),
        ]

    def __str__(self) -> str:
        return self.agent_id


class TeamQuerySet(AccountQuerySet["Team"]):
    """Teams by account."""


class Team(RowInAccount):
    """A group of agents that share rows of team scope."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    account = models.ForeignKey(Account, models.CASCADE, related_name="teams", db_index=False)
    name = models.CharField(max_length=100)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = TeamQuerySet.as_manager()

    class Meta:
        db_table = "teams"
        constraints = [models.UniqueConstraint(fields=["account", "name"], name="team_once_in_account")]

    def __str__(self) -> str:
        return self.name


class TeamMember(AccountRow):
    """An agent in a team, by `agent_id`: an agent may join before its first write creates its row."""

    team = AccountForeignKey(Team, models.CASCADE, related_name="members")
    agent_id = models.CharField(max_length=100)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        db_table = "team_members"
        constraints = [
            ReferenceInAccount("team", name="team_members_team_in_account"),
            models.UniqueConstraint(fields=["account", "team", "agent_id"], name="member_once_in_team"),
        ]

    def __str__(self) -> str:
        return self.agent_id


class UsableKey(NamedTuple):
    """The columns of a valid API key that a request needs."""

    id: UUID
    account_id: UUID
    agent_id: str
    user_id: str
    scopes: list[str]
    prefix: str
    last_used_at: datetime | None
    audit_level: str
    """The audit level of the account."""
    has_erasures: bool
    """True if users of the account were erased, whom nothing may name."""
    secrets: str
    """What the account does with secrets: a member of SECRETS."""


# plain SQL: compiling the query in Django took longer than the rest of a small request
FIND_USABLE = """
SELECT k.id, k.account_id, k.agent_id, k.user_id, k.scopes, k.prefix, k.last_used_at, a.audit_level,
    a.has_erasures, a.secrets
FROM api_keys k JOIN accounts a ON a.id = k.account_id
WHERE k.secret_hash = $1 AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > $2)
"""


class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    def touch(self, key_id: UUID, now: datetime) -> int:
        """Store when the key was used, at most once a minute, so that a busy key does not become a hot row."""
        stale = Q(last_used_at=None) | Q(last_used_at__lt=now - LAST_USED_RESOLUTION)
        return self.filter(stale, id=key_id).update(last_used_at=now)


class ApiKey(models.Model):
    """A key of the API: a bearer secret of 256 random bits, of which only the SHA-256 is stored.

    A fast hash is enough for random secrets, and finds the key with one look-up. A key that is bound to a user sees and
    changes nothing of other users, and never acts for the account.
    """

    class Scope(models.TextChoices):
        READ = "read"
        WRITE = "write"
        OPERATE = "operate"
        DEEP_REPLAY = "deep_replay"

    PREFIX_LENGTH = 12

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    account = models.ForeignKey(Account, models.CASCADE, related_name="api_keys", db_index=False)
    agent_id = models.CharField(
        max_length=100,
        blank=True,
        default="",
        help_text="Agent that the key acts for. Empty: the key is bound to no agent.",
    )
    user_id = models.CharField(
        max_length=100,
        blank=True,
        default="",
        help_text="User that the key acts for. Empty: the key is bound to no user.",
    )
    name = models.CharField(max_length=100, blank=True, default="")
    prefix = models.CharField(max_length=20, editable=False)
    secret_hash = models.CharField(max_length=64, unique=True, editable=False)
    scopes = ArrayField(models.CharField(max_length=20, choices=Scope), default=list)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, editable=False)
    rotated_at = models.DateTimeField(null=True, editable=False, help_text="Time when another key replaced this one.")

    objects = ApiKeyQuerySet.as_manager()

    class Meta:
        db_table = "api_keys"
        verbose_name = "API key"
        constraints = [
            # jobs, exports, erasures and the audit log are not limited to a user
            models.CheckConstraint(
                condition=Q(user_id="") | ~Q(scopes__contains=["operate"]), name="api_key_of_user_does_not_operate"
            ),
        ]
        indexes = [models.Index(fields=["account", "prefix"], name="api_key_prefix")]

    def __str__(self) -> str:
        return f"{self.prefix}…"

    @staticmethod
    def find_usable(secret: str, now: datetime) -> "UsableKey | None":
        """Return the key with this secret, or None if there is none, or it is revoked or expired. One statement."""
        with numbered_cursor() as cursor:
            cursor.execute(FIND_USABLE, [ApiKey.hash_secret(secret), now])
            row = cursor.fetchone()
        return UsableKey(*row) if row else None

    @staticmethod
    def make_secret() -> str:
        """Return a new secret: `mem_` and 43 characters. It is shown once and never stored."""
        return f"mem_{secrets.token_urlsafe(32)}"

    @staticmethod
    def hash_secret(secret: str) -> str:
        return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


# proxies, so that each admin page of data in Redis has a permission of its own


class WorkingMemoryAccount(Account):
    """An account on the admin pages of its working memory."""

    class Meta:
        proxy = True
        verbose_name = "working memory"
        verbose_name_plural = "working memory"


class LedgerAccount(Account):
    """An account on the admin pages of its injection ledger."""

    class Meta:
        proxy = True
        verbose_name = "injection ledger"
        verbose_name_plural = "injection ledger"


class ValueAccount(Account):
    """An account on the admin pages of its single values."""

    class Meta:
        proxy = True
        verbose_name = "single values"
        verbose_name_plural = "single values"


class UserProfile(AccountRow):
    """The preferences, expertise and communication style of a user of the account, the same for every agent.

    It is looked up by the user's id.

    `provenance` maps the name of a preference that was derived from a fact to the fact, its turns and the time.
    """

    user_id = models.CharField(max_length=100)
    preferences = models.JSONField(default=dict, blank=True)
    expertise_areas = models.JSONField(default=list, blank=True)
    communication_style = models.JSONField(default=dict, blank=True)
    metadata = models.JSONField(default=dict, blank=True)
    provenance = models.JSONField(default=dict, blank=True, editable=False)
    version = models.PositiveIntegerField(default=1, editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        db_table = "user_profiles"
        constraints = [
            models.UniqueConstraint(fields=["account", "user_id"], name="profile_once"),
            models.CheckConstraint(condition=~Q(user_id=""), name="profile_has_a_user"),
        ]

    def __str__(self) -> str:
        return f"profile {self.pk}"
