"""Recall as agents use it: a user, an assistant and tools, with people's questions, through the real embedder."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from itertools import chain, zip_longest

import pytest

from memory.extraction.messages import ChatMessage, read_message
from memory.models.turns import ROLES
from memory.owner import Owner
from memory.retrieval.candidates import Candidate
from memory.retrieval.plans import Plan
from memory.retrieval.queries import Query
from memory.retrieval.ranking import SIGNAL_PREFIX, Weights, rank_by_weights
from memory.retrieval.ranking.registers import REGISTERS
from memory.retrieval.techniques import choose_plan
from memory.services.embedding.embed import EmbeddedTexts, embed_texts
from memory.services.facts.learn import FactDraft, learn_fact
from memory.services.recall.recall import RecallRequest, recall
from memory.services.turns import TurnDraft, store_turns
from tests.memory.episodes import NOW

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]

PATIENT_MS = 60_000
PATIENT_SECONDS = 60.0
LONGEST_EMBEDDED = 100_000
"""Characters: what is longer waits for its vector."""

Said = tuple[str, str]
"""A speaker (a role or a name) and a text."""

SMALL_TALK: Sequence[Said] = [
    ("user", "We had the standup at ten and moved three tickets."),
    ("assistant", "Noted. Shall I write that into the journal?"),
    ("user", "I went to the market yesterday and bought two melons."),
    ("assistant", "That sounds tasty, enjoy them!"),
    ("user", "I was at the lake with my family last weekend."),
    ("assistant", "Great, the weather was kind to you."),
    ("user", "The invoice of the printer came, it was paid."),
    ("tool", "status: ok, 14 rows written, 0 errors"),
    ("user", "I finally got my diving license two weeks ago."),
    ("assistant", "Congratulations! That took you three attempts."),
    ("user", "The heater in the hall is broken since Monday."),
    ("assistant", "I can ask the house service to have a look."),
    ("user", "Lunch was served at noon for seven people."),
    ("tool", "exit code 0 after 3.2 s"),
    ("user", "I made soup from five carrots."),
    ("assistant", "Would you like me to keep the recipe?"),
    ("user", "We took the train to Berlin in March."),
    ("assistant", "The seats were reserved in coach 21."),
    ("user", "I met two friends in Rome last year."),
    ("assistant", "The report is due next month, by the way."),
    ("user", "Thanks, that sounds great!"),
    ("tool", "GET /health 200 in 12 ms"),
    ("user", "I found a new cafe near Central Station."),
    ("assistant", "Good coffee is hard to find around there."),
    ("user", "My sister started her new job on Tuesday."),
    ("assistant", "Wish her luck from me."),
    ("user", "I read three chapters of the novel last night."),
    ("assistant", "How did you like the ending of the second?"),
    ("user", "We won the quiz at the pub on Friday."),
    ("assistant", "Well done, what was the hardest question?"),
    ("user", "The neighbours were loud until two in the morning."),
    ("assistant", "I could draft a friendly note for them."),
    ("user", "I wrote five pages of the thesis today."),
    ("assistant", "You are ahead of your schedule by a day."),
    ("user", "The bakery in Dublin was closed when we got there at nine."),
    ("assistant", "It opens at ten on Sundays."),
    ("user", "I took my old camera to the workshop in Leeds."),
    ("assistant", "They usually need a week."),
    ("user", "My flight to Oslo was two hours late."),
    ("assistant", "You may claim a refund for that."),
]


def hear(owner: Owner, *said: Said, conversation_id: str = "chat", now: datetime = NOW) -> None:
    drafts = [TurnDraft(message=message_of(*each)) for each in said]
    embedded = embed([each.message.text for each in drafts])
    store_turns(owner, conversation_id, drafts=drafts, embedded=embedded, now=now)


def message_of(who: str, content: str) -> ChatMessage:
    if who not in ROLES:
        return read_message({"role": "user", "name": who, "content": content})
    call = {"tool_call_id": "call-1"} if who == "tool" else {}
    return read_message({"role": who, "content": content, **call})


def embed(texts: Sequence[str]) -> EmbeddedTexts:
    embedded = embed_texts([text for text in texts if len(text) <= LONGEST_EMBEDDED], deadline_seconds=PATIENT_SECONDS)
    assert not embedded.error
    return embedded


def amid(*said: Said) -> list[Said]:
    """Return each text with small talk before and after it."""
    size = len(SMALL_TALK) // (len(said) + 1)
    parts = [SMALL_TALK[at : at + size] for at in range(0, len(SMALL_TALK), size)]
    return [each for part, one in zip_longest(parts, said) for each in (*(part or ()), *([one] if one else ()))]


def ask(owner: Owner, text: str, *, plan: Plan | None = None, expansions: Sequence[str] = ()) -> list[Candidate]:
    query = Query(text=text, top_k=60, expansions=expansions)
    request = RecallRequest(query=query, plan=plan, deadline_ms=PATIENT_MS)
    return list(recall(owner, request, now=NOW).results)


def first(owner: Owner, text: str) -> str:
    return ask(owner, text)[0].text


def signalled(owner: Owner, signal: str, question: str) -> dict[str, float]:
    """Return the value of one signal, weighed 1 and alone, for each text that has one."""
    weights = Weights(turns={register: {signal: 1.0} for register in REGISTERS}, others={signal: 1.0})
    found = ask(owner, question, plan=replace(choose_plan(), fuse=partial(rank_by_weights, weights)))
    return {each.text: each.signals[SIGNAL_PREFIX + signal] for each in found if SIGNAL_PREFIX + signal in each.signals}


REDIS = "Redis is the store we keep sessions and counters in; it is an in-memory key-value database."
POSTGRESQL = "PostgreSQL is slow because autovacuum does not keep up with the updates of the ledger table."


@pytest.fixture
def topics(owner: Owner) -> Owner:
    hear(
        owner,
        *amid(
            ("assistant", REDIS),
            ("user", "The old laptop is slow, I was annoyed for two hours in the office."),
            ("assistant", POSTGRESQL),
            ("user", "My bike is slow since the chain broke in May."),
        ),
    )
    return owner


@pytest.mark.parametrize(
    "question",
    ["What is Redis?", "How is Redis used?", "What does Redis do?", "Was Redis down?", "What is Redis's role?"],
)
def test_a_name_that_is_not_a_speaker_is_the_topic_of_the_question(topics: Owner, question: str) -> None:
    assert first(topics, question) == REDIS


@pytest.mark.parametrize("question", ["Why is PostgreSQL slow?", "What makes PostgreSQL slow?"])
def test_a_name_that_is_no_speaker_is_a_topic(topics: Owner, question: str) -> None:
    assert first(topics, question) == POSTGRESQL


@pytest.fixture
def friends(owner: Owner) -> Owner:
    """Two people who talk, each of whom names the other."""
    hear(
        owner,
        ("Ana", "Hi Ben, I am at the harbour again."),
        ("Ben", "Hi Ana! Did you see the regatta?"),
        ("Ana", "Only the end of it. I painted the old lighthouse in blue and grey."),
        ("Ben", "Ana, you are a real artist."),
        ("Ana", "You are kind, Ben."),
        ("Ben", "I repaired the fence behind the garden."),
        ("Ana", "That was overdue."),
        ("Ben", "Tell me, Ana, how is your mother?"),
        ("Ana", "She is better, she walks every morning."),
    )
    return owner


def test_a_question_about_a_speaker_is_matched_by_its_gist(friends: Owner) -> None:
    found = ask(friends, "What did Ana paint?")

    assert found[0].text.endswith("in blue and grey.")
    assert found[0].gist is not None
    assert found[0].gist != found[0].similarity


@pytest.fixture
def errands(owner: Owner) -> Owner:
    """Turns in which the assistant informs a user, among turns in which the user reports."""
    hear(
        owner,
        ("user", "I went to Rome with two friends last year."),
        ("assistant", "Your order 5512 was shipped to Lisbon on Monday."),
        ("user", "Thanks, I was in Porto yesterday."),
        ("assistant", "Your tax number is 77 123."),
        ("user", "I finally got three tickets in Braga."),
        *SMALL_TALK,
    )
    return owner


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What is my tax number?", "Your tax number is 77 123."),
        ("When was my order shipped?", "Your order 5512 was shipped to Lisbon on Monday."),
        ("Where was my order shipped to?", "Your order 5512 was shipped to Lisbon on Monday."),
        ("Where did I get the tickets?", "I finally got three tickets in Braga."),
    ],
)
def test_a_question_about_the_users_things_finds_turns_of_either_speaker(
    errands: Owner, question: str, answer: str
) -> None:
    assert first(errands, question) == answer


TOLD = [
    "We had the standup at ten and moved three tickets.",
    "I went to the market in Lisbon yesterday and bought two melons.",
    "The invoice of the printer came, it was paid.",
    "Can you remind me what the plan is?",
    "I was at the lake with my family in Porto last weekend.",
]


@pytest.mark.parametrize("teller", ["user", "Will", "Zoe"])
def test_turns_that_only_report_come_after_answers(owner: Owner, teller: str) -> None:
    answer = "The garage door will be repaired by the landlord on Friday."
    called = "The landlord called about the door."
    hear(owner, *[(teller, text) for text in TOLD], ("Zoe", answer), ("Zoe", called))

    assert first(owner, "When will the landlord repair the garage door?") == answer


def long_output(size: int) -> str:
    """A tool's output: words of all sorts, including those of the questions."""
    common = "the of where did what when why who how spare key blue pot under kept door repaired landlord ticket"
    many = [f"word{number}" for number in range(300)]
    line = " ".join(chain.from_iterable(zip(common.split() * 20, many, strict=False)))
    return f"Log dump.\n{(line + chr(10)) * (size // len(line) + 1)}"[:size]


