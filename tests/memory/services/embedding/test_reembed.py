"""The embedding model is changed step by step, while searches and writes go on by the one that serves."""

from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone
from pytest_django import Settings
from werkzeug import Response

from memory import conf
from memory.errors import Conflict, ProviderReplyInvalid, Unprocessable, WrongVectorWidth
from memory.models import Memory, ReembedEntry, ServingModelState, Vector
from memory.owner import Owner
from memory.providers.embeddings import ModelSpec
from memory.services.embedding.change import (
    MAX_LATE_ROWS,
    find_status,
    plan_change,
    record_serving_model,
    request_abort,
    request_finish,
    switch_models,
)
from memory.services.embedding.queue import MAX_REFUSALS, embed_pending
from memory.services.embedding.reembed import continue_change
from memory.services.embedding.serving import CACHE, read_known_models, serving_model
from memory.services.memories.store import TextUpdate, update_texts, validate_vector
from memory.services.summaries.store import EpisodeDraft, store_episodes
from tests.embedding_server import MODEL, WIDTH, EmbeddingServer
from tests.memory.episodes import NOTHING, NOW, draft, store
from tests.memory.reembedding import (
    begin,
    change_to,
    count_vectors,
    found_by_meaning,
    go_on,
    remember,
    retry,
    settle,
    tiny,
)
from tests.memory.reembedding import tiny_models as tiny_models

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("tiny_models")]

SERVED = ModelSpec(name=MODEL, provider="openai", model=MODEL, width=0)
LONG = "The boiler in the cellar was repaired by a plumber from Lisbon. " * 60


@pytest.fixture
def served(embedding_server: EmbeddingServer, settings: Settings) -> EmbeddingServer:
    """A server of a model, while another one without weights is configured."""
    settings.EMBEDDING_PROVIDER = "tiny"
    settings.EMBEDDING_MODEL = ""
    CACHE.forget()
    return embedding_server


def test_the_configured_model_serves_at_the_first_start() -> None:
    continue_change(now=NOW, size=10)

    state = ServingModelState.objects.get()
    assert (state.serving["name"], state.serving["width"], state.phase) == ("tiny-64", 64, "idle")


def test_a_change_gives_all_memories_and_passages_vectors_of_the_next_model(owner: Owner) -> None:
    remember(owner, "The boiler was repaired", LONG)
    passages = Vector.objects.filter(passage__gt=0).count()

    begin(tiny(384))
    before = serving_model().name
    go_on(until="index")
    prepared = (serving_model().name, count_vectors(), found_by_meaning(owner, "boiler repaired"))
    go_on()

    assert (before, prepared[0]) == ("tiny-64", "tiny-64")
    assert prepared[1] == {"tiny-64": 2, "tiny-384": 2}
    assert prepared[2][1] == []
    assert serving_model().name == "tiny-384"
    assert Vector.objects.filter(passage__gt=0, model="tiny-384", width=384).count() == passages > 0
    assert "The boiler was repaired" in found_by_meaning(owner, "The boiler was repaired")[0]


@pytest.mark.parametrize("finishes", [True, False])
def test_a_change_there_and_back_finds_everything_by_meaning(owner: Owner, *, finishes: bool) -> None:
    remember(owner, "first")
    change_to(tiny(1536))
    remember(owner, "second")
    if finishes:
        request_finish()
        settle()
        go_on()
    change_to(tiny(64))
    remember(owner, "third")

    assert serving_model().name == "tiny-64"
    assert count_vectors() == {"tiny-64": 3, "tiny-1536": 2}
    for text in ("first", "second", "third"):
        found, degraded = found_by_meaning(owner, text)
        assert (found[0], degraded) == (text, [])


def test_what_is_written_or_changed_meanwhile_has_its_vector_at_the_switch(owner: Owner) -> None:
    [changed] = remember(owner, "The boiler was repaired")
    begin(tiny(384))
    go_on(until="switch")
    remember(owner, "Ana moved to Porto")
    update_texts(owner, [TextUpdate(row=changed, text="The roof leaks")], embedded=NOTHING, now=NOW)
    embed_pending(now=timezone.now(), limit=10)
    queued = ReembedEntry.objects.count()

    go_on()

    assert queued == 2
    assert not ReembedEntry.objects.exists()
    assert not Memory.objects.awaiting_embedding().exists()
    assert found_by_meaning(owner, "The roof leaks") == (["The roof leaks", "Ana moved to Porto"], [])
    assert found_by_meaning(owner, "Ana moved to Porto")[0][0] == "Ana moved to Porto"


