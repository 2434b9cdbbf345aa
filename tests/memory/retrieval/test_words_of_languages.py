"""Words of any language and script, and hostile questions, find the memories that hold them."""

import pytest
from django.db import connection

from memory.models import Account
from memory.owner import Owner
from tests.memory.episodes import draft, store
from tests.memory.words import analysis_for, found_by_search, texts_by_words

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("language", "text", "question"),
    [
        pytest.param("german", "Die Häuser am Wasser", "Wo ist das Haus?", id="german"),
        pytest.param("french", "les chevaux couraient", "courir, courant", id="french"),
        pytest.param("russian", "новые книги на столе", "книга", id="russian"),
        pytest.param("russian", "three pumps на столе", "pump", id="latin letters in russian"),
        pytest.param("arabic", "الكتاب على الطاولة", "كتاب", id="arabic"),
        pytest.param("simple", "הספר על השולחן", "השולחן", id="hebrew"),
        pytest.param("english", "我昨天修理了水泵", "泵", id="one chinese character"),
        pytest.param("simple", "我昨天修理了水泵", "水泵在哪里？", id="chinese question"),
        pytest.param("simple", "ポンプを修理しました", "修理", id="japanese"),
        pytest.param("english", "ポンプを修理しました", "ポンプ", id="katakana"),
        pytest.param("simple", "펌프를 수리했다", "펌프를", id="korean"),
        pytest.param("english", "Version 2.4.1 of foo_bar at example.com/x", "what is foo_bar", id="identifiers"),
        pytest.param("english", "PUMPING with İstanbul", "pumps", id="capitals"),
    ],
)
def test_a_text_is_found_by_words_of_its_language(
    account: Account, owner: Owner, language: str, text: str, question: str
) -> None:
    Account.objects.filter(id=account.id).update(language=language)
    store(owner, draft(text), draft("qqq"))

    assert texts_by_words(owner, question) == [text]
    assert len(found_by_search(owner, question)) == 1


def test_each_character_of_a_script_without_blanks_counts(owner: Owner) -> None:
    store(owner, draft("水泵坏了"), draft("水很冷"), draft("天气冷"))

    assert texts_by_words(owner, "水泵") == ["水泵坏了", "水很冷"]
    assert texts_by_words(owner, "水泵", phrases=["水泵"]) == ["水泵坏了", "水很冷"]


def test_a_question_of_stop_words_finds_texts_with_them(owner: Owner) -> None:
    store(owner, draft("who is she with"), draft("nothing at all"))

    assert texts_by_words(owner, "With who is she?") == ["who is she with"]


@pytest.mark.parametrize(
    "question",
    [
        *("pump & !pump", "!pump", "pump:*", "pump:ABCD", "pump <-> <2> pump", "(pump", "pump)", "'pump", "pump''"),
        *(
            "\\pump",
            "pump\\",
            "\\'pump",
            '"pump" -pump OR',
            "%s pump %(text)s",
            "pump;--",
            "{pump}",
            "$$pump$$",
            "pump\t\n",
        ),
    ],
)
def test_operators_of_the_search_syntax_are_only_words(owner: Owner, question: str) -> None:
    store(owner, draft("the pump"), draft("the roof"), draft("pumpkin"))

    assert texts_by_words(owner, question, phrases=[question], names=[question]) == ["the pump"]
    assert len(found_by_search(owner, question)) == 1


@pytest.mark.parametrize(
    "question",
    ["", " ", "?!", "'", "\\", "&|!", "🙂", "🙂🙃 👩‍👩‍👧", "\u200b\ufeff", "\ud7ff", "w" * 3_000, "水" * 3_000],
)
def test_a_question_without_known_words_finds_nothing(owner: Owner, question: str) -> None:
    store(owner, draft("the pump"))

    assert texts_by_words(owner, question, phrases=[question], names=[question], expansions=[question]) == []
    assert found_by_search(owner, question) == {}


@pytest.mark.parametrize("strange", ["it's", "back\\slash", "'quoted'", "a'b\\c", "http://x.example/'\\?q=a:b&c=!d"])
def test_a_word_with_special_characters_finds_itself(owner: Owner, strange: str) -> None:
    store(owner, draft(f"{strange} stands here"), draft("zzz"))

    assert texts_by_words(owner, strange, phrases=[strange]) == [f"{strange} stands here"]


def test_a_long_question_finds_by_its_best_words(owner: Owner) -> None:
    store(owner, draft("the pump at the weir"), draft("nothing"))
    question = " ".join([*(f"word{number}" for number in range(1_000)), "the", "weir"])[-10_000:]

    assert texts_by_words(owner, question) == ["the pump at the weir"]
    assert len(analysis_for(owner, question).terms) == 2


def test_a_word_of_three_thousand_bytes_is_found_by_its_parts(owner: Owner) -> None:
    text = f"pump {'ä' * 1_500} roof"
    store(owner, draft(text))

    assert texts_by_words(owner, text) == texts_by_words(owner, "roof") == [text]
    assert texts_by_words(owner, "ä" * 1_500) == [text]


@pytest.mark.parametrize("piece", ["a@1", "a_", "word_", "QUJDREVGRw-_xYz0", "1.2.3-4e5"])
def test_parsing_a_long_unbroken_text_takes_less_than_five_seconds(owner: Owner, piece: str) -> None:
    """Its time grows with the square of an unbroken run: 100,000 characters took minutes."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = '5s'")
        cursor.execute("SELECT memory_lexemes(%s, 'english', %s)", [owner.account_id, piece * (100_000 // len(piece))])
        assert cursor.fetchone()
        cursor.execute("SET LOCAL statement_timeout = 0")
