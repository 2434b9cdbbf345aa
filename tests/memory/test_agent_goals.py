"""Goals of the in-process API, and tasks: closed however their block is left, nested, shown to their session."""

import asyncio
import contextlib
import doctest
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import DatabaseError, connection, transaction
from redis.exceptions import RedisError

from memory import agent_goals
from memory.agent_goals import SHOWN_TO_SESSION, TASKS
from memory.agent_memory import AgentMemory
from memory.errors import Conflict, Forbidden, NotFound, Unprocessable
from memory.models import Account, AuditEntry, Goal
from memory.owner import Owner
from memory.services.goals.plan import delete_goal
from memory.services.sessions import join_session
from memory.tiers.session import SessionMemory
from memory_project.ids import uuid7
from tests.embedding_server import EmbeddingServer
from tests.memory.episodes import NOW

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_redis", "embedding_server")]

LATER = NOW + timedelta(days=1)


@pytest.fixture
def memory(owner: Owner) -> AgentMemory:
    return memory_of(owner)


@pytest.fixture(autouse=True)
def _no_task_is_left() -> Iterator[None]:
    """A task that a test leaves behind would be above those of the next."""
    yield
    assert TASKS.get() == ()


def memory_of(owner: Owner) -> AgentMemory:
    return AgentMemory(owner, clock=lambda: NOW)


def stored(description: str = "dig") -> Goal:
    found: Goal = Goal.objects.get(text=description)
    return found


def session_of(owner: Owner) -> SessionMemory:
    return join_session(owner, "c1", now=NOW)


def parents(memory: AgentMemory, *descriptions: str) -> list[str | None]:
    """The descriptions of their parents."""
    found = [memory.get_goal(stored(description).id).parent for description in descriptions]
    return [parent.text if parent else None for parent in found]


def test_the_example_runs(memory: AgentMemory) -> None:
    ran = doctest.testmod(agent_goals, extraglobs={"memory": memory})

    assert (ran.failed, ran.attempted > 0) == (0, True)


def test_goals_are_added_read_and_closed(memory: AgentMemory) -> None:
    goal = memory.add_goal("dig", priority=2, deadline=LATER)
    waiter = memory.add_goal("plant", parent_id=goal.id, blocked_by=[goal.id])

    assert (goal.event_time, goal.embed_after) == (NOW, None)
    assert [child.id for child in memory.get_goal(goal.id).children] == [waiter.id]
    done = memory.complete_goal(goal.id, "completed", "a hole")
    assert (done.goal.result, done.goal.completed_at, done.unblocked) == ("a hole", NOW, [waiter.id])


def test_an_imported_goal_keeps_its_date(memory: AgentMemory) -> None:
    then = NOW - timedelta(days=400)

    assert memory.add_goal("dig", event_time=then).event_time == then
    with pytest.raises(Unprocessable, match="at most 5 minutes in the future"):
        memory.add_goal("plant", event_time=NOW + timedelta(minutes=6))


def test_goal_methods_raise_the_errors_of_the_services(memory: AgentMemory, owner: Owner, stranger: Account) -> None:
    goal = memory_of(replace(owner, agent_id="")).add_goal("dig")

    with pytest.raises(NotFound):
        memory_of(Owner(account_id=stranger.id)).get_goal(goal.id)
    with pytest.raises(Forbidden):
        memory.complete_goal(goal.id)
    with pytest.raises(Unprocessable):
        memory.add_goal("plant", parent_id=uuid7())


def test_a_task_is_a_goal_for_as_long_as_its_block_runs(memory: AgentMemory) -> None:
    with memory.task("dig", priority=3, deadline=LATER) as task:
        assert (stored().status, stored().priority, stored().deadline) == ("active", 3, LATER)
        assert task.goal.id == stored().id
        task.result = "three holes"

    assert (stored().status, stored().result, stored().completed_at) == ("completed", "three holes", NOW)
    assert (task.goal.status, task.is_open) == ("completed", False)


