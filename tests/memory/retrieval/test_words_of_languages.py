"""Words of any language and script, and hostile questions, find the memories that hold them."""

import pytest
from django.db import connection

from memory.models import Account
from memory.owner import Owner
from tests.memory.episodes import draft, store
from tests.memory.words import analysis_for, found_by_search, found_by_words, texts_by_words

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
        pytest.param("simple", "펌프를 수리했다", "펌프는 어디에 있어요?", id="korean with another ending"),
        pytest.param("english", "ฉันซ่อมปั๊มน้ำเมื่อวาน", "ปั๊มน้ำอยู่ที่ไหน", id="thai"),
        pytest.param("english", "ຂ້ອຍສ້ອມປໍ້ານ້ຳມື້ວານນີ້", "ປໍ້ານ້ຳຢູ່ໃສ", id="lao"),
        pytest.param("english", "ខ្ញុំបានជួសជុលស្នប់ទឹកកាលពីម្សិលមិញ", "ស្នប់ទឹកនៅឯណា", id="khmer"),
        pytest.param("english", "ရေစုပ်စက်ကို မနေ့က ပြင်ခဲ့တယ်", "ရေစုပ်စက်ဘယ်မှာလဲ", id="burmese"),
        pytest.param("english", "le café du coin", "cafe", id="accents in the text"),
        pytest.param("english", "the old cafes", "cafés", id="accents in the question"),
        pytest.param("english", "two résumés", "resume", id="accents and a stem"),
        pytest.param("spanish", "la información", "informacion", id="accents of an ending"),
        pytest.param("spanish", "las informaciones", "la información", id="stems before accents"),
        pytest.param("german", "die Straße", "STRASSE", id="sharp s"),
        pytest.param("simple", "Łódź, Ærø und Ðakovo", "lodz aero", id="letters that are not composed"),
        pytest.param("russian", "наша ёлка", "елка", id="russian yo"),
        pytest.param("russian", "мой чай", "чай", id="russian short i"),
        pytest.param("simple", "كِتَابٌ قديم", "كتاب", id="arabic vowels"),
        pytest.param("english", "Ｐｕｍｐ ｎｏ.７", "pump", id="full width"),
        pytest.param("simple", "ﾎﾟﾝﾌﾟを修理", "ポンプ", id="half width"),
        pytest.param("english", "cafe\u0301", "caf\u00e9", id="composed and decomposed"),
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


@pytest.mark.parametrize(
    ("together", "apart", "question"),
    [
        ("北京很冷", "京都在北边", "北京"),
        ("서울은 춥다", "울산 서쪽은 춥다", "서울"),
        ("บ้านเย็น", "เย็นมากบ้าน", "บ้านเย็น"),
    ],
    ids=["chinese", "korean", "thai"],
)
def test_neighbours_in_the_question_count_more_as_neighbours(
    owner: Owner, together: str, apart: str, question: str
) -> None:
    store(owner, draft(apart), draft(together), draft("qqq"))

    assert texts_by_words(owner, question) == [together, apart]


def test_a_quoted_phrase_is_compared_by_words_and_not_by_their_further_forms(owner: Owner) -> None:
    store(owner, draft("les résumés du café"), draft("du café, les résumés"))

    assert analysis_for(owner, "x", phrases=["résumés du café"]).phrases
    first, second = found_by_words(owner, "café", phrases=["résumés du café"]).values()
    assert first == pytest.approx(2 * second)


def test_a_stop_word_with_an_accent_is_no_content(account: Account, owner: Owner) -> None:
    Account.objects.filter(id=account.id).update(language="french")
    store(owner, draft("même le café"))

    assert {term.lexeme[6:]: term.is_content for term in analysis_for(owner, "même café").terms} == {
        "mem": False,
        "caf": True,
    }


@pytest.mark.parametrize("unit", ["水泵", "ก้", "각갂", "é", "水b泵é ", "\U00020000\U00020001"])
def test_words_of_a_long_text_fit(owner: Owner, unit: str) -> None:
    long = "".join(chr(ord(letter) + step) for step in range(9_000) for letter in unit)
    with connection.cursor() as cursor:
        for text in (unit * 50_000, long):
            cursor.execute("SELECT length(memory_lexemes(%s, 'english', %s)) > 0", [owner.account_id, text])
            assert cursor.fetchone() == (True,)


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