def test_a_long_output_without_a_vector_comes_after_the_sentence_that_answers(owner: Owner) -> None:
    output, answer = long_output(200_000), "The spare key is kept under the blue pot."
    hear(owner, *SMALL_TALK, ("user", answer), ("assistant", "Good to know."), ("tool", output))

    found = ask(owner, "Where is the spare key kept?")

    assert found[0].text == answer
    assert output in [each.text for each in found]


PHRASE_HELD = "Somebody wrote purple elephant on the wall."


@pytest.mark.parametrize(
    "question",
    [
        pytest.param('Who said "purple elephant"?', id="who"),
        pytest.param("Where did we see “purple elephant”?", id="where"),
        pytest.param('What is "purple elephant"?', id="what"),
    ],
)
def test_a_turn_with_the_whole_phrase_comes_before_turns_with_its_words(owner: Owner, question: str) -> None:
    hear(
        owner,
        *amid(
            ("user", "The door said hello to nobody; a purple thing, an elephant perhaps."),
            ("tool", PHRASE_HELD),
            ("user", "I was in Paris and painted an elephant, purple of course, in two days."),
        ),
    )

    assert first(owner, question) == PHRASE_HELD


@pytest.mark.parametrize(
    ("speaker", "question"),
    [
        ("Art", "Where did the art go?"),
        ("Mark", "Which mark is on the wall?"),
        ("Bill Gray", "Is there a bill to pay?"),
        ("Bill Gray", "Which walls are gray?"),
        ("Will", "When will it rain?"),
    ],
)
def test_a_common_word_that_may_be_a_name_gives_no_said_by_signal(owner: Owner, speaker: str, question: str) -> None:
    hear(owner, (speaker, "The gray wall has a mark."), ("Zoe", "The art is sold."), (speaker, "The bill is paid."))

    assert signalled(owner, "said_by", question) == {}


