"""Work in each scope, as the documents name it, and what a posture brings first."""

from dataclasses import replace
from typing import Any

import pytest

from memory.extraction.turn_slots import Action, Observation, Outcome, Point, Rationale, Reasoning, Slots
from memory.models import Account, Fact, Kind, Participant
from memory.owner import Owner
from memory.reasoning import ReasoningTier
from memory.retrieval.candidates import Candidate
from memory.retrieval.queries import Posture, Scope
from memory.services.conversations.lifecycle import ConversationDefaults, create_conversation
from tests.memory.contexts import context_of, entry, keep
from tests.memory.episodes import NOW
from tests.memory.goals import aim
from tests.memory.graphs import link, node, store_node
from tests.memory.learnings import learn, team_of
from tests.memory.recalls import found_by_words
from tests.memory.records import add_record
from tests.memory.turns import say, turn

pytestmark = pytest.mark.django_db

HERE, BEFORE, THEIRS = "c1", "c0", "theirs"


@pytest.fixture(autouse=True)
def resumed(owner: Owner) -> None:
    """Make the active conversation resume another one."""
    for conversation_id, continues in ((BEFORE, ""), (HERE, BEFORE)):
        create_conversation(owner, conversation_id, defaults=ConversationDefaults(continues=continues), now=NOW)


def reasoned(text: str = "use a siphon for the boiler") -> Slots:
    rationale = Rationale(decisions=[Point(what=text)], blockers=[Point(what="the boiler valve is not delivered")])
    return Slots(reasoning=Reasoning(tier=ReasoningTier.STRUCTURED_RATIONALE, rationale=rationale))


def worked(result: str, *, status: str = "succeeded") -> Slots:
    return Slots(action=Action(text=f"Worked: {result}"), outcome=Outcome(status=status, text=result))


def texts(found: list[Candidate]) -> set[str]:
    return {each.text for each in found}


def within(owner: Owner, scope: Scope, **asked: Any) -> set[str]:
    return texts(found_by_words(owner, "boiler", conversation_id=HERE, scopes=[scope], **asked))


def test_the_turn_scope_holds_the_last_request_and_tool_results_since(owner: Owner) -> None:
    said = [("user", "boiler before"), ("assistant", "boiler answer"), ("user", "boiler request")]
    called = [("assistant", "boiler call"), ("tool", "boiler reading: 3 bar")]
    say(owner, *(turn(text, role=role) for role, text in (*said, *called)))
    say(owner, turn("boiler elsewhere"), conversation_id="c9")

    assert within(owner, Scope.TURN) == {"boiler request", "boiler call", "boiler reading: 3 bar"}


def test_a_turn_holds_the_slots_of_work_in_progress(owner: Owner) -> None:
    add_record(owner, HERE, slots=worked("boiler done"))
    add_record(owner, HERE, slots=Slots(observation=Observation(text="boiler drips"), action=Action(text="boiler off")))
    add_record(owner, BEFORE, slots=Slots(observation=Observation(text="boiler dripped")))

    assert within(owner, Scope.TURN) == {"boiler drips", "boiler off"}


def test_a_session_holds_the_details_of_the_conversation(owner: Owner) -> None:
    for conversation_id in (BEFORE, HERE):
        say(owner, turn(f"boiler said in {conversation_id}"), conversation_id=conversation_id)
        add_record(owner, conversation_id, slots=worked(f"boiler result of {conversation_id}"))

    assert within(owner, Scope.SESSION) == {
        *("boiler said in c1", "boiler result of c1", "Worked: boiler result of c1"),
    }


def test_the_lineage_scope_holds_decisions_blockers_and_steps_of_resumed_work(owner: Owner) -> None:
    add_record(owner, BEFORE, slots=reasoned())
    add_record(owner, BEFORE, slots=worked("the boiler is to be filled next", status="open"))
    node(owner, "boiler work so far", kind=Kind.WORK_EPISODE, conversation_id=BEFORE)
    add_record(owner, HERE, slots=worked("boiler result of now"))

    assert within(owner, Scope.LINEAGE) == {
        "Decided: use a siphon for the boiler\nBlocked by: the boiler valve is not delivered",
        *("the boiler is to be filled next", "Worked: the boiler is to be filled next", "boiler work so far"),
    }


def test_a_workspace_holds_decisions_rules_and_artifacts_of_the_project(owner: Owner) -> None:
    project = replace(owner, channel="house")
    add_record(project, "of the project", slots=reasoned("drain the boiler"))
    add_record(owner, "of no project", slots=reasoned("fill the boiler"))
    keep(owner, context_of(owner), entry("boiler rule"))
    learn(owner, team_of(owner).id, "boiler learning")
    aim(owner, "boiler goal")
    for kind in (Kind.ARTIFACT, Kind.STRATEGY, Kind.WORK_EPISODE):
        node(owner, f"boiler {kind.value}", kind=kind, conversation_id="of no project")

    assert {text.split("\n")[0] for text in within(project, Scope.WORKSPACE)} == {
        *("Decided: drain the boiler", "boiler rule", "boiler learning", "boiler goal"),
        *("boiler artifact", "boiler strategy", "boiler work_episode"),
    }


def test_a_profile_holds_preferences_and_boundaries_of_the_user(owner: Owner) -> None:
    for user_id in ("ana", "ben"):
        claim = f"{user_id} wants the boiler off at night"
        store_node(owner, Fact(kind=Kind.FACT, text=claim, recorded_at=NOW, user_id=user_id))
    node(owner, "boiler goal", kind=Kind.GOAL, user_id="ana")

    assert within(replace(owner, user_id="ana"), Scope.PROFILE) == {"ana wants the boiler off at night"}


@pytest.mark.parametrize(
    ("posture", "first"),
    [
        pytest.param(Posture.ACTIVE_TURN, HERE, id="active turn"),
        pytest.param(Posture.RESUME, BEFORE, id="resume"),
        pytest.param(Posture.RECOVERY, BEFORE, id="recovery"),
    ],
)
def test_an_active_turn_finds_outcomes_of_its_session_first_and_a_resume_those_of_its_lineage(
    owner: Owner, posture: Posture, first: str
) -> None:
    for conversation_id in (BEFORE, HERE):
        add_record(owner, conversation_id, slots=worked("The boiler leaks."))

    found = found_by_words(owner, "boiler", conversation_id=HERE, posture=posture, slots=["outcome"])

    assert [each.conversation_id for each in found] == [first, HERE if first == BEFORE else BEFORE]
    assert texts(found) == {"The boiler leaks."}


def test_a_lineage_does_not_reveal_resumed_conversations_of_others(owner: Owner, account: Account) -> None:
    create_conversation(owner, "further", defaults=ConversationDefaults(continues=BEFORE), now=NOW)
    add_record(owner, BEFORE, slots=reasoned())
    colleague = replace(owner, agent_id="colleague")
    Participant.objects.create(account=account, agent_id="colleague", conversation_id=HERE)

    assert within(owner, Scope.LINEAGE)
    assert not within(colleague, Scope.LINEAGE)


def test_a_later_revision_of_an_artifact_comes_before_the_former(owner: Owner) -> None:
    former = node(owner, "boiler boiler boiler plan", kind=Kind.ARTIFACT)
    latest = node(owner, "boiler plan, second draft of it all", kind=Kind.ARTIFACT)
    link(latest, former, "SUPERSEDES")

    found = found_by_words(owner, "boiler", techniques=("lexical", "lineage", "-duplicates"))

    assert [each.id for each in found] == [latest.id, former.id]
