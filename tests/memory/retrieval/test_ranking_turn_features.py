"""Features of a turn's text: whether it reports something, asks, or only reacts; computed in time for any text."""

from functools import partial
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.retrieval.gathering import MAX_TEXT_CHARACTERS
from memory.retrieval.ranking.turns import (
    MAX_COUNT,
    MAX_FEATURE_CHARACTERS,
    TRANSCRIPT,
    TurnFeatures,
    extract_features,
    question_share,
    turn_features,
)
from tests.memory.pace import takes_the_square
from tests.properties import examples

NOTHING = TurnFeatures(asks=0.0, times=0.0, numbers=0.0, happened=0.0, places=0.0, reacts=0.0)


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("Where is it?", 1.0),
        ("It is here.", 0.0),
        ("It is here. Do you see?", 0.5),
        ("Nice! And what do you do then? I swim.", 6 / 9),
        ("Is it? Is it not?", 1.0),
        ("Is it?\nIt is.", 0.5),
        ("What?!", 0.0),
        ("it costs 5? no", 0.75),
        ("?", 1.0),
        ("? ?", 1.0),
        ("", 0.0),
        ("which one", 0.0),
    ],
)
def test_asking_is_the_share_of_words_in_questions(text: str, share: float) -> None:
    assert question_share(text) == pytest.approx(share)
    assert turn_features(text).asks == pytest.approx(share)


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("We met yesterday.", 1),
        ("LAST Week", 2),
        ("on Monday, 3rd of May 2021, in the evening", MAX_COUNT),
        ("since 1999", 2),
        ("two years ago", 2),
        ("the 21st", 1),
        ("It may rain, weekly.", 0),
        ("in the year 3021, or 12021", 1),
        ("a monthly agony", 0),
        ("We met.", 0),
    ],
)
def test_words_of_time_are_counted_up_to_two(text: str, times: int) -> None:
    assert turn_features(text).times == times


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("I have 3 boats.", 1),
        ("Twice, or a dozen times", 2),
        ("1, 2, 3, 4", MAX_COUNT),
        ("one of them", 1),
        ("10.5", 2),
        ("the 3rd, at x2", 0),
        ("someone, alone, often", 0),
        ("none", 0),
    ],
)
def test_numbers_are_counted_up_to_two(text: str, numbers: int) -> None:
    assert turn_features(text).numbers == numbers


@pytest.mark.parametrize(
    ("text", "happened"),
    [
        ("I painted the fence.", 1),
        ("Then we just went home.", 1),
        ("We've finally moved.", 1),
        ("I’ve been there.", 1),
        ("I had a goat.", 1),
        ("I also won.", 1),
        ("You painted it.", 0),
        ("I paint.", 0),
        ("I will paint, and they went.", 0),
        ("i painted", 0),
        ("Wei went", 0),
    ],
)
def test_happened_is_found_in_past_tense_statements_about_the_speaker(text: str, happened: int) -> None:
    assert turn_features(text).happened == happened


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("We sat in Lisbon.", 1),
        ("near the Old Mill", 1),
        ("to my Aunt's", 1),
        ("In Lisbon", 0),
        ("in the garden", 0),
        ("at 5PM", 0),
        ("Lisbon is fine", 0),
        ("stat Bern", 0),
    ],
)
def test_a_place_is_a_capitalized_word_after_a_preposition_of_place(text: str, places: int) -> None:
    assert turn_features(text).places == places


@pytest.mark.parametrize(
    ("text", "reacts"),
    [
        ("Wow, that is big.", 1),
        ("That's great!", 1),
        ("that’s it", 1),
        ("Awww", 1),
        ("YES", 1),
        ("Thank you so much", 1),
        ("  Oh, really?", 1),
        ("I said wow.", 0),
        ("Ohio is far.", 0),
        ("Surely", 0),
        ("rightly so", 0),
    ],
)
def test_a_reaction_starts_with_a_word_of_reaction(text: str, reacts: int) -> None:
    assert turn_features(text).reacts == reacts


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        pytest.param("Ana: Wow, 3!", "Wow, 3!", id="speaker"),
        pytest.param("Dr. O’Neill-Lima: Where?", "Where?", id="a longer name"),
        pytest.param("Ana:\nYes.", "Yes.", id="on a line of its own"),
        pytest.param("I went. [shares 3 photos of Lisbon]", "I went.", id="shared media"),
        pytest.param("Ana: Where? [a photo: 2 boats]  \n", "Where?", id="both"),
        pytest.param("  Yes. ", "Yes.", id="blanks"),
        pytest.param("Ana: ", "", id="speaker only"),
        pytest.param("[a photo of 3 boats]", "", id="shared media only"),
    ],
)
def test_speaker_and_shared_media_are_not_part_of_the_text(text: str, bare: str) -> None:
    assert turn_features(text) == turn_features(bare)


