"""Embedding models, and the choice among them.

The settings configure one model. While it is changed, two are in use: `open_model` makes the provider of any of them
from its `ModelSpec`. Which one serves searches is known to `memory.services.embedding.serving`.

To add one: a module next to `openai.py` with a class that implements `EmbeddingProvider`, and its name in PROVIDERS.
"""

import hashlib
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from memory.providers.embeddings.base import EmbeddingProvider, ModelSpec, TextPrefixes, Vectors
from memory.providers.embeddings.local import LocalEmbeddings
from memory.providers.embeddings.openai import OpenAIEmbeddings, OpenAIEndpoint
from memory.providers.embeddings.tiny import TINY_WIDTH, TinyEmbeddings
from memory.providers.endpoints import OPENAI_ADDRESS, endpoint_connection, has_secret, openai_connection
from memory.tokens import estimate_tokens
from memory_project.embedded.models import BUNDLED_MODEL, find_bundled_folder, list_graph_folders

DEFAULT_OPENAI_MODEL = "text-embedding-3-small"
NESTED_MODELS = ("text-embedding-3-",)
"""Beginnings of the names of models that are known to be trained for prefixes."""
MAX_COUNTED_LINES = 50_000
"""Lines whose tokens a process keeps."""
WIDEST = 4000
"""Maximum number of dimensions. A vector of half precision must fit into a page of PostgreSQL."""

__all__ = [
    "EmbeddingProvider",
    "ModelSpec",
    "TextPrefixes",
    "Vectors",
    "configured_model",
    "configured_prefixes",
    "embedding_provider",
    "is_nested",
    "open_model",
    "prefixes_of",
    "token_counter",
]


@lru_cache(maxsize=1)
def embedding_provider() -> EmbeddingProvider:
    """Return the configured provider, made once per process; call `.cache_clear()` after changing settings.

    Makes no connection and loads no weights yet. Raises ImproperlyConfigured for settings that cannot work.
    """
    name = settings.EMBEDDING_PROVIDER or choose_provider()
    try:
        make = PROVIDERS[name]
    except KeyError as err:
        known = ", ".join(sorted(PROVIDERS))
        raise ImproperlyConfigured(f"EMBEDDING_PROVIDER is {name!r}; it must be empty or one of {known}") from err
    return make()


def configured_model() -> ModelSpec:
    """Return the model that the settings configure. Raises ImproperlyConfigured for settings that cannot work.

    Asks no endpoint: the width is 0 if the settings leave it to the endpoint.
    """
    provider, name = embedding_provider(), settings.EMBEDDING_PROVIDER or choose_provider()
    is_served = isinstance(provider, OpenAIEmbeddings)
    base_url = settings.OPENAI_BASE_URL or OPENAI_ADDRESS
    return ModelSpec(
        name=provider.model,
        provider=name,
        model=provider.model,
        width=settings.EMBEDDING_DIMENSIONS if is_served else provider.width,
        asks_width=is_served and bool(settings.EMBEDDING_DIMENSIONS),
        folder="" if is_served else settings.EMBEDDING_MODEL_DIR,
        base_url=base_url if is_served and not has_secret(base_url) else "",
        prefixes=configured_prefixes(),
    )


def configured_prefixes() -> TextPrefixes:
    """Return the prefixes of the settings, which replace those that a local folder states."""
    return TextPrefixes(query=settings.EMBEDDING_QUERY_PREFIX, passage=settings.EMBEDDING_PASSAGE_PREFIX)


@lru_cache(maxsize=8)
def open_model(spec: ModelSpec) -> EmbeddingProvider:
    """Return the provider of a model that the settings may no longer configure, made once per process.

    Makes no connection and loads no weights yet. Raises ImproperlyConfigured if it cannot work here.
    """
    if spec.provider == "openai":
        return OpenAIEmbeddings(
            OpenAIEndpoint(
                model=spec.model,
                name=spec.name,
                dimensions=spec.width if spec.asks_width else 0,
                timeout_seconds=settings.EMBEDDING_TIMEOUT_SECONDS,
                **endpoint_connection(spec.base_url),
            )
        )
    if spec.provider == "tiny":
        return make_tiny(spec.width or TINY_WIDTH)
    folder = Path(spec.folder).resolve() if spec.folder else find_bundled_folder()
    return open_folder(folder, model=spec.name, data_dir=Path(settings.DATA_DIR), threads=settings.EMBEDDING_THREADS)


def prefixes_of(provider: EmbeddingProvider, given: TextPrefixes) -> TextPrefixes:
    """Return the prefixes of a model: the given ones, else those that a local folder states."""
    stated = provider.prefixes if isinstance(provider, LocalEmbeddings) else TextPrefixes()
    return TextPrefixes(query=given.query or stated.query, passage=given.passage or stated.passage)


