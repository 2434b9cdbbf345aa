"""Folders in the shapes of e5, bge, gte and multilingual e5: how they pool, and what they read before texts."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.cache import cache
from django.core.exceptions import ImproperlyConfigured
from pytest_django import Settings

from memory.providers.embeddings import embedding_provider
from memory.services.embedding.embed import embed_questions, embed_texts
from memory_project.embedded.models import read_model_folder
from tests.memory.providers.bert_in_numpy import Matrix, NumpyBert
from tests.memory.providers.small_bert import POSITIONS, write_small_bert, write_small_xlm_r
from tests.memory.providers.test_embeddings_local import token_ids

pytestmark = pytest.mark.usefixtures("empty_redis")

TEXT = "lamp is red"
TYPE = "sentence_transformers.models."
MODULES = {"Transformer": "", "Pooling": "1_Pooling", "Normalize": "2_Normalize"}


def write_folder(path: Path, *, pooling: str, modules: dict[str, str] | None = None, prompts: Any = None) -> Path:
    """Write a folder; without `modules` or `prompts` it lacks that file."""
    write_small_bert(path, pooling=pooling)
    if modules is not None:
        listed = [{"type": f"{TYPE}{kind}", "path": at} for kind, at in modules.items()]
        (path / "modules.json").write_text(json.dumps(listed))
    if prompts is not None:
        (path / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    return path


def write_e5(path: Path) -> Path:
    return write_folder(
        path, pooling="mean_tokens", modules=MODULES, prompts={"prompts": {"query": "a ", "passage": "the "}}
    )


def write_bge(path: Path) -> Path:
    return write_folder(path, pooling="cls_token", modules=MODULES, prompts={"prompts": {"query": "in the cellar "}})


def write_gte(path: Path) -> Path:
    return write_folder(path, pooling="mean_tokens")


def write_multilingual_e5(path: Path, *, prefix: str = "") -> Path:
    write_small_xlm_r(path, prefix=prefix)
    prompts = {"prompts": {"query": "a ", "passage": "the "}}
    (path / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    return path


@pytest.fixture(autouse=True)
def _local_model(settings: Settings) -> Iterator[None]:
    settings.EMBEDDING_PROVIDER, settings.EMBEDDING_MODEL = "local", ""
    settings.EMBEDDING_QUERY_PREFIX = settings.EMBEDDING_PASSAGE_PREFIX = ""
    cache.clear()
    embedding_provider.cache_clear()
    yield
    embedding_provider.cache_clear()


def expected_vector(folder: Path, text: str, *, pooling: str) -> Matrix:
    bert, ids = NumpyBert(folder), token_ids(folder, text)
    if pooling == "mean":
        return bert.mean_vector(ids)
    first = bert.token_vectors(ids)[0]
    normalized: Matrix = first / np.linalg.norm(first)
    return normalized


@pytest.mark.parametrize(
    ("write", "pooling", "query", "passage"),
    [
        (write_e5, "mean", "a ", "the "),
        (write_bge, "cls", "in the cellar ", ""),
        (write_gte, "mean", "", ""),
        (write_multilingual_e5, "mean", "a ", "the "),
        (partial(write_multilingual_e5, prefix="roberta."), "mean", "a ", "the "),
    ],
    ids=["e5", "bge", "gte", "multilingual e5", "multilingual e5 saved from a larger model"],
)
def test_a_folder_works_as_it_is(
    tmp_path: Path, settings: Settings, write: Any, pooling: str, query: str, passage: str
) -> None:
    folder = write(tmp_path / "model")
    settings.EMBEDDING_MODEL_DIR = str(folder)

    asked, stored = embed_questions([TEXT], deadline_seconds=60), embed_texts([TEXT], deadline_seconds=60)

    for made, prefix in ((asked, query), (stored, passage)):
        np.testing.assert_allclose(
            made.vectors[TEXT], expected_vector(folder, prefix + TEXT, pooling=pooling), atol=1e-4
        )


def test_xlm_r_reads_as_many_tokens_as_it_has_positions_behind_padding(tmp_path: Path, settings: Settings) -> None:
    folder = write_multilingual_e5(tmp_path / "model")
    settings.EMBEDDING_MODEL_DIR = str(folder)
    texts = ["lamp " * 50, "is red", "lamp"]

    together = embed_texts(texts, deadline_seconds=60)
    cache.clear()
    alone = [embed_texts([text], deadline_seconds=60).vectors[text] for text in texts]

    assert read_model_folder(folder).max_tokens == POSITIONS - 2
    # padding changes nothing
    np.testing.assert_allclose([together.vectors[text] for text in texts], alone, atol=1e-6)


def test_settings_name_prefixes_that_a_folder_does_not_state(tmp_path: Path, settings: Settings) -> None:
    settings.EMBEDDING_MODEL_DIR = str(write_gte(tmp_path / "model"))
    settings.EMBEDDING_QUERY_PREFIX = "the "

    asked, stored = embed_questions([TEXT], deadline_seconds=60), embed_texts([f"the {TEXT}"], deadline_seconds=60)

    np.testing.assert_array_equal(asked.vectors[TEXT], stored.vectors[f"the {TEXT}"])


@pytest.mark.parametrize(
    ("prompts", "prefixes"),
    [
        ({"prompts": {"document": "d: ", "query": "q: "}}, ("q: ", "d: ")),
        ({"prompts": {"plain": "p: ", "query": "q: "}, "default_prompt_name": "plain"}, ("q: ", "p: ")),
        ({"prompts": {}, "default_prompt_name": None}, ("", "")),
        ({"__version__": {}}, ("", "")),
    ],
    ids=["document", "default", "empty", "none"],
)
def test_prompts_are_read_by_their_usual_names(tmp_path: Path, prompts: Any, prefixes: tuple[str, str]) -> None:
    folder = read_model_folder(write_folder(tmp_path / "model", pooling="mean_tokens", prompts=prompts))

    assert (folder.query_prefix, folder.passage_prefix) == prefixes


def test_the_pooling_is_where_the_modules_say(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "model", pooling="cls_token", modules=MODULES | {"Pooling": "pooling"})
    (folder / "1_Pooling").rename(folder / "pooling")

    assert not read_model_folder(folder).pools_by_mean


@pytest.mark.parametrize(
    ("modules", "prompts"),
    [(MODULES | {"Dense": "3_Dense"}, None), (MODULES | {"Transformer": "0_BERT"}, None), (None, {"prompts": ["q"]})],
    ids=["another module", "weights elsewhere", "prompts that are a list"],
)
def test_a_folder_that_asks_for_more_is_refused(tmp_path: Path, modules: Any, prompts: Any) -> None:
    folder = write_folder(tmp_path / "model", pooling="mean_tokens", modules=modules, prompts=prompts)

    with pytest.raises(ImproperlyConfigured, match=r"modules\.json|prompts"):
        read_model_folder(folder)
