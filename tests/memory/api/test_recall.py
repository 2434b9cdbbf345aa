"""`POST /recall`: one question to memories of all kinds."""

from datetime import timedelta
from typing import Any

import pytest
from django.core import signals
from django.db import connection
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from memory import conf
from memory.api.views import FollowUpResponse
from memory.models import Account, Memory
from memory.owner import Owner
from memory.services.accounts.register import READ_ONLY, issue_key
from tests.api_client import ServiceClient
from tests.embedding_server import EmbeddingServer, vector_of
from tests.memory.audits import written_read
from tests.memory.episodes import NOW
from tests.memory.facts import day, know
from tests.memory.turns import say, turn

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "embedding_server")]

FIELDS = {
    *("id", "kind", "text", "score", "similarity", "event_time", "conversation_id", "channel", "item_key"),
    *("slot", "record_id", "reasons", "also", "superseded_by", "superseded_at", "flags", "confidence"),
    *("status", "snippet", "snippet_start", "snippet_end", "truncated"),
}


def ask(api: ServiceClient, query: str = "the boiler", **asked: Any) -> Any:
    answer = api.post("/recall", {"agent_id": "assistant", "query": query} | asked)
    assert answer.status_code == 200, answer.content
    return answer.json()


def texts(api: ServiceClient, query: str = "the boiler", **asked: Any) -> list[str]:
    return [result["text"] for result in ask(api, query, **asked)["results"]]


def say_turns(api: ServiceClient, *contents: str, conversation_id: str = "c1", **fields: Any) -> None:
    turns = [{"role": "user", "content": content} | fields for content in contents]
    answer = api.post(f"/conversations/{conversation_id}/turns", {"agent_id": "assistant", "turns": turns})
    assert answer.status_code == 201, answer.content


def learn(api: ServiceClient, claim: str, **fields: Any) -> str:
    answer = api.post("/facts", {"agent_id": "assistant", "claim": claim, "confidence": 0.9} | fields)
    assert answer.status_code == 201, answer.content
    return str(answer.json()["id"])


def test_a_result_has_the_id_returned_when_the_memory_was_stored(api: ServiceClient) -> None:
    fact_id = learn(api, "The boiler is in the cellar.")

    (result,) = ask(api)["results"]

    assert set(result) == FIELDS
    assert (result["id"], result["kind"], result["text"]) == (fact_id, "fact", "The boiler is in the cellar.")
    assert (result["item_key"], result["channel"], result["conversation_id"]) == (f"fact:{fact_id}", "_global", "")


def test_a_recall_returns_memories_of_all_kinds_unless_kinds_are_named(api: ServiceClient) -> None:
    say_turns(api, "The boiler is out.")
    learn(api, "The boiler is in the cellar.")
    api.post("/goals", {"agent_id": "assistant", "description": "Mend the boiler."})

    assert set(texts(api)) == {"The boiler is out.", "The boiler is in the cellar.", "Mend the boiler."}
    assert texts(api, kinds=["fact"]) == ["The boiler is in the cellar."]


def test_results_contain_signals_only_on_request(api: ServiceClient) -> None:
    say_turns(api, "The boiler is out.")

    (plain,), (explained,) = ask(api)["results"], ask(api, explain=True)["results"]

    assert "signals" not in plain
    assert "lexical" in explained["found_by"]
    assert explained["signals"]["bm25"] > 0
    assert all(isinstance(value, float) for value in explained["signals"].values())


def test_a_recall_returns_open_goals_and_the_profile_of_the_user(api: ServiceClient) -> None:
    goal = {"agent_id": "assistant", "user_id": "ana", "description": "Mend it.", "priority": 3}
    goal_id = api.post("/goals", goal | {"deadline": "2027-01-01T00:00:00Z"}).json()["id"]
    api.patch("/profiles/ana", {"preferences": {"tea": "black"}})

    found = ask(api, user_id="ana")

    shown = {"id": goal_id, "description": "Mend it.", "status": "active", "priority": 3}
    assert found["goals"] == [shown | {"deadline": "2027-01-01T00:00:00Z"}]
    assert found["profile"] == {
        "user_id": "ana", "preferences": {"tea": "black"}, "expertise_areas": [], "communication_style": {},
    }  # fmt: skip
    assert ask(api)["profile"] is None


