"""Questions of users about themselves find the statements that answer them in other words."""

import pytest

from memory.retrieval.confidence import OWN, add_confidence
from memory.retrieval.own_questions import patterns_of_answers
from tests.memory.candidates import asking, found

ANSWERED = [
    ("Where do I live?", "I moved to Lisbon in March."),
    ("Which city do I live in?", "The user lives in Lisbon"),
    ("Where is home for me?", "The user's flat is in Neukölln"),
    ("What's my job?", "my name is Bob and I work as a data engineer"),
    ("Which company employs me?", "The user works at Siemens"),
    ("Who is my employer?", "I just started a new job at Equinor as a geologist"),
    ("How old am I?", "my birthday is on 3 May 1990"),
    ("When was I born?", "I'm 36 and from Leeds"),
    ("What is my name?", "Hi, I'm Alex. I love basketball."),
    ("Am I married?", "The user's wife is Julia"),
    ("How many children do I have?", "My wife and I have two kids, Tom and Mia."),
    ("Who is in my family?", "The user's daughter is Mia"),
    ("Do I have any pets?", "We have a dog called Rex."),
    ("What are my hobbies?", "The user loves basketball and gaming"),
    ("What do I like?", "The user enjoys hiking"),
    ("What are my dietary restrictions?", "I'm vegetarian and I'm allergic to nuts"),
    ("Can I eat a peanut butter sandwich?", "The user is allergic to nuts"),
    ("What do you know about me?", "Hi, I'm Alex."),
]
UNANSWERED = [
    ("Where do I live?", "Ana moved to Lisbon in March."),
    ("Where do I live?", "I love the light in Lisbon."),
    ("Where does Ana live?", "I moved to Lisbon in March."),
    ("What's my job?", "I watched a film about a baker."),
    ("How old am I?", "I have 36 unread messages."),
    ("Am I married?", "Julia's wife is a doctor."),
    ("Do I have any pets?", "Rex barked at the neighbour's cat."),
    ("What are my hobbies?", "The train was late again."),
    ("When do I fly to Rome?", "I live in Lisbon."),
    ("Can I eat here?", "The user's sister is allergic to nuts"),
    ("Why did my cron job fail?", "I work as a nurse."),
    ("How do I save my work?", "I work as a nurse."),
    ("What do I work on next?", "I work as a nurse."),
    ("What's my job?", "I have a sister in Oslo."),
    ("What is my wifi name?", "My name is Ana."),
    ("Who am I meeting on Tuesday?", "My name is Ana."),
    ("What is my address?", "I moved the meeting to Friday."),
]


def answers(question: str, statement: str) -> bool:
    return any(answer.search(statement) for answer in patterns_of_answers(question))


@pytest.mark.parametrize(("question", "statement"), ANSWERED)
def test_a_statement_that_answers_in_other_words_is_known(question: str, statement: str) -> None:
    assert answers(question, statement)


@pytest.mark.parametrize(("question", "statement"), UNANSWERED)
def test_what_is_said_of_others_or_of_something_else_answers_nothing(question: str, statement: str) -> None:
    assert not answers(question, statement)


@pytest.mark.parametrize(
    ("role", "speaker", "is_likely"),
    [
        pytest.param("", "", True, id="a fact"),
        pytest.param("user", "", True, id="the user"),
        pytest.param("user", "Ana", False, id="somebody else"),
        pytest.param("assistant", "", False, id="an assistant"),
        pytest.param("tool", "", False, id="a tool"),
    ],
)
def test_it_is_likely_to_help_if_the_user_said_it(role: str, speaker: str, *, is_likely: bool) -> None:
    candidate = found(1, role=role, speaker=speaker)
    candidate.text = "I moved to Lisbon in March."

    add_confidence([candidate], asking(text="Where do I live?"))

    assert (candidate.likelihood >= OWN) == is_likely
