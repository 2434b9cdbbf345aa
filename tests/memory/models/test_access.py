"""Access control of shared rows: the rule in SQL, the rule in Python, and a table of examples."""

from collections.abc import Iterable
from itertools import product
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from django.db import IntegrityError, transaction
from hypothesis import given
from hypothesis import strategies as st

from memory.errors import Unprocessable
from memory.models import AccessControl, Account, Level, MemoryPool, PersistentContext, Team, TeamMember, WorkflowRun
from memory.models.access import MAX_GRANTS, SharedQuerySet, SharedRow
from memory.models.pools import WORKFLOW_POOL_TYPES
from memory.owner import Owner
from tests.memory.pools import NOW, make_team
from tests.properties import examples

READ, WRITE = Level.READ, Level.WRITE

AGENTS = ("ada", "bob", "cyd", "dan")
"""Ada and Bob are in the crew, Bob and Cyd in the dock. Ada began the run, in which Cyd takes part. Dan is in none."""

TEAMS = {"crew": ("ada", "bob"), "dock": ("bob", "cyd")}
TYPES = ("shared", "agent_private", "team_shared", "task_scoped")
POOL_SCOPES = ("global", "account", "team", "agent", "task")
CONTEXT_SCOPES = ("agent", "account", "team", "global")


class Shape(NamedTuple):
    """The columns of a row that the rule reads."""

    scope: str
    pool_type: str = "shared"
    team: str = ""
    agent_id: str = "ada"
    in_run: bool = False
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    public_read: bool = False

    @property
    def access_control(self) -> dict[str, Any]:
        return AccessControl(read=list(self.read), write=list(self.write), public_read=self.public_read).model_dump()


agents = st.lists(st.sampled_from(AGENTS), max_size=3, unique=True).map(tuple)
shapes = st.builds(
    Shape,
    scope=st.sampled_from(POOL_SCOPES),
    pool_type=st.sampled_from([*TYPES, *WORKFLOW_POOL_TYPES]),
    team=st.sampled_from(["", *TEAMS]),
    agent_id=st.sampled_from(["", *AGENTS]),
    read=agents,
    write=agents,
    public_read=st.booleans(),
).map(lambda shape: shape._replace(in_run=shape.pool_type in WORKFLOW_POOL_TYPES))

with_database = examples(40)


class World:
    """An account with teams and a run, and other accounts with the same."""

    def __init__(self, account: Account, *others: Account) -> None:
        self.account = account
        self.teams = {name: make_team(account, name, agents=members) for name, members in TEAMS.items()}
        self.run = WorkflowRun.objects.create(
            account=account, workflow_run_id="run", agent_id="ada", agents=["cyd"], started_at=NOW
        )
        self.others = [World(other) for other in others]

    def team_ids(self, agent_id: str) -> set[UUID]:
        return {team.id for name, team in self.teams.items() if agent_id in TEAMS[name]}

    def store_pools(self, shapes: Iterable[Shape]) -> list[MemoryPool]:
        pools = [
            MemoryPool(
                account=self.account,
                pool_id=str(number),
                pool_type=shape.pool_type,
                workflow_run=self.run if shape.in_run else None,
                task_id="task-1",
                **self.columns(shape),
            )
            for number, shape in enumerate(shapes)
        ]
        return MemoryPool.objects.bulk_create(pools)

    def store_contexts(self, shapes: Iterable[Shape]) -> list[PersistentContext]:
        contexts = [
            PersistentContext(account=self.account, name=str(number), **self.columns(shape))
            for number, shape in enumerate(shapes)
        ]
        return PersistentContext.objects.bulk_create(contexts)

    def columns(self, shape: Shape) -> dict[str, Any]:
        return {
            "scope": shape.scope,
            "team": self.teams.get(shape.team),
            "agent_id": shape.agent_id,
            "access_control": shape.access_control,
        }

    def assert_agrees(self, rows: Iterable[SharedRow], queryset: SharedQuerySet[Any]) -> None:
        """Assert that querysets and rows agree, for the agents of this account and the account itself."""
        for agent_id in ("", *AGENTS):
            owner, teams = Owner(account_id=self.account.id, agent_id=agent_id), self.team_ids(agent_id)
            readable = {row.pk for row in rows if row.accessible_by(agent_id, READ, team_ids=teams)}
            writable = {row.pk for row in rows if row.accessible_by(agent_id, WRITE, team_ids=teams)}
            assert set(queryset.visible_to(owner).values_list("pk", flat=True)) == readable
            assert set(queryset.writable_by(owner).values_list("pk", flat=True)) == writable
            assert writable <= readable


@pytest.fixture
def world(account: Account, stranger: Account) -> World:
    return World(account, stranger)


# SQL and Python


