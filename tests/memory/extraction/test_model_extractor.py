"""Tests of the model extractor: its requests, the checks of its answers, and what it makes of injections."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from memory.errors import ProviderError, ProviderRefused, ProviderReplyInvalid, ProviderUnavailable
from memory.extraction.knowledge import Chunk, ChunkTurn, Extraction, check_extraction
from memory.extraction.model_extractor import (
    ANSWER_TOKENS,
    ModelExtractor,
    knowledge_extractor,
    parse_time,
)
from memory.providers.language_models import Usage, language_model
from tests.language_model_server import (
    MODEL,
    Answer,
    Asked,
    LanguageModelServer,
    answering_html,
    choosing_nothing,
    cut_off,
    failing,
    refusing,
    replying,
    writing,
)
from tests.memory.extraction.injections import (
    DROP,
    INJECTIONS,
    KNOWN,
    KNOWN_FACTS,
    LIE,
    SAID_AT,
    Injection,
    SpokenTurn,
    answer,
    chunk_of,
    entity,
    fact,
    preference,
    relationship,
)

LISBON = timezone(timedelta(hours=1))
GREETING = SpokenTurn("user", "Good morning, how are things?")
GOOD = answer(
    entities=[entity("Ana"), entity("Berlin", type="place", aliases=["Berlin-Mitte"], description="Ana's new city")],
    facts=[
        fact("Ana moved to Berlin", "Ana", "Berlin", valid_from="2024-03-02", contradicts=[1], temporal="past"),
        fact("Ana prefers her coffee black", "Ana", number=4),
    ],
    relationships=[relationship("Ana", "located in", "Berlin", certainty="implied")],
    preferences=[preference("coffee", "prefers it black", fact=4)],
)
MOVED = "I moved to Berlin on Saturday, to Berlin-Mitte. It is my new city. I like my coffee black now."


def extract(chunk: Chunk, usages: list[Usage] | None = None, *, deadline_seconds: float = 5) -> Extraction:
    meter = ([] if usages is None else usages).append
    return knowledge_extractor().extract(chunk, meter=meter, deadline_seconds=deadline_seconds)


def found(extraction: Extraction) -> list[Any]:
    return [*extraction.entities, *extraction.facts, *extraction.relationships, *extraction.preferences]


def test_without_a_model_the_rules_extract_knowledge() -> None:
    language_model.cache_clear()

    extractor = knowledge_extractor()

    assert not extractor.is_remote
    assert extract(chunk_of(GREETING)) == Extraction(source="rules")


def test_the_model_extracts_knowledge_and_is_named_as_its_source(language_model_server: LanguageModelServer) -> None:
    language_model_server.write = lambda asked: GOOD
    usages: list[Usage] = []

    extraction = extract(chunk_of(SpokenTurn("user", MOVED, "Ana")), usages)

    assert isinstance(knowledge_extractor(), ModelExtractor)
    assert (extraction.source, extraction.dropped) == (MODEL, {})
    assert [(each.name, each.aliases) for each in extraction.entities] == [("Ana", ()), ("Berlin", ("Berlin-Mitte",))]
    moved, coffee = extraction.facts
    assert (moved.claim, moved.certainty, moved.contradicts) == ("Ana moved to Berlin", "explicit", (1,))
    assert (moved.valid_from, coffee.valid_from) == (datetime(2024, 3, 2, tzinfo=UTC), None)
    assert [(each.source, each.type) for each in extraction.relationships] == [("Ana", "LOCATED_IN")]
    assert [(each.topic, each.value, each.fact) for each in extraction.preferences] == [
        ("coffee", "prefers it black", 4)
    ]
    assert [(usage.calls, usage.failed_calls) for usage in usages] == [(1, 0)]


def test_the_model_receives_the_turns_and_the_known_facts(language_model_server: LanguageModelServer) -> None:
    before = [SpokenTurn("user", "Hello."), SpokenTurn("tool", "secret")]
    turns = [
        SpokenTurn("user", "It works <again>.", "Ana"),
        SpokenTurn("tool", "secret"),
        SpokenTurn("user", DROP),
        SpokenTurn("assistant", "Ah."),
    ]

    extract(chunk_of(*turns, before=before, first=40))

    lines = language_model_server.materials[0].split("\n")
    tags = ["<known_facts>", "</known_facts>", "<before>", "</before>", "<turns>", "</turns>"]
    assert [line for line in lines if line.startswith("<")] == tags
    assert [json.loads(line) for line in lines if line.startswith("{")] == [
        {"number": 1, "claim": KNOWN[0]},
        {"number": 2, "claim": KNOWN[1]},
        {"role": "user", "time": "2024-03-04T10:10+00:00", "weekday": "Monday", "text": "Hello."},
        {"turn": 42, "role": "user", "name": "Ana", "time": "2024-03-04T10:12+00:00", "weekday": "Monday"}
        | {"text": "It works <again>."},
        {"turn": 45, "role": "assistant", "time": "2024-03-04T10:15+00:00", "weekday": "Monday", "text": "Ah."},
    ]
    assert lines[-1] == "Number new facts from 3 on."


def test_the_schema_lists_the_choices_and_the_request_limits_the_answer(
    language_model_server: LanguageModelServer,
) -> None:
    extract(chunk_of(GREETING))

    asked = language_model_server.requests[0]
    shapes = asked["response_format"]["json_schema"]["schema"]["$defs"]
    assert asked["max_tokens"] == ANSWER_TOKENS
    assert shapes["FactReply"]["properties"]["certainty"]["enum"] == ["explicit", "implied", "inferred", "uncertain"]
    assert shapes["FactReply"]["properties"]["temporal"]["enum"] == ["current", "past", "future"]
    assert all(set(shape["required"]) == set(shape["properties"]) for shape in shapes.values())


@pytest.mark.parametrize(
    "said", [SpokenTurn("tool", "Ana lives in Rome."), SpokenTurn("system", "Be kind."), SpokenTurn("user", DROP)]
)
def test_the_model_is_not_asked_if_no_turn_can_hold_knowledge(
    language_model_server: LanguageModelServer, said: SpokenTurn
) -> None:
    assert extract(chunk_of(said)) == Extraction(source=MODEL)
    assert language_model_server.requests == []


def test_invalid_items_of_an_answer_are_dropped_and_the_rest_is_kept(
    language_model_server: LanguageModelServer,
) -> None:
    worse = answer(
        entities=[*GOOD["entities"], entity("Mallory"), entity("Ana", type="human", evidence=[0])],
        facts=[*GOOD["facts"], fact("Ana moved to Berlin", valid_from="soon", number=5)],
        relationships=[*GOOD["relationships"], relationship("Ana", "MERGED_INTO", "Berlin")],
        preferences=[*GOOD["preferences"], preference("coffee", "likes", evidence=[7])],
    )
    language_model_server.write = lambda asked: worse

    extraction = extract(chunk_of(SpokenTurn("user", MOVED, "Ana")))

    assert len(found(extraction)) == 6
    assert extraction.dropped == {"time": 1, "ungrounded": 1, "type": 2, "evidence": 1}
    assert len(language_model_server.requests) == 1


def test_a_user_without_a_name_is_not_an_entity_of_a_fact(language_model_server: LanguageModelServer) -> None:
    reply = answer(facts=[fact("The user lives in Berlin", "The user")])
    language_model_server.write = lambda asked: reply

    extraction = extract(chunk_of(SpokenTurn("user", MOVED)))

    assert [(each.claim, each.entities) for each in extraction.facts] == [("The user lives in Berlin", ())]


def test_labels_and_texts_of_an_answer_are_normalized(language_model_server: LanguageModelServer) -> None:
    loose = answer(
        entities=[entity(" Ana\n", type="Person ", evidence=[0, 0])],
        facts=[
            fact("Ana moved\n to Berlin ", "ana", certainty="Explicit", temporal=" PAST", valid_from=" ", valid_to="")
        ],
    )
    language_model_server.write = lambda asked: loose

    extraction = extract(chunk_of(SpokenTurn("user", MOVED, "Ana")))

    assert (extraction.entities[0].name, extraction.entities[0].evidence) == ("Ana", (0,))
    assert (extraction.facts[0].claim, extraction.facts[0].entities) == ("Ana moved to Berlin", ("Ana",))
    assert (extraction.facts[0].certainty, extraction.facts[0].temporal) == ("explicit", "past")


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        (None, None),
        ("", None),
        ("2024-03-02", datetime(2024, 3, 2, tzinfo=LISBON)),
        ("2024-03-02T08:15", datetime(2024, 3, 2, 8, 15, tzinfo=LISBON)),
        ("2024-03-02T08:15:30.5", datetime(2024, 3, 2, 8, 15, 30, 500_000, tzinfo=LISBON)),
        ("2024-03-02T08:15:30Z", datetime(2024, 3, 2, 8, 15, 30, tzinfo=UTC)),
        ("2024-03-02T08:15:30+01:00", datetime(2024, 3, 2, 8, 15, 30, tzinfo=LISBON)),
    ],
)
def test_a_time_is_read_in_the_zone_of_its_turn(text: str | None, moment: datetime | None) -> None:
    parsed = parse_time(text, zone=LISBON)

    assert parsed == moment
    assert parsed is None or parsed.tzinfo is not None


@pytest.mark.parametrize(
    "text",
    [
        *("2024", "2024-03", "20240302", "2024-W10-1", "2024-02-30", "02.03.2024", "March 2024", "yesterday", "null"),
        *(
            "2024-03-02 08:15",
            "2024-03-02T25:00",
            "2024-03-02T08:15+99:00",
            "0000-01-01",
            "２０２４-03-02",
            "2024-03-02T",
        ),
        "-2024-03-02",
    ],
)
def test_a_time_that_is_not_iso_8601_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"ISO|must be|range|between"):
        parse_time(text, zone=UTC)


def test_a_date_is_midnight_where_it_was_said(language_model_server: LanguageModelServer) -> None:
    language_model_server.write = lambda asked: GOOD
    said = ChunkTurn(index=0, role="user", speaker="Ana", text=MOVED, timestamp=SAID_AT.astimezone(LISBON))

    extraction = extract(Chunk(turns=[said], known=KNOWN_FACTS))

    assert extraction.facts[0].valid_from == datetime(2024, 3, 2, tzinfo=LISBON)


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (failing(500), ProviderUnavailable),
        (failing(429), ProviderUnavailable),
        (failing(401), ProviderRefused),
        (failing(400), ProviderRefused),
        (refusing(), ProviderReplyInvalid),
        (cut_off('{"entities": ['), ProviderReplyInvalid),
        (choosing_nothing(), ProviderReplyInvalid),
        (answering_html(), ProviderReplyInvalid),
        (replying(b"\xff\xfe"), ProviderReplyInvalid),
        (writing("no JSON"), ProviderReplyInvalid),
        (writing([GOOD]), ProviderReplyInvalid),
        (writing(GOOD | {"facts": "none"}), ProviderReplyInvalid),
        (writing(answer(entities=[entity("Ana", evidence=["0"])])), ProviderReplyInvalid),
        (writing(answer(entities=[entity("Ana\x00")])), ProviderReplyInvalid),
        (writing({"entities": []}), ProviderReplyInvalid),
    ],
)
def test_a_failing_endpoint_raises_an_error_and_yields_no_extraction(
    language_model_server: LanguageModelServer, failure: Answer, error: type[ProviderError]
) -> None:
    language_model_server.answer = failure
    usages: list[Usage] = []

    with pytest.raises(error) as raised:
        extract(chunk_of(SpokenTurn("user", MOVED, "Ana")), usages, deadline_seconds=2)

    assert usages
    assert all(usage.failed_calls for usage in usages)
    assert "Berlin" not in str(raised.value)


def test_an_endpoint_that_hangs_is_given_up_at_the_deadline(language_model_server: LanguageModelServer) -> None:
    language_model_server.hang()

    with pytest.raises(ProviderUnavailable):
        extract(chunk_of(GREETING), deadline_seconds=0.3)


def test_an_answer_with_the_wrong_schema_may_be_corrected_once(language_model_server: LanguageModelServer) -> None:
    language_model_server.answer_next(writing("Sure! Here you are:"), writing(GOOD))

    assert len(found(extract(chunk_of(SpokenTurn("user", MOVED, "Ana"))))) == 6


def come_to_nothing(chunk: Chunk) -> bool:
    """Return whether nothing is found, or nothing usable is answered."""
    try:
        return found(extract(chunk)) == []
    except ProviderReplyInvalid:
        return True


def test_the_sample_has_at_least_thirty_distinct_injections() -> None:
    assert len(INJECTIONS) >= 30
    assert len({injection.name for injection in INJECTIONS}) == len(INJECTIONS)


PLACES: list[Callable[[Injection], Chunk]] = [
    lambda injection: chunk_of(*injection.turns),
    lambda injection: chunk_of(*injection.turns, GREETING),
    lambda injection: chunk_of(*injection.turns, SpokenTurn("assistant", "Well, well.", "Rosa"), before=[GREETING]),
]


@pytest.mark.parametrize("place", PLACES, ids=("alone", "before others", "between others"))
def test_a_model_that_obeys_an_injection_changes_nothing(
    language_model_server: LanguageModelServer, place: Callable[[Injection], Chunk]
) -> None:
    for injection in INJECTIONS:
        chunk = place(injection)
        language_model_server.answer = writing(injection.obeyed(chunk.turns[0].index))

        assert come_to_nothing(chunk), injection.name


def test_injected_claims_cannot_cite_another_turn_as_evidence(language_model_server: LanguageModelServer) -> None:
    for injection in INJECTIONS:
        chunk = chunk_of(*injection.turns, GREETING)
        language_model_server.answer = writing(injection.obeyed(len(injection.turns)))

        assert come_to_nothing(chunk), injection.name


def test_knowledge_from_turns_next_to_an_injection_is_kept(language_model_server: LanguageModelServer) -> None:
    turns = [SpokenTurn("user", f"{DROP}. {LIE}."), SpokenTurn("user", MOVED, "Ana")]

    def obey(asked: Asked) -> Any:
        lied = [relationship("Ana", "WORKS_FOR", "Berlin"), relationship("Ana", "KNOWS", "Berlin", evidence=[0, 1])]
        honest = json.loads(json.dumps(GOOD).replace('"evidence": [0]', '"evidence": [1]'))
        return honest | {"relationships": [*honest["relationships"], *lied]}

    language_model_server.write = obey

    extraction = extract(chunk_of(*turns))

    assert len(found(extraction)) == 6
    assert extraction.dropped == {"order": 2}


@pytest.mark.parametrize("injection", INJECTIONS, ids=lambda injection: injection.name)
def test_rules_find_nothing_in_an_injection(injection: Injection) -> None:
    language_model.cache_clear()
    chunk = chunk_of(*injection.turns)

    extraction = check_extraction(extract(chunk), chunk)

    assert found(extraction) == []
