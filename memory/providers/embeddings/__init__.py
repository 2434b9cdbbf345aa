"""Embedding models, and which of them this service uses.

To add one: write a module beside `openai.py` with a class that keeps `EmbeddingProvider`'s promises, and name
it in PROVIDERS.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from memory.providers.embeddings.base import EmbeddingProvider, Vectors
from memory.providers.embeddings.line_counter import LineCounter
from memory.providers.embeddings.local import LocalEmbeddings
from memory.providers.embeddings.openai import OpenAIEmbeddings, OpenAIEndpoint
from memory.providers.embeddings.tiny import TinyEmbeddings
from memory.providers.endpoints import check_api_key, check_base_url
from memory.tokens import estimate_tokens
from memory_project.embedded.models import BUNDLED_MODEL, find_bundled_folder, list_graph_folders

DEFAULT_OPENAI_MODEL = "text-embedding-3-small"
NESTED_MODELS = ("text-embedding-3-",)
"""How the names of models begin that are known to be trained for prefixes."""
WIDEST = 4000
"""Dimensions: a vector of half precision must fit a page of PostgreSQL."""

__all__ = ["EmbeddingProvider", "Vectors", "embedding_provider", "is_nested", "token_counter"]


@lru_cache(maxsize=1)
def embedding_provider() -> EmbeddingProvider:
    """The one that the settings name, made once per process; who changes settings calls `.cache_clear()`.

    Makes no connection and loads no weights yet. Raises ImproperlyConfigured for settings that cannot work.
    """
    name = settings.EMBEDDING_PROVIDER or choose_provider()
    try:
        make = PROVIDERS[name]
    except KeyError as err:
        known = ", ".join(sorted(PROVIDERS))
        raise ImproperlyConfigured(f"EMBEDDING_PROVIDER is {name!r}; it must be empty or one of {known}") from err
    return make()


def token_counter() -> Callable[[str], int]:
    """How tokens of a text are counted: by the tokenizer of weights on this machine, else by estimate.

    Never fewer than the estimate: such a tokenizer has one token for any word that it does not know, however long.
    """
    provider = embedding_provider()
    return LineCounter(count=provider.count_tokens) if isinstance(provider, LocalEmbeddings) else estimate_tokens


def is_nested(model: str) -> bool:
    """Whether prefixes of its vectors mean something by themselves: it was trained so (Matryoshka, Kusupati 2022)."""
    return model.startswith(NESTED_MODELS) or model in settings.EMBEDDING_NESTED_MODELS


def choose_provider() -> str:
    """An endpoint where one is configured, else the weights on this machine."""
    return "openai" if settings.OPENAI_API_KEY or settings.OPENAI_BASE_URL else "local"


def make_openai() -> EmbeddingProvider:
    if settings.EMBEDDING_DIMENSIONS > WIDEST:
        raise ImproperlyConfigured(
            f"EMBEDDING_DIMENSIONS is {settings.EMBEDDING_DIMENSIONS}; at most {WIDEST} fit a row"
        )
    if not (settings.OPENAI_API_KEY or settings.OPENAI_BASE_URL):
        raise ImproperlyConfigured(
            "EMBEDDING_PROVIDER=openai needs OPENAI_API_KEY, or OPENAI_BASE_URL for an endpoint without keys"
        )
    check_base_url(settings.OPENAI_BASE_URL)
    check_api_key(settings.OPENAI_API_KEY)
    return OpenAIEmbeddings(
        OpenAIEndpoint(
            model=settings.EMBEDDING_MODEL or DEFAULT_OPENAI_MODEL,
            api_key=settings.OPENAI_API_KEY,
            base_url=settings.OPENAI_BASE_URL,
            dimensions=settings.EMBEDDING_DIMENSIONS or 0,
            timeout_seconds=settings.EMBEDDING_TIMEOUT_SECONDS,
        )
    )


def make_local() -> EmbeddingProvider:
    """A folder of one's own goes by EMBEDDING_MODEL, else by its name; the bundled weights go by theirs."""
    if settings.EMBEDDING_MODEL_DIR:
        folder = Path(settings.EMBEDDING_MODEL_DIR).resolve()
        model = settings.EMBEDDING_MODEL or folder.name
    else:
        folder, model = find_bundled_folder(), BUNDLED_MODEL
    kept_in = list_graph_folders(Path(settings.DATA_DIR))
    return LocalEmbeddings(folder, model=model, kept_in=kept_in, threads=settings.EMBEDDING_THREADS)


def make_tiny() -> EmbeddingProvider:
    if not settings.MEMORY_ALLOW_TINY_EMBEDDINGS:
        raise ImproperlyConfigured(
            "EMBEDDING_PROVIDER=tiny knows no meaning and is for tests and synthetic loads only: leave it "
            "empty for the offline model, or set MEMORY_ALLOW_TINY_EMBEDDINGS=1 if this is such a load"
        )
    return TinyEmbeddings()


PROVIDERS: Mapping[str, Callable[[], EmbeddingProvider]] = {
    "local": make_local,
    "openai": make_openai,
    "tiny": make_tiny,
}