def test_metrics_contain_the_time_and_result_count_of_every_technique(api: ServiceClient) -> None:
    say_turns(api, "The boiler is out.")

    metrics = {metric["technique"]: metric for metric in ask(api)["metrics"]}

    assert {"embedding", "lexical", "vector", "passage", "learned"} <= set(metrics)
    assert metrics["lexical"]["results"] == 1
    assert all(metric["took_ms"] >= 0 for metric in metrics.values())


@pytest.mark.parametrize("mode", ["broad", "default", "deep", None])
def test_a_mode_that_the_model_does_not_support_is_reported(api: ServiceClient, mode: str | None) -> None:
    degraded = ask(api, **({"mode": mode} if mode else {}))["degraded"]

    assert degraded == (["mode_not_supported"] if mode in ("broad", "default") else [])


def test_usage_tells_candidates_tokens_and_the_time_of_each_stage(api: ServiceClient) -> None:
    say_turns(api, "The boiler is out.", "The roof leaks.")

    usage = ask(api, top_k=1)["usage"]

    assert (usage["candidates"], usage["tokens"], usage["source_tokens"]) == (2, 5, 5)
    stages = ["rewrite", "embed", "analyze", "gather", "rank", "rerank", "select"]
    assert list(usage["stages_ms"]) == stages
    assert all(milliseconds >= 0 for milliseconds in usage["stages_ms"].values())


def test_usage_counts_the_snippets_of_long_texts_unless_they_are_answered_whole(api: ServiceClient) -> None:
    say_turns(api, "The boiler is out. " + "The weather was fine all day long. " * 200)

    usage, whole = ask(api)["usage"], ask(api, whole=True)["usage"]

    assert 0 < usage["tokens"] < usage["source_tokens"]
    assert whole["tokens"] == whole["source_tokens"] == usage["source_tokens"]


def test_techniques_are_chosen_by_name(api: ServiceClient) -> None:
    say_turns(api, "The boiler is out.", "A cake.")

    assert texts(api, techniques=["lexical"]) == ["The boiler is out."]
    assert set(texts(api, techniques=["-lexical"])) == {"The boiler is out.", "A cake."}


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, {"old", "middle", "new"}),
        ({"since": "2026-05-03T12:00:00Z"}, {"middle", "new"}),
        ({"until": "2026-05-03T12:00:00Z"}, {"old"}),
        ({"since": "2026-05-03T14:00:00+02:00", "until": "2026-05-04T12:00:00Z"}, {"middle"}),
    ],
    ids=["any time", "since", "until", "between"],
)
def test_since_is_inclusive_and_until_is_exclusive(
    api: ServiceClient, owner: Owner, asked: dict[str, Any], found: set[str]
) -> None:
    for days_ago, word in enumerate(("new", "middle", "old")):
        say(owner, turn(word, timestamp=NOW - timedelta(days=days_ago)))

    assert set(texts(api, "old middle new", **asked)) == found


def test_a_time_window_is_given_in_hours_before_now(api: ServiceClient, owner: Owner) -> None:
    say(owner, turn("The boiler, long ago.", timestamp=NOW - timedelta(days=900)))
    say_turns(api, "The boiler, now.")

    assert texts(api, time_window_hours=0.5) == ["The boiler, now."]


def test_a_recall_returns_facts_as_of_the_requested_time(api: ServiceClient, owner: Owner) -> None:
    know(owner, "The boiler was old.", valid_from=day(-20), valid_to=day(-10), now=day(-20))
    know(owner, "The boiler is new.", valid_from=day(-10), now=day(-5))

    assert texts(api) == ["The boiler is new."]
    assert texts(api, as_of=day(-15).isoformat()) == ["The boiler was old."]
    assert texts(api, known_at=day(-7).isoformat()) == []
    assert texts(api, known_at=day(-7).isoformat(), as_of=day(-15).isoformat()) == ["The boiler was old."]


