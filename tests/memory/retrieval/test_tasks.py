"""Tasks: which requests are some, what they name, and that contexts answer those that name what is known."""

from dataclasses import replace

import pytest

from memory.owner import Owner
from memory.retrieval.candidates import Candidate
from memory.retrieval.queries import Query
from memory.retrieval.tasks import is_task, names_what_is_known
from memory.services.prompt_context.build import build_prompt_context
from memory.services.turns import TurnDraft
from tests.memory.candidates import found
from tests.memory.context import request_for
from tests.memory.episodes import NOW
from tests.memory.knowledge import extract_all, say_sentences
from tests.memory.recalls import UNREAD, found_by_words
from tests.memory.retrieval.test_confidence import of_model
from tests.memory.turns import say, turn

SISTER = found(1, "My sister Ana is vegetarian.")


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("Plan a dinner with my sister", True),
        ("write a birthday card for my boss", True),
        ("Could you please book a table for me and my partner?", True),
        ("I need to buy tyres for our car.", True),
        ("What should I cook for my sister?", True),
        ("Any ideas for my sister's birthday?", True),
        ("Order status of my sister's laptop?", False),
        ("Plan B was what?", False),
        ("Text of my contract?", False),
        ("Where does my sister live?", False),
        ("Tell me where my sister lives", False),
        ("Can you tell me what my sister eats?", False),
        ("When should I congratulate my sister?", False),
        ("How much is our electricity bill", False),
        ("Where did Maria get the idea for the box?", False),
        (f"Translate: {'My sister came. ' * 30}", False),
        (f"Write a summary: {'My sister came. ' * 30}", False),
    ],
)
def test_a_task_asks_to_do_something_or_for_advice(text: str, is_one: bool) -> None:
    assert is_task(text) == is_one


@pytest.mark.parametrize(
    ("task", "candidate", "is_known"),
    [
        pytest.param("Plan a dinner with my sister", SISTER, True, id="a relative"),
        pytest.param("Plan a dinner with my sisters", SISTER, True, id="some"),
        pytest.param("Plan a dinner with my sister", found(1, "The user's sister is Ana"), True, id="in a fact"),
        pytest.param("Plan a dinner with my brother", SISTER, False, id="another relative"),
        pytest.param("Plan a dinner with my sister", found(1, "She was like a sister."), False, id="nobody's"),
        pytest.param("Buy tyres for my car", found(1, "My blue car broke down."), True, id="a thing"),
        pytest.param(
            "Buy tyres for my blue car", found(1, "My blue jacket is dirty."), False, id="another of its colour"
        ),
        pytest.param("Write a card for Leo", found(1, "Leo hates seafood."), True, id="a name"),
        pytest.param("Write a card for Leo", found(1, "Leonie hates seafood."), False, id="a longer name"),
        pytest.param("Plan a trip", found(1, "A trip to Rome", hops=0), True, id="an entity that it names"),
        pytest.param("Plan a trip", found(1, "A trip to Rome", hops=3), False, id="far from what it names"),
        pytest.param("Is my sister well?", SISTER, False, id="no task"),
    ],
)
def test_a_task_names_what_a_candidate_is_about(task: str, candidate: Candidate, is_known: bool) -> None:
    names = ("Leo",) if "Leo" in task else ()

    assert names_what_is_known([found(2, "The boiler is out."), candidate], Query(text=task, names=names)) == is_known


@pytest.mark.django_db
@pytest.mark.usefixtures("empty_redis", "embedding_server")
@pytest.mark.parametrize(
    ("task", "is_silent"),
    [
        ("write a birthday card for my boss", False),
        ("write a birthday card for Martin", False),
        ("write a birthday card for my cousin", True),
        ("write a birthday card for Tom", True),
        ("When is the birthday of my boss?", True),
    ],
)
def test_a_context_is_silent_for_a_task_unless_it_names_what_is_known(owner: Owner, task: str, is_silent: bool) -> None:
    far = of_model(1.5)
    say(owner, TurnDraft(message=turn("My boss is called Martin.").message, own=far), conversation_id="before")

    context = build_prompt_context(owner, request_for(query=task, own=of_model(0.0)), now=NOW)

    assert (context.abstained, not context.items) == (is_silent, is_silent)


@pytest.mark.django_db
@pytest.mark.usefixtures("empty_redis")
@pytest.mark.parametrize(
    ("task", "is_found"),
    [
        ("Plan a dinner with my sister", True),
        ("Plan a dinner with my younger sister", True),
        ("Plan a dinner with my brother", False),
        ("Where does my sister work?", False),
    ],
)
def test_what_is_known_of_whom_a_task_calls_the_users_own_is_found(owner: Owner, task: str, is_found: bool) -> None:
    user = replace(owner, user_id="u1")
    say_sentences(user, "My sister Ana is vegetarian.", "Ana is allergic to peanuts.", name="")
    extract_all(NOW)

    found = found_by_words(user, task, techniques=("lexical", "graph", *UNREAD))

    assert ("Ana is allergic to peanuts" in [each.text for each in found]) == is_found
    other = replace(owner, user_id="u2")
    assert found_by_words(other, task, techniques=("lexical", "graph", *UNREAD)) == []