@pytest.mark.slow
def test_queryset_and_row_agree_for_every_pool(world: World) -> None:
    grants = [
        ((), (), False),
        (("dan",), (), False),
        ((), ("dan",), False),
        (("bob",), ("cyd",), False),
        ((), (), True),
    ]
    combinations = product(POOL_SCOPES, (*TYPES, *WORKFLOW_POOL_TYPES), ("", *TEAMS), ("", "ada", "dan"), grants)
    shapes = [
        Shape(scope, pool_type, team, agent, pool_type in WORKFLOW_POOL_TYPES, read, write, public)
        for scope, pool_type, team, agent, (read, write, public) in combinations
    ]
    world.others[0].store_pools(shapes)

    pools = world.store_pools(shapes)

    assert len(pools) == 1_575
    world.assert_agrees(pools, MemoryPool.objects.all())


@given(shapes=st.lists(shapes, max_size=8))
@with_database
def test_queryset_and_row_agree_for_pools_with_any_grants(world: World, shapes: list[Shape]) -> None:
    MemoryPool.objects.all().delete()
    world.others[0].store_pools(shapes)

    world.assert_agrees(world.store_pools(shapes), MemoryPool.objects.all())


@given(shapes=st.lists(shapes, max_size=8), scopes=st.lists(st.sampled_from(CONTEXT_SCOPES), min_size=8, max_size=8))
@with_database
def test_queryset_and_row_agree_for_contexts_with_any_grants(
    world: World, shapes: list[Shape], scopes: list[str]
) -> None:
    PersistentContext.objects.all().delete()
    scoped = [shape._replace(scope=scope) for shape, scope in zip(shapes, scopes, strict=False)]
    world.others[0].store_contexts(scoped)

    world.assert_agrees(world.store_contexts(scoped), PersistentContext.objects.all())


@given(shapes=st.lists(shapes, max_size=8))
@with_database
def test_only_the_owner_of_a_row_manages_it(world: World, shapes: list[Shape]) -> None:
    MemoryPool.objects.all().delete()
    pools = world.store_pools(shapes)

    for agent_id in AGENTS:
        managed = MemoryPool.objects.managed_by(Owner(account_id=world.account.id, agent_id=agent_id))
        teams = {None, *world.team_ids(agent_id)}
        assert set(managed) == {pool for pool in pools if pool.agent_id == agent_id and pool.team_id in teams}
    assert set(MemoryPool.objects.managed_by(Owner(account_id=world.account.id))) == set(pools)


def test_an_agent_that_leaves_a_team_no_longer_manages_its_rows_there(world: World) -> None:
    [pool] = world.store_pools([Shape("team", team="crew")])
    ada = Owner(account_id=world.account.id, agent_id="ada")
    assert MemoryPool.objects.managed_by(ada).exists()

    TeamMember.objects.filter(team=world.teams["crew"], agent_id="ada").delete()

    assert not MemoryPool.objects.visible_to(ada).exists()
    assert not MemoryPool.objects.managed_by(ada).exists()
    assert not pool.accessible_by("ada", team_ids=())


def test_a_deleted_team_gives_no_access(world: World) -> None:
    [pool] = world.store_pools([Shape("team", team="crew")])

    Team.objects.filter(id=world.teams["crew"].id).delete()

    pool.refresh_from_db()
    world.assert_agrees([pool], MemoryPool.objects.all())
    assert not MemoryPool.objects.visible_to(Owner(account_id=world.account.id, agent_id="bob")).exists()


# examples of the rule


@pytest.mark.parametrize(
    ("shape", "readers", "writers"),
    [
        (Shape("account"), "ada bob cyd dan", "ada"),
        (Shape("global"), "ada bob cyd dan", "ada"),
        (Shape("account", team="dock"), "ada bob cyd dan", "bob cyd"),
        (Shape("account", write=("dan",)), "ada bob cyd dan", "ada dan"),
        (Shape("account", "agent_private"), "ada", "ada"),
        (Shape("account", "team_shared", team="dock"), "bob cyd", "bob cyd"),
        (Shape("agent"), "ada", "ada"),
        (Shape("agent", team="crew"), "ada", "ada"),
        (Shape("agent", team="dock"), "", ""),
        (Shape("agent", read=("bob",), write=("cyd",)), "ada bob cyd", "ada cyd"),
        (Shape("agent", public_read=True), "ada bob cyd dan", "ada"),
        (Shape("agent", agent_id=""), "", ""),
        (Shape("team", team="crew"), "ada bob", "ada bob"),
        (Shape("team", team="dock"), "bob cyd", "bob cyd"),
        (Shape("team", "agent_private", team="crew"), "ada", "ada"),
        (Shape("team", "agent_private", team="dock"), "", ""),
        (Shape("team", team=""), "ada", "ada"),
        (Shape("team", team="crew", read=("dan",)), "ada bob dan", "ada bob"),
        (Shape("task"), "ada", "ada"),
        (Shape("task", "task_scoped", team="crew", agent_id="dan"), "ada bob", "ada bob"),
        (Shape("account", "shared_memory", agent_id="", in_run=True), "ada bob cyd dan", "ada cyd"),
        (Shape("task", "blackboard", agent_id="", in_run=True), "ada cyd", "ada cyd"),
        (Shape("agent", "tool_cache", agent_id="", in_run=True), "", ""),
    ],
)
def test_a_pool_has_these_readers_and_writers(world: World, shape: Shape, readers: str, writers: str) -> None:
    world.store_pools([shape])

    let_in = {agent: Owner(account_id=world.account.id, agent_id=agent) for agent in AGENTS}

    assert [agent for agent, owner in let_in.items() if MemoryPool.objects.visible_to(owner)] == readers.split()
    assert [agent for agent, owner in let_in.items() if MemoryPool.objects.writable_by(owner)] == writers.split()