@pytest.mark.parametrize(
    "question", ["What is the plan for the move?", "What did the plan say?", "What error made the deploy fail?"]
)
def test_a_heading_before_a_colon_is_not_a_speaker(owner: Owner, question: str) -> None:
    hear(
        owner,
        ("user", "Plan: sell the sofa"),
        ("user", "Error: the deploy failed"),
        ("assistant", "The plan for the move is to rent a van on the fifth."),
    )

    assert signalled(owner, "said_by", question) == {}


def test_lines_of_a_transcript_are_attributed_to_the_name_they_start_with(owner: Owner) -> None:
    of_ana = ["Ana: I painted the boat.", "Ana: It took a week.", "Ana: Come and see it."]
    of_ben = ["Ben: Which colour?", "Ben: I like red ones.", "Ben: On Sunday, Ana?"]
    hear(owner, *[("user", line) for pair in zip(of_ana, of_ben, strict=True) for line in pair])

    assert set(signalled(owner, "said_by", "What did Ana paint?")) == set(of_ana)


@pytest.mark.parametrize(
    "question", ["what did ana paint", "What did Ana paint?", "ana's picture", "WHAT DID ANA PAINT"]
)
def test_a_speaker_is_named_however_the_question_is_written(friends: Owner, question: str) -> None:
    named = signalled(friends, "said_by", question)

    assert "That was overdue." in named
    assert "I repaired the fence behind the garden." not in named


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What did Ana Lima say about the roof?", "The roof leaks above the kitchen."),
        ("What did Ana Costa say about the roof?", "The roof was tiled by my uncle."),
        ("What does Lima think of the roof?", "The roof leaks above the kitchen."),
    ],
)
def test_two_speakers_with_a_shared_name_are_distinguished_by_the_other_name(
    owner: Owner, question: str, answer: str
) -> None:
    hear(
        owner,
        ("Ana Costa", "The roof was tiled by my uncle."),
        ("Ben", "Well, he did it long ago."),
        ("Ana Lima", "The roof leaks above the kitchen."),
        ("Ben", "I will bring a bucket."),
        *SMALL_TALK,
    )

    assert set(signalled(owner, "said_by", question)) == {answer}
    assert first(owner, question) == answer


