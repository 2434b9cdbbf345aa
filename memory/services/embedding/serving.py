"""The embedding model that serves searches, as the one row of `embedding_state` says, whatever the settings configure.

A process reads the row at most every MEMORY_EMBEDDING_STATE_SECONDS, so that it learns of a switch without a restart.
Until then it searches and stores by the former model: its vectors are still there, what it stores becomes due for the
serving model (`memory_note_vectors`), and its searches answer `embedding_pending`. A caller takes the model once and
passes it on, so that no search compares vectors of two.

Without a row, before the job `reembed` first ran, the configured model serves.
"""

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from time import monotonic
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from memory import conf
from memory.errors import ProviderError, ProviderRefused
from memory.models import ServingModelState
from memory.models.embedding_state import STATE_ID
from memory.providers.embeddings import (
    EmbeddingProvider,
    ModelSpec,
    TextPrefixes,
    Vectors,
    configured_model,
    configured_prefixes,
    embedding_provider,
    open_model,
    prefixes_of,
)
from memory.providers.embeddings.local import LocalEmbeddings

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingModel:
    """An embedding model in use: its provider, its prefixes, and the width of its stored vectors, 0 if not known."""

    provider: EmbeddingProvider
    prefixes: TextPrefixes
    width: int = 0

    @property
    def name(self) -> str:
        """The name stored with each vector."""
        return self.provider.model


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownModels:
    """The models that the row names: the one that serves, the one being prepared, and the one that served before."""

    serving: ModelSpec
    next: ModelSpec | None = None
    former: ModelSpec | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusableModel:
    """Stands for a model that cannot be used with the settings of this process. Every request fails with the reason."""

    model: str
    reason: str
    width: int = 0
    max_batch: int = 1

    def find_width(self, *, deadline_seconds: float | None) -> int:
        raise ProviderRefused(f"the embedding model {self.model} cannot be used: {self.reason}", status=0)

    def embed(self, texts: Sequence[str], *, deadline_seconds: float | None) -> Vectors:
        raise ProviderRefused(f"the embedding model {self.model} cannot be used: {self.reason}", status=0)


@dataclass(slots=True)
class StateCache:
    """The row as this process last read it."""

    known: KnownModels | None = None
    read_at: float = float("-inf")
    _warmed: set[ModelSpec] = field(default_factory=set)

    def read(self) -> KnownModels | None:
        """Return the models, at most MEMORY_EMBEDDING_STATE_SECONDS old. One statement, or none."""
        if monotonic() - self.read_at >= conf.EMBEDDING_STATE_SECONDS:
            self.remember(read_known_models())
            self._warm_next()
        return self.known

    def remember(self, known: KnownModels | None) -> None:
        self.known, self.read_at = known, monotonic()

    def forget(self) -> None:
        """Have the next caller read the row."""
        self.read_at = float("-inf")

    def _warm_next(self) -> None:
        """Load the weights of a model that is to serve soon, so that the first search after the switch is not late."""
        soon = self.known and self.known.next
        if soon and soon.provider == "local" and soon not in self._warmed:
            self._warmed.add(soon)
            threading.Thread(target=warm_model, args=(use_model(soon),), daemon=True, name="warm-model").start()


CACHE = StateCache()


def warm_model(model: EmbeddingModel) -> None:
    """Load a local model (about a second, more if its graph must be built); do nothing for an endpoint."""
    try:
        if isinstance(model.provider, LocalEmbeddings):
            model.provider.embed(["ready"], deadline_seconds=None)
    except ProviderError as err:
        logger.warning("the embedding model %s was not loaded: %s", model.name, err)


def read_known_models() -> KnownModels | None:
    """Read the row, or None if there is none. One statement."""
    row = ServingModelState.objects.filter(id=STATE_ID).values("serving", "next", "former").first()
    if row is None:
        return None
    return KnownModels(
        serving=parse_spec(row["serving"]),
        next=row["next"] and parse_spec(row["next"]),
        former=row["former"] and parse_spec(row["former"]),
    )


def parse_spec(stored: Mapping[str, Any]) -> ModelSpec:
    return ModelSpec(**{**stored, "prefixes": TextPrefixes(**stored["prefixes"])})


def serialize_spec(spec: ModelSpec) -> dict[str, Any]:
    return asdict(spec)


def serving_model() -> EmbeddingModel:
    """Return the model that serves searches and embeds what is stored. Take it once for each search or write."""
    known = CACHE.read()
    return use_configured_model() if known is None else use_model(known.serving)


def use_configured_model() -> EmbeddingModel:
    """Return the model that the settings configure. Raises ImproperlyConfigured."""
    provider = embedding_provider()
    return EmbeddingModel(provider=provider, prefixes=prefixes_of(provider, configured_prefixes()))


def use_model(spec: ModelSpec) -> EmbeddingModel:
    """Return a stored model for use: with address, folder and prefixes of the settings if they configure it."""
    try:
        configured = find_configured_model()
        if configured is None or not configured.is_same(spec):
            provider, prefixes = open_model(spec), spec.prefixes
        else:
            named = replace(configured, name=spec.name, width=spec.width)
            provider = embedding_provider() if spec.name == configured.name else open_model(named)
            prefixes = configured.prefixes
        return EmbeddingModel(provider=provider, prefixes=prefixes_of(provider, prefixes), width=spec.width)
    except ImproperlyConfigured as err:
        unusable = UnusableModel(model=spec.name, reason=str(err), width=spec.width)
        return EmbeddingModel(provider=unusable, prefixes=spec.prefixes, width=spec.width)


def find_configured_model() -> ModelSpec | None:
    """Return the configured model, or None if the settings configure none that could work."""
    try:
        return configured_model()
    except ImproperlyConfigured:
        return None


def describe_differing_model() -> tuple[str, str] | None:
    """Return what differs between the settings and the serving model, and what to do; None if nothing does.

    While a change is going on, the settings may configure either model. One statement.
    """
    known = read_known_models()
    if known is None:
        return None
    serving, configured = known.serving.describe(), find_configured_model()
    provider = use_model(known.serving).provider
    if isinstance(provider, UnusableModel):
        what = f"Searches are served by the embedding model {serving}, which cannot be used: {provider.reason}."
        return what, "Set its settings back, and change the model by `manage.py reembed`."
    if configured is None or any(spec and configured.is_same(spec) for spec in (known.serving, known.next)):
        return None
    what = f"The settings configure the embedding model {configured.describe()}, but {serving} serves searches."
    if known.former is not None and configured.is_same(known.former):
        advice = (
            "Set them to the serving model and restart; then drop the former vectors: `manage.py reembed --finish`."
        )
        return what, advice
    return what, "Change to it by `manage.py reembed`, or set the settings back."


def is_model_unannounced() -> bool:
    """Return True if the settings configure a model that neither serves, nor served before, nor is being prepared."""
    known = CACHE.read()
    return known is not None and differs_unannounced(known)


def differs_unannounced(known: KnownModels) -> bool:
    """Return True if the settings configure a model that the row does not name."""
    configured = find_configured_model()
    named = (known.serving, known.next, known.former)
    return configured is not None and not any(spec is not None and configured.is_same(spec) for spec in named)