@pytest.mark.parametrize(
    "error", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit, StopIteration, DatabaseError]
)
def test_a_task_ended_by_an_exception_is_abandoned_and_the_exception_propagates(
    memory: AgentMemory, error: type[BaseException]
) -> None:
    raised = error("a secret")

    with pytest.raises(error) as caught, memory.task("dig"):
        raise raised

    assert caught.value is raised
    assert (stored().status, stored().result) == ("abandoned", error.__name__)
    assert not any("secret" in str(entry.__dict__) for entry in AuditEntry.objects.all())


def test_a_return_out_of_a_task_completes_it(memory: AgentMemory) -> None:
    def dig() -> int:
        with memory.task("dig"):
            return 3

    assert (dig(), stored().status) == (3, "completed")


def test_a_generator_that_is_closed_abandons_its_task(memory: AgentMemory) -> None:
    def digging() -> Iterator[int]:
        with memory.task("dig"):
            yield from range(3)

    holes = digging()
    next(holes)
    holes.close()  # type: ignore[attr-defined]  # an iterator that is a generator

    assert (stored().status, stored().result) == ("abandoned", "GeneratorExit")


def test_a_generator_that_is_closed_in_another_context_leaves_no_task_above_later_ones(memory: AgentMemory) -> None:
    def digging() -> Iterator[int]:
        with memory.task("dig"):
            yield 1

    def begin_and_close_elsewhere() -> None:
        holes = digging()
        next(holes)
        copy_context().run(holes.close)  # type: ignore[attr-defined]
        memory.add_goal("x")
        with memory.task("plant"):
            pass

    copy_context().run(begin_and_close_elsewhere)

    assert (stored().result, parents(memory, "plant")) == ("GeneratorExit", [None])


def test_tasks_within_a_task_are_its_subgoals(memory: AgentMemory, owner: Owner) -> None:
    other = memory.add_goal("elsewhere")

    with memory.task("garden"):
        with memory.task("dig"), memory_of(owner).task("first hole"):
            pass
        with memory.task("plant"), memory.task("named", parent_id=other.id):
            pass
    with memory.task("cook"):
        pass

    names = ("garden", "dig", "first hole", "plant", "named", "cook")
    assert parents(memory, *names) == [None, "garden", "dig", "garden", "elsewhere", None]
    assert {stored(name).status for name in names} == {"completed"}


def test_a_failed_inner_task_does_not_abandon_the_outer_one(memory: AgentMemory) -> None:
    with memory.task("garden"):
        with contextlib.suppress(ValueError), memory.task("dig"):
            raise ValueError
        with memory.task("plant"):
            pass

    assert [stored(name).status for name in ("garden", "dig", "plant")] == ["completed", "abandoned", "completed"]
    assert parents(memory, "dig", "plant") == ["garden", "garden"]


def test_a_task_of_another_holder_or_account_is_no_subgoal(
    memory: AgentMemory, owner: Owner, stranger: Account
) -> None:
    ana = memory_of(replace(owner, user_id="ana"))

    with (
        ana.task("for Ana"),
        memory_of(Owner(account_id=stranger.id, agent_id="assistant", user_id="ana")).task("theirs"),
        memory.task("for nobody"),
        memory_of(replace(owner, agent_id="colleague", user_id="ana")).task("for Ana as well"),
    ):
        pass

    assert parents(ana, "for Ana", "for Ana as well") == [None, "for Ana"]
    assert parents(memory, "for nobody") == [None]


def test_tasks_of_other_threads_and_concurrent_coroutines_are_separate(memory: AgentMemory) -> None:
    def run(name: str) -> None:
        try:
            with memory.task(name), memory.task(f"in {name}"):
                pass
        finally:
            connection.close()

    async def both() -> None:
        await asyncio.gather(*(asyncio.to_thread(run, name) for name in ("one", "two")))

    with ThreadPoolExecutor(1) as threads, memory.task("above"):
        threads.submit(run, "apart").result()
    asyncio.run(both())

    assert parents(memory, "apart", "in apart", "one", "in one", "two", "in two") == [
        *(None, "apart"),
        *(None, "one", None, "two"),
    ]