@pytest.mark.parametrize(
    "text",
    [
        "see [4], 3 boats",
        "12:30 was 2 late",
        "3 boats [nested [4]]",
        "a name of more than forty signs, which is none at all, really: 2 boats",
    ],
)
def test_numbers_outside_of_transcript_marks_are_counted(text: str) -> None:
    assert turn_features(text).numbers > 0


@pytest.mark.parametrize(("text", "name"), [("Ana Lima: hi", "Ana Lima"), ("Зоя: да", "Зоя"), ("a: b: c", "a")])
def test_a_speaker_name_precedes_a_colon(text: str, name: str) -> None:
    found = TRANSCRIPT.match(text)

    assert found is not None
    assert found[1] == name


@pytest.mark.parametrize("text", ["https://example.com", "5: five", "_a: b", "no colon", "Ana:hi", ": x", ""])
def test_other_colons_mark_no_speaker(text: str) -> None:
    assert TRANSCRIPT.match(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n\t",
        "我昨天修理了水泵",
        "昨日ポンプを修理しました。",
        "어제 펌프를 고쳤다",
        "вчера я починил насос",
        "أصلحت المضخة أمس",
        "αύριο στη Λισαβόνα",
        "ฉันซ่อมปั๊ม",
        "🦀🦀🦀",
    ],
    ids=ascii,
)
def test_texts_in_other_scripts_have_no_features(text: str) -> None:
    assert turn_features(text) == NOTHING


def test_only_the_beginning_is_read() -> None:
    filler = "x " * (MAX_FEATURE_CHARACTERS // 2)

    assert turn_features(f"{filler}Where did I go in Lisbon yesterday, 3 times?") == NOTHING
    assert turn_features(f"We went. {filler}").happened == 1


TEXTS = st.text(max_size=300) | st.text(alphabet="aw .?![]:'’\n1IWe", max_size=300)


@examples(150)
@given(TEXTS)
def test_features_of_any_text_are_within_their_bounds(text: str) -> None:
    said = turn_features(text)

    assert 0 <= said.asks <= 1
    assert {said.times, said.numbers} <= {0.0, 1.0, 2.0}
    assert {said.happened, said.places, said.reacts} <= {0.0, 1.0}


HOSTILE = [
    *(
        "a",
        "w",
        "aw",
        "[",
        "]",
        "[a",
        "[a]",
        "[]",
        " ",
        "\n",
        "? ",
        "?",
        ". ",
        "!",
        "1",
        "12",
        "1st",
        "A",
        "I ",
        "I just ",
    ),
    *(
        "I ed",
        "in ",
        "in A",
        "in the ",
        "a: ",
        "A.",
        "x'",
        "’",
        "We've ",
        "last ",
        "that's",
        "\u0130",
        "\ud800",
        "\0",
        "é́",
    ),
]


ENDS = ("", "]", "?", "x", " \n")


def repeated(piece: str, end: str, length: int) -> str:
    return piece * (length // len(piece)) + end


@pytest.mark.parametrize(
    "end", [pytest.param(end, marks=() if end in ("", "x") else pytest.mark.slow) for end in ENDS], ids=ascii
)
def test_extracting_features_does_not_take_quadratic_time(end: str) -> None:
    texts = [partial(repeated, piece, end) for piece in HOSTILE]

    assert [each(10) for each in texts if takes_the_square(extract_features, each, MAX_TEXT_CHARACTERS)] == []


def test_mixed_text_does_not_take_quadratic_time_either() -> None:
    random = Random(7)

    def mixed(length: int) -> str:
        return "".join(random.choices(HOSTILE, k=length // 2))

    assert not takes_the_square(extract_features, mixed, MAX_TEXT_CHARACTERS)
