"""People for whom "she" and "he" stand where a clause brings in somebody else."""

import pytest

from tests.memory.extraction.spoken import claims, extracted, turn


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("My wife gave birth to a boy yesterday, he's called Leo.", "Leo"),
        ("My sister had a baby girl, she's called Mia.", "Mia"),
        ("My sister had a baby girl. Her name is Mia.", "Mia"),
        ("My boss hired an assistant, he's called Bob.", "Bob"),
        ("My mum hired a cleaner, she's from Poland and she's called Ewa.", "Poland"),
        ("My mum is lovely. We hired a cleaner, she's from Poland.", "Poland"),
        ("My son has a friend, he's allergic to nuts.", "allergic"),
        ("My son met another teacher. He's allergic to nuts.", "allergic"),
        ("My friend Ben has a girlfriend, she's vegan.", "vegan"),
        ("My brother has a dog. He's called Rex.", "Rex"),
        ("My dad is retired. He has a dog. He's called Rex.", "Rex"),
        ("My mum hired a cleaner. She lives in Leeds.", "Leeds"),
        ("My neighbour has a cat. Its name is Tom.", "Tom"),
    ],
)
def test_what_is_said_of_somebody_brought_in_is_not_taken_for_the_owners(text: str, wrong: str) -> None:
    assert not [claim for claim in claims(text) if wrong in claim]


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("My sister Priya is a nurse, she's vegan.", "Priya is vegan"),
        ("My sister has a degree, she's vegan.", "The user's sister is vegan"),
        ("My sister has a baby shower on Friday, she's vegan.", "The user's sister is vegan"),
        ("My sister has a husband, she's vegan.", "The user's sister is vegan"),
        ("My friend Ben has two kids, he's vegan.", "Ben is vegan"),
        ("I have a sister called Ana, she's vegan.", "Ana is vegan"),
        ("We got a puppy. Her name is Luna.", "The user's puppy is Luna"),
        ("My daughter is called Mia, she's vegan.", "Mia is vegan"),
        ("My sister has a cat. She lives in Leeds.", "The user's sister lives in Leeds"),
        ("My sister has a baby girl. She works from home.", "The user's sister works from home"),
        ("My sister has a daughter. She is pregnant.", "The user's sister is pregnant"),
        ("My sister has a new doctor. She lives in Leeds.", "The user's sister lives in Leeds"),
        ("My sister has a cat. She is a nurse.", "The user's sister is a nurse"),
    ],
)
def test_she_and_he_stand_for_the_only_one_spoken_of(text: str, stated: str) -> None:
    assert stated in claims(text)


@pytest.mark.parametrize("text", ["ok, ", "so...", "🙂", "Well -", "Hi! Ok."])
def test_a_clause_without_words_is_about_nobody_of_the_turn_before(text: str) -> None:
    turns = [turn("My sister lives in Bonn."), turn(text, index=1)]
    assert [fact.claim for fact in extracted(turns).facts] == ["The user's sister lives in Bonn"]


@pytest.mark.parametrize(
    ("first", "question", "answer", "corrected"),
    [
        ("My sister is called Priya.", "And your brother?", "Actually it's Tom.", ()),
        ("My flight is on 12 June.", "So you arrive on 13 June?", "No, the 14th.", ()),
        ("My flight is on 12 June.", "Noted.", "No, the 14th.", (1,)),
        ("My sister is called Priya.", "And your brother?", "Sorry, not Priya, Rosa.", (1,)),
    ],
)
def test_an_answer_to_a_question_takes_back_only_what_it_names(
    first: str, question: str, answer: str, corrected: tuple[int, ...]
) -> None:
    turns = [turn(first), turn(question, role="assistant", index=1), turn(answer, index=2)]

    facts = extracted(turns).facts
    assert [number for fact in facts for number in fact.corrects] == [*corrected]