# access control


controls = st.builds(
    lambda read, write, public: Shape("agent", read=read, write=write, public_read=public),
    *[agents, agents, st.booleans()],
).map(lambda shape: AccessControl.parse(shape.access_control))


def pool_of(control: AccessControl) -> MemoryPool:
    return MemoryPool(scope="agent", agent_id="owner", access_control=control.model_dump())


@given(controls, st.sampled_from(AGENTS), st.sampled_from(Level))
def test_a_grant_gives_access_and_is_stored_once(control: AccessControl, agent: str, level: Level) -> None:
    granted = control.grant(agent, level)

    assert pool_of(granted).accessible_by(agent, level)
    assert pool_of(granted).accessible_by(agent, READ)
    assert granted.grant(agent, level) == granted == AccessControl.parse(granted.model_dump())


@given(controls, st.sampled_from(AGENTS))
def test_a_revoked_grant_gives_no_access(control: AccessControl, agent: str) -> None:
    revoked = control.revoke(agent)

    assert not pool_of(revoked).accessible_by(agent, WRITE)
    assert pool_of(revoked).accessible_by(agent, READ) == control.public_read
    assert revoked.revoke(agent) == revoked


@given(controls, st.sampled_from(AGENTS))
def test_revoking_write_leaves_the_grant_to_read(control: AccessControl, agent: str) -> None:
    revoked = control.revoke(agent, WRITE)

    assert not pool_of(revoked).accessible_by(agent, WRITE)
    assert (agent in revoked.read) == (agent in control.read)


@given(controls, st.sampled_from(AGENTS), st.sampled_from(AGENTS), st.sampled_from(Level))
def test_grants_of_one_agent_do_not_affect_another(
    control: AccessControl, agent: str, other: str, level: Level
) -> None:
    if agent == other:
        return

    for changed in (control.grant(agent, level), control.revoke(agent, level)):
        assert changed.level_of(other) == control.level_of(other)


def test_agents_are_sorted_without_duplicates() -> None:
    control = AccessControl.parse({"read": ["bob", "ada", "bob"]})

    assert control.model_dump() == {"read": ["ada", "bob"], "write": [], "public_read": False}


BROKEN: list[Any] = [
    None,
    [],
    "read",
    {"read": "ada"},
    {"read": [1]},
    {"write": [None]},
    {"write": {"ada": True}},
    {"public_read": "yes"},
    {"public_read": 1},
    {"public_read": None},
    {"admin": ["ada"]},
    {"write": [["ada"]]},
]


@pytest.mark.parametrize(
    "value",
    [*BROKEN, {"read": [""]}, {"read": ["x" * 101]}, {"write": ["a\0"]}, {"read": ["\n"]}],
)
def test_an_invalid_access_control_is_refused_without_quoting_it(value: Any) -> None:
    with pytest.raises(Unprocessable, match=r"^the access control is not valid: check [a-z_.0-9]+$"):
        AccessControl.parse(value)


@pytest.mark.parametrize("value", [*BROKEN, {}])
def test_the_database_refuses_an_invalid_access_control(world: World, value: Any) -> None:
    """All parts are checked, because the rules in SQL read all of them."""
    whole = {"read": [], "write": [], "public_read": False}
    stored = whole | value if isinstance(value, dict) and value else value
    rows = [
        MemoryPool(account=world.account, pool_id="p", access_control=stored),
        PersistentContext(account=world.account, name="c", access_control=stored),
    ]

    for row in rows:
        with pytest.raises(IntegrityError), transaction.atomic():
            row.save(force_insert=True)


def test_one_grant_too_many_is_refused() -> None:
    full = AccessControl(read=[str(number) for number in range(MAX_GRANTS)])

    assert full.grant("0", READ).read == sorted(full.read)
    with pytest.raises(Unprocessable):
        full.grant("one more", READ)