@pytest.mark.parametrize("as_of", ["2999-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
def test_a_recall_returns_facts_that_will_be_true(api: ServiceClient, owner: Owner, as_of: str) -> None:
    know(owner, "The boiler is old.", valid_to=day(10_000), now=day(-20))
    know(owner, "The boiler will be new.", valid_from=day(10_000), now=day(-5))

    assert texts(api) == ["The boiler is old."]
    assert texts(api, as_of=as_of) == ["The boiler will be new."]


def test_times_up_to_five_minutes_ahead_are_accepted(api: ServiceClient) -> None:
    learn(api, "The boiler is new.")
    soon = (timezone.now() + timedelta(minutes=4)).isoformat()

    assert texts(api, as_of=soon) == texts(api, known_at=soon) == ["The boiler is new."]


@pytest.mark.parametrize("technique", ["lexical", "vector", "temporal", "graph", "pinned"])
@pytest.mark.parametrize(
    "bound", [{"since": "9999-12-31T23:59:59.999999Z"}, {"until": "0001-01-01T00:00:00.000001Z"}], ids=str
)
def test_the_earliest_and_latest_possible_times_are_accepted_as_filters(
    api: ServiceClient, technique: str, bound: dict[str, str]
) -> None:
    say_turns(api, "Ana mended the boiler.")
    api.post("/entities", {"agent_id": "assistant", "name": "Ana", "type": "person"})
    Memory.objects.update(pinned=True)

    assert texts(api, "What did Ana mend today?", techniques=[technique]) != []
    assert texts(api, "What did Ana mend today?", techniques=[technique], **bound) == []


def test_facts_below_the_minimum_confidence_are_omitted(api: ServiceClient) -> None:
    learn(api, "The boiler leaks.", confidence=0.5)

    assert texts(api, min_confidence=0.5) == ["The boiler leaks."]
    assert texts(api, min_confidence=0.6) == []


def test_results_are_limited_in_number_and_in_tokens(api: ServiceClient) -> None:
    say_turns(api, "The boiler is out.", "boiler " * 200, "The boiler again.")

    assert len(texts(api, top_k=2)) == 2
    assert set(texts(api, max_tokens=20)) == {"The boiler is out.", "The boiler again."}
    assert texts(api, max_tokens=1) == []
    assert "results_truncated" in ask(api, "the boiler", max_tokens=1)["degraded"]
    assert "results_truncated" not in ask(api, "the boiler", max_tokens=20)["degraded"]


def test_injected_memories_are_omitted_on_request(api: ServiceClient) -> None:
    learn(api, "The boiler is in the cellar.")
    learn(api, "The boiler is old.")
    first = ask(api, conversation_id="c1")["results"][0]
    api.post("/ledger/c1/mark", {"item_key": first["item_key"]})

    assert first["text"] not in texts(api, conversation_id="c1", suppress_injected=True)
    assert len(texts(api, conversation_id="c1", suppress_injected=True)) == 1
    assert len(texts(api, conversation_id="c2", suppress_injected=True)) == 2


def test_a_conversation_id_limits_results_only_together_with_scopes(api: ServiceClient) -> None:
    say_turns(api, "The boiler here.", conversation_id="here")
    say_turns(api, "The boiler there.", conversation_id="there")

    assert len(texts(api, conversation_id="here")) == 2
    assert texts(api, conversation_id="here", scopes=["session"]) == ["The boiler here."]
    assert texts(api, scopes=["workspace"]) == []


def test_a_vector_sent_by_the_client_works_without_the_embedder(
    api: ServiceClient, embedding_server: EmbeddingServer
) -> None:
    say_turns(api, "The boiler is out.", "A cake.")
    embedding_server.fail()

    own = {"query_embedding": vector_of("A cake.").tolist(), "embedding_model": "served-model"}
    found = ask(api, "zzz", techniques=["vector"], **own)

    assert found["results"][0]["text"] == "A cake."
    assert found["results"][0]["similarity"] == pytest.approx(1, abs=0.01)
    assert found["degraded"] == []


def test_without_the_embedder_a_recall_uses_words_and_reports_degradation(
    api: ServiceClient, embedding_server: EmbeddingServer
) -> None:
    say_turns(api, "The boiler is out.")
    say_turns(api, "A cake.", conversation_id="c2")
    embedding_server.fail()

    found = ask(api, "boiler?")

    assert [result["text"] for result in found["results"]] == ["The boiler is out."]
    assert (found["results"][0]["similarity"], found["degraded"]) == (None, ["embedder_unavailable"])


def test_an_owner_without_memories_receives_an_empty_answer(api: ServiceClient) -> None:
    found = ask(api, agent_id="nobody-yet", user_id="nobody", conversation_id="none", scopes=["session", "profile"])

    assert [found[name] for name in ("results", "goals", "profile", "degraded")] == [[], [], None, []]
    assert list(found)[:1] == ["results"], "what was asked for comes first, before measurements"


def test_reads_are_counted_once_the_answer_is_sent(api: ServiceClient) -> None:
    learn(api, "The boiler is old.")
    before = ask(api)["results"]

    after = Memory.objects.get()

    assert len(before) == after.access_count == 1
    assert after.last_accessed is not None


def test_a_replayed_answer_does_not_count_as_a_read(api: ServiceClient) -> None:
    learn(api, "The boiler is old.")
    asked = {"agent_id": "assistant", "query": "boiler"}

    twice = [api.post("/recall", asked, HTTP_IDEMPOTENCY_KEY="k").content for _ in range(2)]

    assert twice[0] == twice[1]
    assert Memory.objects.get().access_count == 1


def test_a_read_across_channels_is_audited_if_reads_are(api: ServiceClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "AUDIT_LEVEL", "reads")
    learn(api, "The boiler is old.")
    learn(api, "The boiler is red.", channel="house")

    ask(api, channel="house", conversation_id="c1")

    entry = written_read()
    assert (entry.source_channel, entry.target_channels) == ("house", ["_global", "house"])
    assert (entry.result_count, entry.query_text, entry.conversation_id) == (2, "the boiler", "c1")


def test_a_recall_executes_three_statements_and_one_after_the_answer(
    api: ServiceClient, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    learn(api, "The boiler is old.")
    ask(api)

    # and one that looks the key up
    with django_assert_max_num_queries(5):
        ask(api, conversation_id="c1", user_id="ana")


def test_follow_up_work_runs_once_after_a_response_and_its_errors_are_only_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    done: list[str] = []

    def conclude() -> None:
        done.append("once")
        connection.cursor().execute("SELECT nonsense")

    answer = FollowUpResponse({}, follow_up=conclude)
    finished: list[Any] = []
    signals.request_finished.connect(lambda **_: finished.append(len(done)), weak=False, dispatch_uid="seen")
    answer.close()
    answer.close()
    signals.request_finished.disconnect(dispatch_uid="seen")

    assert (done, finished) == (["once"], [1, 1])
    assert "The work after a response failed" in caplog.text


def test_a_read_only_key_may_recall(api: ServiceClient, account: Account) -> None:
    learn(api, "The boiler is old.")
    reader = ServiceClient(issue_key(account, scopes=READ_ONLY, agent_id="assistant").secret)

    assert [result["text"] for result in reader.post("/recall", {"query": "boiler"}).json()["results"]] == [
        "The boiler is old."
    ]


def test_recalls_count_towards_the_retrieval_rate_limit(api: ServiceClient, settings: Settings) -> None:
    settings.RETRIEVAL_RATE_LIMIT_PER_MINUTE = 1

    assert [api.post("/recall", {"query": "boiler"}).status_code for _ in range(2)] == [200, 429]


def test_other_agents_other_users_and_strangers_find_nothing(
    api: ServiceClient, stranger_api: ServiceClient, owner: Owner
) -> None:
    say_turns(api, "The boiler is out.")
    learn(api, "The boiler is Ana's.", user_id="ana")

    assert texts(api, agent_id="planner") == texts(api, agent_id="planner", user_id="bob") == []
    assert texts(stranger_api) == texts(stranger_api, user_id="ana") == []
    assert texts(api, agent_id="planner", user_id="ana") == ["The boiler is Ana's."]


def test_naming_a_rewriter_leaves_walks_from_names_on(api: ServiceClient) -> None:
    boiler = {"agent_id": "assistant", "name": "Vulcan", "type": "thing", "description": "A boiler."}
    assert api.post("/entities", boiler).status_code == 201

    found = ask(api, "What is Vulcan?", techniques=["query_expansion", "entity_centric"])

    assert [result["kind"] for result in found["results"]] == ["entity"]