PROW = "The vessel was finished on Sunday, with a carved prow."


@pytest.mark.parametrize("question", ["What did Ana build?", "What did you build?"])
def test_text_imagined_by_a_model_finds_turns_too(friends: Owner, question: str) -> None:
    hear(friends, *amid(("Ana", PROW)), conversation_id="another")

    plain = ask(friends, question)
    imagined = ask(friends, question, expansions=["A wooden ship with a carved prow was finished."])

    assert imagined[0].text == PROW
    assert relevance_of(PROW, plain) < relevance_of(PROW, imagined)


def relevance_of(text: str, found: Sequence[Candidate]) -> float:
    return next((each.signals["relevance"] for each in found if each.text == text), 0.0)


def learn(owner: Owner, claim: str, *, since: datetime | None = None) -> None:
    draft = FactDraft(claim=claim, valid_from=since)
    learn_fact(owner, draft, embedded=embed([claim]), now=NOW - timedelta(days=300))


def test_a_fact_that_has_long_been_true_gets_no_more_of_time_than_a_timeless_one(owner: Owner) -> None:
    learn(owner, "Ana lives in Lisbon.", since=NOW - timedelta(days=365 * 8))
    learn(owner, "Ana owns a red bike.")
    learn(owner, "Ana joined the rowing club.", since=NOW - timedelta(days=7))

    of_time = signalled(owner, "of_time", "What did Ana do last week?")

    assert of_time["Ana joined the rowing club."] == pytest.approx(1)
    assert of_time["Ana lives in Lisbon."] == pytest.approx(of_time["Ana owns a red bike."], abs=0.01)


def test_a_turn_from_the_requested_time_comes_before_long_true_facts(owner: Owner) -> None:
    for claim in ("Ana lives in Lisbon.", "Ana works at the harbour.", "Ana is a member of the choir."):
        learn(owner, claim, since=NOW - timedelta(days=365 * 8))
    sailed = "I went sailing to the island and slept on the boat."
    hear(owner, ("Ana", "The exhibition was crowded."), conversation_id="old", now=NOW - timedelta(days=90))
    hear(owner, ("Ana", sailed), conversation_id="new", now=NOW - timedelta(days=7))

    assert first(owner, "What did Ana do last week?") == sailed


def test_the_signals_of_a_candidate_include_gist_and_content(friends: Owner, topics: Owner) -> None:
    [painted, *_] = ask(friends, "What did Ana paint?")
    [redis, *_] = ask(topics, "What is Redis?")

    assert painted.signals["gist"] == painted.gist
    assert painted.signals["content"] > 0
    assert redis.signals["content"] > 0