def test_the_switch_queues_what_was_written_at_the_last_moment(owner: Owner) -> None:
    begin(tiny(384))
    go_on(until="switch")
    remember(owner, "Ana moved to Porto")

    late = switch_models(now=timezone.now())
    meanwhile = found_by_meaning(owner, "Ana moved to Porto")
    embed_pending(now=timezone.now(), limit=10)

    assert late == 1
    assert meanwhile == ([], ["embedding_pending"])
    assert found_by_meaning(owner, "Ana moved to Porto") == (["Ana moved to Porto"], [])


def test_no_switch_while_many_memories_lack_the_vector(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory.services.embedding.change.MAX_LATE_ROWS", 1)
    begin(tiny(384))
    go_on(until="switch")
    remember(owner, "one", "two")

    assert MAX_LATE_ROWS > 1
    assert switch_models(now=timezone.now()) is None
    assert serving_model().name == "tiny-64"


def test_a_process_that_does_not_know_of_the_switch_loses_nothing(owner: Owner) -> None:
    continue_change(now=NOW, size=10)
    former = read_known_models()
    change_to(tiny(384))
    conf.EMBEDDING_STATE_SECONDS = 60
    CACHE.remember(former)
    remember(owner, "Ana moved to Porto")
    meanwhile = (serving_model().name, found_by_meaning(owner, "Ana moved to Porto"))
    conf.EMBEDDING_STATE_SECONDS = 0
    queued = found_by_meaning(owner, "Ana moved to Porto")
    embed_pending(now=timezone.now(), limit=10)

    assert meanwhile == ("tiny-64", (["Ana moved to Porto"], ["embedding_pending"]))
    assert queued == ([], ["embedding_pending"])
    assert found_by_meaning(owner, "Ana moved to Porto") == (["Ana moved to Porto"], [])


def test_an_abort_drops_what_was_made_and_keeps_what_clients_sent(owner: Owner) -> None:
    remember(owner, "The boiler was repaired")
    begin(tiny(384))
    go_on(until="index")
    Vector.objects.filter(model="tiny-384").update(is_given=True)
    remember(owner, "Ana moved to Porto")

    request_abort()
    go_on()

    assert count_vectors() == {"tiny-64": 2, "tiny-384": 1}
    assert (serving_model().name, ReembedEntry.objects.count()) == ("tiny-64", 0)
    assert found_by_meaning(owner, "Ana moved to Porto")[0][0] == "Ana moved to Porto"


def test_finish_drops_the_former_models_vectors(owner: Owner) -> None:
    remember(owner, "The boiler was repaired", LONG)
    change_to(tiny(384))

    request_finish()
    settle()
    go_on()

    assert set(Vector.objects.values_list("model", flat=True)) == {"tiny-384"}
    assert ServingModelState.objects.get().former is None


def test_finish_waits_until_no_process_embeds_by_the_former_model(owner: Owner) -> None:
    continue_change(now=NOW, size=10)
    former = read_known_models()
    change_to(tiny(384))
    request_finish()
    waits = continue_change(now=timezone.now(), size=10)
    conf.EMBEDDING_STATE_SECONDS = 60
    CACHE.remember(former)
    remember(owner, "Ana moved to Porto")
    conf.EMBEDDING_STATE_SECONDS = 0
    settle()
    go_on()
    embed_pending(now=timezone.now(), limit=10)

    assert waits.is_over
    assert count_vectors() == {"tiny-384": 1}
    assert found_by_meaning(owner, "Ana moved to Porto") == (["Ana moved to Porto"], ["embedding_model_differs"])


def test_requests_that_make_no_sense_are_refused_with_a_sentence() -> None:
    record_serving_model()

    with pytest.raises(Unprocessable, match=r"tiny-64 \(64 dimensions\) serves already"):
        plan_change(tiny(64))
    with pytest.raises(Conflict, match="No change of the embedding model is going on"):
        request_abort()
    with pytest.raises(Conflict, match="no former embedding model"):
        request_finish()
    begin(tiny(384))
    with pytest.raises(Conflict, match=r"A change to tiny-384 \(384 dimensions\) is going on"):
        plan_change(tiny(16))
    with pytest.raises(Conflict, match="A change of the embedding model is going on"):
        request_finish()
    go_on()
    with pytest.raises(Conflict, match=r"Vectors of tiny-64 \(64 dimensions\), which served before"):
        plan_change(tiny(16))


def test_a_model_of_another_width_than_asked_for_is_refused(served: EmbeddingServer) -> None:
    wrong = ModelSpec(name=MODEL, provider="openai", model=MODEL, width=WIDTH + 1, asks_width=True)

    with pytest.raises(ProviderReplyInvalid, match=rf"vectors are \[{WIDTH}\] wide, not {WIDTH + 1}"):
        plan_change(wrong)


def test_the_same_model_with_another_width_has_the_width_in_its_name(owner: Owner, served: EmbeddingServer) -> None:
    store(owner, draft("The boiler was repaired", angle=0.1))
    Vector.objects.update(model=MODEL, width=4, vector=[1, 0, 0, 0])

    assert plan_change(SERVED).name == f"{MODEL}@{WIDTH}"


def test_an_endpoint_that_is_down_costs_nothing_and_the_change_goes_on_later(
    owner: Owner, served: EmbeddingServer
) -> None:
    remember(owner, "The boiler was repaired")
    begin(SERVED)
    served.fail(401)
    report = continue_change(now=timezone.now(), size=10)
    during = found_by_meaning(owner, "The boiler was repaired")
    served.recover()
    go_on()

    assert (report.is_over, report.changed) == (True, 0)
    assert during == (["The boiler was repaired"], [])
    assert (serving_model().name, serving_model().width) == (MODEL, WIDTH)
    assert found_by_meaning(owner, "The boiler was repaired") == (["The boiler was repaired"], [])


def test_a_text_that_the_next_model_refuses_does_not_keep_it_from_serving(
    owner: Owner, served: EmbeddingServer
) -> None:
    remember(owner, "good", "bad")
    begin(SERVED)
    well = served.answer
    served.answer = lambda texts: Response("no", status=400) if "bad" in texts else well(texts)
    go_on(until="switch")
    for _ in range(5):
        ReembedEntry.objects.update(due_at=NOW)
        continue_change(now=timezone.now(), size=10)

    assert serving_model().name == MODEL
    assert found_by_meaning(owner, "good") == (["good"], ["embedding_pending"])
    assert list(Memory.objects.awaiting_embedding().values_list("text", flat=True)) == ["bad"]


def test_texts_that_the_next_model_refuses_stop_nothing_however_many_they_are(
    owner: Owner, served: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = [f"bad {number}" for number in range(MAX_REFUSALS + 3)]
    monkeypatch.setattr("memory.services.embedding.change.MAX_LATE_ROWS", 5)
    remember(owner, "good", *bad)
    begin(SERVED)
    well = served.answer
    served.answer = lambda texts: Response("no", status=400) if any(map(is_bad, texts)) else well(texts)
    retry(until="switch")
    while serving_model().name != MODEL:
        retried = ReembedEntry.objects.update(due_at=NOW)
        continue_change(now=timezone.now(), size=20)
        status = find_status()
    while not continue_change(now=timezone.now(), size=20).is_over:
        pass

    assert retried == len(bad)
    assert status is not None
    assert (status.refused, status.lacking) == (len(bad) - 5, 5)
    assert found_by_meaning(owner, "good") == (["good"], ["embedding_pending"])
    assert sorted(Memory.objects.awaiting_embedding().values_list("text", flat=True)) == sorted(bad)
    assert not ReembedEntry.objects.exists()


def is_bad(text: str) -> bool:
    return text.startswith("bad")


def test_vectors_that_clients_send_without_a_model_are_of_the_serving_one(owner: Owner) -> None:
    change_to(tiny(384))

    with pytest.raises(WrongVectorWidth, match="64 dimensions; vectors of tiny-384 have 384"):
        validate_vector(owner, model="", vector=[1.0] * 64)


def test_the_database_notes_vectors_only_during_a_change(owner: Owner) -> None:
    record_serving_model()
    remember(owner, "before")
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM reembed_queue")
        assert cursor.fetchone() == (0,)
    store_episodes(owner, drafts=[EpisodeDraft(conversation_id="c1", summary="pending")], embedded=NOTHING, now=NOW)
    begin(tiny(384))
    embed_pending(now=timezone.now() + timedelta(seconds=1), limit=10)

    assert ReembedEntry.objects.count() == 1
