"""Content terms of a question, without stop words of the account's language, and its subjects."""

from typing import Any

import pytest

from memory.models import Account
from memory.owner import Owner
from memory.retrieval.queries import MAX_QUERY_CHARACTERS
from tests.memory.episodes import draft, store
from tests.memory.words import analysis_for

pytestmark = pytest.mark.django_db


def content_of(owner: Owner, text: str, **asked: Any) -> set[str]:
    """Return the content terms without the account's prefix."""
    return {term.lexeme[6:] for term in analysis_for(owner, text, **asked).terms if term.is_content}


@pytest.mark.parametrize(
    ("language", "text", "content"),
    [
        pytest.param("english", "What does she paint, and why?", {"paint"}, id="english"),
        pytest.param("english", "WHO Did The Painting", {"paint"}, id="capitals"),
        pytest.param("english", "because before during once only any very above", set(), id="stems unlike stop words"),
        pytest.param("english", "ourselves yourselves themselves", set(), id="stems of plurals"),
        pytest.param("english", "does the doe hide", {"doe", "hide"}, id="a word with the stem of a stop word"),
        pytest.param("english", "don't we", set(), id="contractions"),
        pytest.param("english", "the 2.4.1 of foo_bar", {"2.4.1", "foo", "bar"}, id="identifiers"),
        pytest.param("german", "Wo ist das Haus unserer Mutter?", {"haus", "mutt"}, id="german"),
        pytest.param(
            "french", "Sont les chevaux de ma tante?", {"cheval", "tant"}, id="french, with les, which its list lacks"
        ),
        pytest.param("russian", "где новая книга", {"нов", "книг"}, id="russian"),
        pytest.param("simple", "What does she paint?", {"what", "does", "she", "paint"}, id="simple has none"),
        pytest.param("simple", "水泵在哪里", {*"水泵在哪里", "水泵", "泵在", "在哪", "哪里"}, id="chinese"),
        pytest.param("english", "水泵在哪里", {*"水泵在哪里", "水泵", "泵在", "在哪", "哪里"}, id="chinese in english"),
    ],
)
def test_stop_words_of_the_accounts_language_are_not_content(
    account: Account, owner: Owner, language: str, text: str, content: set[str]
) -> None:
    Account.objects.filter(id=account.id).update(language=language)
    store(owner, draft(text))

    assert content_of(owner, text) == content


@pytest.mark.parametrize(
    ("subjects", "expected"),
    [
        pytest.param([], set(), id="no subject"),
        pytest.param(["Ana"], {"ana"}, id="one"),
        pytest.param(["Ana Okafor"], {"ana", "okafor"}, id="one of two words"),
        pytest.param(["ANA", "Okafor"], {"ana", "okafor"}, id="two, however they are written"),
        pytest.param(["Rui"], set(), id="a subject that no memory names"),
        pytest.param(["Painting"], {"paint"}, id="one with the same stem"),
    ],
)
def test_subjects_are_content_terms_of_their_own(owner: Owner, subjects: list[str], expected: set[str]) -> None:
    text = "What does Ana Okafor paint?"
    store(owner, draft(text))

    terms = analysis_for(owner, text, names=["Ana Okafor"], subjects=subjects).terms

    assert {term.lexeme[6:] for term in terms if term.is_subject} == expected
    assert {term.lexeme[6:] for term in terms if term.is_content} == {"ana", "okafor", "paint"}


def test_stop_words_in_names_and_expansions_are_not_content_either(owner: Owner) -> None:
    store(owner, draft("why does the Bank of England only paint"))

    content = content_of(owner, "paint", names=["Bank of England"], expansions=["Why only", "does the bank"])

    assert content == {"paint", "bank", "england"}


def test_words_without_content_are_still_weighted_terms(owner: Owner) -> None:
    store(owner, draft("why does she paint"))

    terms = analysis_for(owner, "why does she paint").terms

    assert {term.lexeme[6:] for term in terms if not term.is_content} == {"whi", "doe", "she"}
    assert {term.lexeme[6:] for term in terms if term.is_content} == {"paint"}
    assert all(term.weight > 0 for term in terms)


def test_stop_words_depend_on_the_language_of_each_account(account: Account, owner: Owner, stranger: Account) -> None:
    Account.objects.filter(id=stranger.id).update(language="simple")
    theirs = Owner(account_id=stranger.id, agent_id="assistant")
    for each in (owner, theirs):
        store(each, draft("why does she paint"))

    assert content_of(owner, "why paint") == {"paint"}
    assert content_of(theirs, "why paint") == {"why", "paint"}


def test_a_question_without_blanks_is_read_as_fast_as_another(owner: Owner) -> None:
    """The parser's time grows with the square of a run of characters: this one would take it minutes."""
    run = "a@1" * (MAX_QUERY_CHARACTERS // 3)
    store(owner, draft("a 1"))

    assert content_of(owner, run) <= {"a", "1"}