def test_a_task_that_is_closed_or_deleted_inside_its_block_stays_so(memory: AgentMemory) -> None:
    with memory.task("dig") as task:
        memory.complete_goal(task.goal.id, "abandoned", "too wet")
    with memory.task("plant") as other:
        delete_goal(memory.owner, other.goal.id, now=NOW)
    with pytest.raises(ValueError, match="slept"), memory.task("rest") as third:
        int(memory.complete_goal(third.goal.id, result="slept").goal.result)

    assert [(goal.text, goal.status, goal.result) for goal in (stored(), stored("rest"))] == [
        ("dig", "abandoned", "too wet"),
        ("rest", "completed", "slept"),
    ]


def test_a_blocked_goal_is_completed_only_with_force(memory: AgentMemory) -> None:
    waiter = memory.add_goal("plant", blocked_by=[memory.add_goal("dig").id])

    with pytest.raises(Conflict):
        memory.complete_goal(waiter.id)

    assert memory.complete_goal(waiter.id, force=True).goal.status == "completed"


def test_a_task_in_a_failed_transaction_raises_the_original_error(
    memory: AgentMemory, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(DatabaseError, match="no_such_table"), transaction.atomic(), memory.task("dig"):
        connection.cursor().execute("SELECT * FROM no_such_table")

    assert not Goal.objects.exists()
    assert "was not abandoned: InternalError" in caplog.text


def test_a_task_that_cannot_be_opened_runs_nothing(memory: AgentMemory) -> None:
    ran = []

    with pytest.raises(Unprocessable), memory.task(" "):
        ran.append(1)

    assert (ran, Goal.objects.count()) == ([], 0)


def test_a_task_is_the_active_goal_of_its_session_and_then_the_previous_goal_returns(
    memory: AgentMemory, owner: Owner
) -> None:
    session_of(owner).set_active_goal("g1", "find the key")

    with memory.task("dig", conversation_id="c1") as task:
        assert session_of(owner).get_active_goal() == {"goal_id": str(task.goal.id), "goal_description": "dig"}
        with pytest.raises(ValueError, match="rain"), memory.task("deeper", conversation_id="c1"):
            raise ValueError("rain")
        shown = session_of(owner).get_active_goal()
        assert shown is not None
        assert shown["goal_description"] == "dig"

    assert session_of(owner).get_active_goal() == {"goal_id": "g1", "goal_description": "find the key"}


def test_a_session_without_an_active_goal_has_none_after_a_task(memory: AgentMemory, owner: Owner) -> None:
    with memory.task("x" * 5_000, conversation_id="c1"):
        shown = session_of(owner).get_active_goal()
        assert shown is not None
        assert len(shown["goal_description"]) == SHOWN_TO_SESSION

    assert session_of(owner).get_active_goal() is None


def test_an_active_goal_set_during_a_task_stays_active(memory: AgentMemory, owner: Owner) -> None:
    session_of(owner).set_active_goal("g1", "find the key")

    with memory.task("dig", conversation_id="c1"):
        session_of(owner).set_active_goal("g2", "run")
    assert session_of(owner).get_active_goal() == {"goal_id": "g2", "goal_description": "run"}

    with memory.task("plant", conversation_id="c1"):
        session_of(owner).clear_active_goal()
    assert session_of(owner).get_active_goal() is None


def test_a_session_that_cannot_be_reached_abandons_the_task_before_it_begins(
    memory: AgentMemory, dead_redis: None
) -> None:
    with pytest.raises(RedisError), memory.task("dig", conversation_id="c1"):
        pytest.fail("the block ran")

    assert (stored().status, stored().result) == ("abandoned", "ConnectionError")


def test_a_task_without_an_embedder_waits_for_its_vector(
    memory: AgentMemory, embedding_server: EmbeddingServer
) -> None:
    embedding_server.fail()

    with memory.task("dig"):
        pass

    assert (stored().status, stored().embed_after) == ("completed", NOW)


def test_closing_a_task_again_with_another_status_is_refused(memory: AgentMemory) -> None:
    with memory.task("dig") as task:
        pass

    with pytest.raises(Conflict):
        memory.complete_goal(task.goal.id, "abandoned")
