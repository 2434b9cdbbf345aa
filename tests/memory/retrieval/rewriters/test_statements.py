"""Questions as the beginnings of their answers."""

import pytest

from memory.retrieval.rewriters.expansion import MAX_QUESTION_CHARACTERS, restate_question


@pytest.mark.parametrize(
    ("question", "statement"),
    [
        ("Where does Ana live?", "Ana lives in"),
        ("where does ana live", "ana lives in"),
        ("Where did I put the keys?", "I put the keys"),
        ("Where does my older sister work?", "my older sister works at"),
        ("Where do Ana's parents live?", "Ana's parents live in"),
        ("Where was Ana born?", "Ana was born"),
        ("When did the flood happen?", "the flood happened"),
        ("When was the shed built?", "the shed was built"),
        ("When is my birthday?", "my birthday is"),
        ("What is Ana's favourite colour?", "Ana's favourite colour is"),
        ("What are the names of my cats?", "the names of my cats are"),
        ("What is Ana studying?", "Ana is studying"),
        ("What did Ana buy last week?", "Ana bought last week"),
        ("What did the doctor say about my knee?", "the doctor said about my knee"),
        ("What happened to the boat?", "happened to the boat"),
        ("What time does the ferry leave?", "the ferry leaves"),
        ("What kind of music does my brother like?", "my brother likes music"),
        ("Which city does Ana live in?", "Ana lives in city"),
        ("How many bikes does Ana have?", "Ana has bikes"),
        ("How did Ana break her leg?", "Ana broke her leg"),
        ("Why did Rui quit?", "Rui quit because"),
        ("Who is Ana's manager?", "Ana's manager is"),
        ("Who did Ana meet in the harbour?", "Ana met in the harbour"),
        ("Who told me about the pump?", "told me about the pump"),
        ("Does Ana like tea?", "Ana likes tea"),
        ("Did Ana and Rui get married?", "Ana and Rui got married"),
        ("Is Ana allergic to nuts?", "Ana is allergic to nuts"),
        ("Has Ana ever visited the mill?", "Ana has visited the mill"),
        ("Can you tell me where Ana lives?", "Ana lives"),
        ("Do you know where is Ana?", "Ana is"),
        ("Ana moved. So, where does Rui live?", "Rui lives in"),
    ],
)
def test_a_question_becomes_the_beginning_of_its_answer(question: str, statement: str) -> None:
    assert restate_question(question) == statement


@pytest.mark.parametrize(
    "question",
    [
        "",
        "What?",
        "What is it?",
        "the blue boat",
        "What did you suggest?",
        "What is my sister studying?",
        "What is my favourite painting?",
        "Is the shed red?",
        "How old is Ana?",
        "What must I never do?",
        "What more can Ana do?",
        "When did the zorble frimp?",
        "Where does the work plan start to change?",
        "Wo wohnt Ana?",
        "Où habite Ana ?",
        "安娜住在哪里？",
        "Where does Ana live " + "now " * (MAX_QUESTION_CHARACTERS // 4) + "?",
    ],
)
def test_a_question_that_no_rule_matches_is_not_restated(question: str) -> None:
    assert restate_question(question) == ""