@pytest.mark.parametrize(
    ("before", "text", "wrong"),
    [
        ("My mum does the pickups.", "Put in that Mila can't have peanuts, she's allergic, the pen is here", "mum is"),
        ("My boss lives in Bonn.", "Remind me that Anna can't come on Friday, she's pregnant and tired", "boss is"),
        ("My mum lives in Bonn.", "Add that our nanny can't lift, she's pregnant", "mum is"),
        ("My mum lives in Bonn.", "Add that Lea can't drive, she's blind", "mum is"),
        ("My mum lives in Bonn.", "lena can't come, she's pregnant", "pregnant"),
        ("My mum lives in Bonn.", "Lena visits on Friday, she's allergic to cats", "mum is"),
        ("My mum lives in Bonn.", "I saw my doctor, she's from Peru", "Peru"),
    ],
)
def test_she_is_nobody_of_the_turn_before_if_the_same_sentence_names_another(
    before: str, text: str, wrong: str
) -> None:
    turns = [turn(before), turn(text, index=1)]
    assert not [fact.claim for fact in extracted(turns).facts if wrong in fact.claim]


@pytest.mark.parametrize(
    ("before", "text", "stated"),
    [
        ("My mum lives in Bonn.", "Put in that Mila can't swim, she's afraid of water", "Mila is afraid of water"),
        ("My mum lives in Bonn.", "Anna can't come on Friday, she's pregnant", "Anna is pregnant"),
        ("My mum lives in Bonn.", "The flat is small, she's retired", "The user's mum is retired"),
        ("My mum lives in Bonn.", "Put in that she's allergic to nuts", "The user's mum is allergic to nuts"),
        ("My sister lives in Bonn.", "That's Priya, by the way, and she's retired", "The user's sister is retired"),
        ("My boss lives in Bonn.", "The boss called, she's pregnant", "The user's boss is pregnant"),
        ("My sister Ana lives in Bonn.", "ana can't come, she's pregnant", "Ana is pregnant"),
    ],
)
def test_she_is_the_one_named_in_the_sentence_or_else_the_one_of_the_turn_before(
    before: str, text: str, stated: str
) -> None:
    turns = [turn(before), turn(text, index=1)]
    assert stated in [fact.claim for fact in extracted(turns).facts]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("I am a vegetarian and allergic to nuts.", ["The user is vegetarian", "The user is allergic to nuts"]),
        ("I'm diabetic and allergic to penicillin.", ["The user is diabetic", "The user is allergic to penicillin"]),
        ("I'm a nurse in Oslo and allergic to nuts.", ["The user is a nurse in Oslo", "The user is allergic to nuts"]),
        (
            "I'm vegan, diabetic and allergic to nuts.",
            ["The user is vegan", "The user is diabetic", "The user is allergic to nuts"],
        ),
        ("I'm allergic to nuts and a vegetarian.", ["The user is allergic to nuts", "The user is vegetarian"]),
        (
            "My son is diabetic and allergic to nuts.",
            ["The user's son is diabetic", "The user's son is allergic to nuts"],
        ),
        ("As a vegan I don't eat honey.", ["The user is vegan", "The user does not eat honey"]),
        ("As a developer, I want a dark mode.", []),
        ("I am responsible for a diabetic and a vegan.", []),
        ("As a nurse, I work nights.", ["The user is a nurse", "The user works nights"]),
        (
            "Remember: my name is Bob and I work at Siemens.",
            ["The user's name is Bob", "The user works at Siemens"],
        ),
        ("Important: I never eat pork.", ["The user never eats pork"]),
    ],
)
def test_what_leaves_its_subject_out_is_of_the_subject_before_it(text: str, found: list[str]) -> None:
    assert claims(text) == found


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("I'm allergic to nuts, vegan cheese and milk.", "user is vegan"),
        ("I'm not vegan and allergic to nuts.", "user is allergic"),
        ("I'm cooking for two, vegan and allergic to nuts.", "user is"),
        ("I'm a nurse and my wife is vegan and allergic to nuts.", "user is allergic"),
        ("I was sick and allergic to everything.", "allergic"),
        ("As a child I was allergic to milk.", "child"),
        ("As a nurse I worked nights.", "is a nurse"),
        ("Remember: the milk.", "milk"),
        ("Bob: I'm vegan.", "vegan"),
    ],
)
def test_a_state_of_somebody_else_is_not_of_the_subject_before_it(text: str, wrong: str) -> None:
    assert not any(wrong in claim for claim in claims(text))