def count_by_lines(count: Callable[[str], int]) -> Callable[[str], int]:
    """Return a function that counts tokens by `count`, but never fewer than estimated, and each distinct line once.

    No tokenizer joins words of two lines, so the tokens of a text are those of its lines. Counts are kept by digests,
    so that no text stays here after its erasure.
    """
    known: dict[bytes, int] = {}

    def count_line(line: str) -> int:
        digest = hashlib.blake2b(line.encode(errors="surrogatepass"), digest_size=16).digest()
        tokens = known.get(digest)
        if tokens is None:
            if len(known) >= MAX_COUNTED_LINES:
                known.clear()
            tokens = known[digest] = max(count(line), estimate_tokens(line))
        return tokens

    return lambda text: sum(map(count_line, text.splitlines(keepends=True)))


def token_counter() -> Callable[[str], int]:
    """Return the function that counts tokens: the tokenizer of local weights, or else an estimate.

    Never returns fewer than the estimate: such a tokenizer has one token for any word it does not know, however long.
    """
    provider = embedding_provider()
    return local_counter(provider) if isinstance(provider, LocalEmbeddings) else estimate_tokens


@lru_cache(maxsize=4)
def local_counter(provider: LocalEmbeddings) -> Callable[[str], int]:
    """Return the function that counts by the tokenizer of local weights, with the counts of former requests."""
    return count_by_lines(provider.count_tokens)


def is_nested(model: str) -> bool:
    """Return True if prefixes of the model's vectors are usable vectors themselves (Matryoshka, Kusupati 2022)."""
    # a model of two widths has the width in its name
    known = {model, model.rpartition("@")[0]} & set(settings.EMBEDDING_NESTED_MODELS)
    return model.startswith(NESTED_MODELS) or bool(known)


def choose_provider() -> str:
    """Return the name of the provider: an endpoint if one is configured, else the weights on this machine."""
    return "openai" if settings.OPENAI_API_KEY or settings.OPENAI_BASE_URL else "local"


def make_openai() -> EmbeddingProvider:
    if settings.EMBEDDING_DIMENSIONS > WIDEST:
        raise ImproperlyConfigured(
            f"EMBEDDING_DIMENSIONS is {settings.EMBEDDING_DIMENSIONS}; at most {WIDEST} fit a row"
        )
    return OpenAIEmbeddings(
        OpenAIEndpoint(
            model=settings.EMBEDDING_MODEL or DEFAULT_OPENAI_MODEL,
            dimensions=settings.EMBEDDING_DIMENSIONS or 0,
            timeout_seconds=settings.EMBEDDING_TIMEOUT_SECONDS,
            **openai_connection("EMBEDDING_PROVIDER=openai"),
        )
    )


def make_local() -> EmbeddingProvider:
    """Make the local provider.

    A folder of one's own is named by EMBEDDING_MODEL, or else by its own name; the bundled weights have a name.
    """
    if not settings.EMBEDDING_MODEL_DIR:
        return bundled_embeddings()
    folder = Path(settings.EMBEDDING_MODEL_DIR).resolve()
    return open_folder(
        folder,
        model=settings.EMBEDDING_MODEL or folder.name,
        data_dir=Path(settings.DATA_DIR),
        threads=settings.EMBEDDING_THREADS,
    )


def bundled_embeddings() -> EmbeddingProvider:
    """Return the provider of the bundled weights, whatever memories are embedded with.

    Raises ImproperlyConfigured if they are not installed.
    """
    return open_folder(
        find_bundled_folder(),
        model=BUNDLED_MODEL,
        data_dir=Path(settings.DATA_DIR),
        threads=settings.EMBEDDING_THREADS,
    )


@lru_cache(maxsize=2)
def open_folder(folder: Path, *, model: str, data_dir: Path, threads: int) -> LocalEmbeddings:
    """Return the provider of a folder of weights, which a process loads once, whatever names it again."""
    return LocalEmbeddings(folder, model=model, kept_in=list_graph_folders(data_dir), threads=threads)


def make_tiny(width: int = TINY_WIDTH) -> EmbeddingProvider:
    if not settings.MEMORY_ALLOW_TINY_EMBEDDINGS:
        raise ImproperlyConfigured(
            "EMBEDDING_PROVIDER=tiny knows no meaning and is for tests and synthetic loads only: leave it "
            "empty for the offline model, or set MEMORY_ALLOW_TINY_EMBEDDINGS=1 if this is such a load"
        )
    return TinyEmbeddings(width=width)


PROVIDERS: Mapping[str, Callable[[], EmbeddingProvider]] = {
    "local": make_local,
    "openai": make_openai,
    "tiny": make_tiny,
}
