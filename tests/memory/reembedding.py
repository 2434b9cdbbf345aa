"""Changes of the embedding model for tests: models of any width without weights, and memories by the serving one."""

from collections.abc import Iterator, Sequence

import pytest
from django.db.models import F
from django.utils import timezone
from pytest_django import Settings

from memory import conf
from memory.models import EpisodicMemory, ReembedEntry, ServingModelState, Vector
from memory.owner import Owner
from memory.providers.embeddings import ModelSpec, embedding_provider, open_model
from memory.services.embedding.change import STALE_FOR, plan_change, start_change
from memory.services.embedding.embed import embed_texts
from memory.services.embedding.reembed import continue_change
from memory.services.embedding.serving import CACHE
from memory.services.recall.recall import search_episodes_by_text
from memory.services.summaries.store import EpisodeDraft, store_episodes
from tests.memory.episodes import NOW

MAX_BATCHES = 100
EpisodeTexts = list[str]


def forget_models() -> None:
    """Have settings and the row read anew."""
    embedding_provider.cache_clear()
    open_model.cache_clear()
    CACHE.forget()


@pytest.fixture
def tiny_models(settings: Settings) -> Iterator[None]:
    """Models without weights may be used, `tiny-64` is configured, and processes learn of a switch immediately."""
    settings.EMBEDDING_PROVIDER, settings.MEMORY_ALLOW_TINY_EMBEDDINGS = "tiny", True
    forget_models()
    conf.EMBEDDING_STATE_SECONDS = 0
    yield
    forget_models()


def tiny(width: int) -> ModelSpec:
    name = f"tiny-{width}"
    return ModelSpec(name=name, provider="tiny", model=name, width=width)


def remember(owner: Owner, *texts: str) -> Sequence[EpisodicMemory]:
    """Store episodes with vectors of the serving model."""
    drafts = [EpisodeDraft(conversation_id="c1", summary=text) for text in texts]
    return store_episodes(owner, drafts=drafts, embedded=embed_texts(texts), now=NOW)


def begin(spec: ModelSpec) -> None:
    start_change(plan_change(spec), now=timezone.now())


def go_on(*, until: str = "idle", size: int = 20) -> int:
    """Continue the change up to a phase, and return how many batches that took."""
    for number in range(MAX_BATCHES):
        if ServingModelState.objects.filter(phase=until).exists():
            return number
        continue_change(now=timezone.now(), size=size)
    raise AssertionError(f"the change never came to the phase {until}")


def settle() -> None:
    """Let the time pass after which no process stores vectors of the former model any more."""
    ServingModelState.objects.update(switched_at=F("switched_at") - STALE_FOR)


def retry(*, until: str) -> None:
    """Continue the change, failed texts at once, up to a phase."""
    for _ in range(MAX_BATCHES):
        if ServingModelState.objects.filter(phase=until).exists():
            return
        ReembedEntry.objects.update(due_at=NOW)
        continue_change(now=timezone.now(), size=20)
    raise AssertionError(f"the change never came to the phase {until}")


def change_to(spec: ModelSpec) -> None:
    begin(spec)
    go_on()


def count_vectors() -> dict[str, int]:
    """Return the numbers of vectors of whole texts, by model."""
    models = Vector.objects.whole().values_list("model", flat=True)
    return {model: list(models).count(model) for model in models}


def found_by_meaning(owner: Owner, text: str) -> tuple[EpisodeTexts, Sequence[str]]:
    """Return what a search finds by its vectors, and why it is worse than it could be."""
    found = search_episodes_by_text(owner, text=text, top_k=5, own=None, now=timezone.now())
    return [hit.summary for hit in found.hits if hit.similarity is not None], found.degraded
