"""The offline embedder: the weights that ship, and small random ones for every variant of a folder."""

import json
import multiprocessing
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from django.core.exceptions import ImproperlyConfigured
from tokenizers import Tokenizer

from memory.errors import ProviderUnavailable
from memory.providers.embeddings.base import Vectors
from memory.providers.embeddings.local import MAX_TOKENS_PER_RUN, LocalEmbeddings, cut_into_runs
from memory_project.embedded.models import (
    BUNDLED_MODEL,
    BUNDLED_PACKAGE,
    find_bundled_folder,
    find_or_build_graph,
    read_model_folder,
)
from tests.memory.providers.bert_in_numpy import NumpyBert
from tests.memory.providers.small_bert import write_small_bert

SENTENCES = [
    "The cat sits outside",
    "A man is playing guitar",
    "The new movie is awesome",
    "The new opera is nice",
    "Où est la bibliothèque ? 図書館 🙂",
    "Memory systems keep what was said, forget what is private, and recall the evidence when a question is asked.",
]


@pytest.fixture(scope="module")
def minilm(tmp_path_factory: pytest.TempPathFactory) -> LocalEmbeddings:
    kept_in = tmp_path_factory.mktemp("graphs")
    return LocalEmbeddings(find_bundled_folder(), model=BUNDLED_MODEL, kept_in=[kept_in])


def small(folder: Path, *kept_in: Path) -> LocalEmbeddings:
    return LocalEmbeddings(folder, model="small", kept_in=kept_in)


def token_ids(folder: Path, text: str) -> list[int]:
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return list(tokenizer.encode(text).ids)


def test_the_bundled_model_agrees_with_a_reference_implementation(minilm: LocalEmbeddings) -> None:
    folder = find_bundled_folder()
    bert = NumpyBert(folder)
    expected = np.stack([bert.mean_vector(token_ids(folder, text)) for text in SENTENCES])

    vectors = minilm.embed(SENTENCES, deadline_seconds=None)

    cosines = (vectors * expected).sum(axis=1)
    assert cosines.min() > 0.99999
    np.testing.assert_allclose(vectors, expected, atol=2e-6)


def test_the_shipped_model_gives_the_similarities_that_its_authors_published(minilm: LocalEmbeddings) -> None:
    cat, guitar, movie, opera, *_ = minilm.embed(SENTENCES, deadline_seconds=None)

    assert cat @ guitar == pytest.approx(0.0363, abs=1e-4)
    assert movie @ opera == pytest.approx(0.5006, abs=1e-4)
    assert movie @ opera > guitar @ opera > cat @ guitar


def test_the_package_of_the_bundled_model_is_never_imported(minilm: LocalEmbeddings) -> None:
    minilm.embed(["anything"], deadline_seconds=None)

    assert BUNDLED_PACKAGE not in sys.modules


@pytest.mark.slow
def test_a_text_has_the_same_vector_alone_and_among_longer_ones(minilm: LocalEmbeddings) -> None:
    texts = [" ".join(SENTENCES[:count]) for count in (5, 1, 6, 2, 3)] * 20

    together = minilm.embed(texts, deadline_seconds=None)

    alone = np.concatenate([minilm.embed([text], deadline_seconds=None) for text in texts[:5]])
    assert together.shape == (100, 384)
    np.testing.assert_allclose(together, np.tile(alone, (20, 1)), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, rtol=1e-6)


@pytest.mark.slow
def test_the_end_of_a_long_text_counts(minilm: LocalEmbeddings) -> None:
    filler = "The council discussed the budget for the harbour. " * 60
    guitar = minilm.embed(["A man is playing guitar"], deadline_seconds=None)[0]

    without, with_guitar = minilm.embed([filler, filler + "A man is playing guitar. " * 60], deadline_seconds=None)

    assert with_guitar @ guitar > without @ guitar + 0.2


def test_threads_share_the_model(minilm: LocalEmbeddings) -> None:
    expected = minilm.embed(SENTENCES, deadline_seconds=None)

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: minilm.embed(SENTENCES, deadline_seconds=None), range(8)))

    for vectors in answers:
        np.testing.assert_array_equal(vectors, expected)


@pytest.mark.parametrize("text", ["", " \n\t", "a \ud800"])
def test_a_text_without_meaning_is_refused(minilm: LocalEmbeddings, text: str) -> None:
    with pytest.raises(ValueError, match="text 1 "):
        minilm.embed(["fine", text], deadline_seconds=None)


@pytest.mark.parametrize("text", ["\u200b", "\x00", "\x07", "🙂" * 500, "a" * 20_000, "\u0301" * 100])
def test_unusual_texts_have_normalized_vectors(minilm: LocalEmbeddings, text: str) -> None:
    vectors = minilm.embed([text], deadline_seconds=None)

    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)


def test_embedding_no_texts_returns_no_rows(minilm: LocalEmbeddings) -> None:
    assert minilm.embed([], deadline_seconds=None).shape == (0, 384)


def test_work_beyond_the_deadline_is_given_up(minilm: LocalEmbeddings) -> None:
    minilm.embed(["loaded"], deadline_seconds=None)

    with pytest.raises(ProviderUnavailable, match="deadline"):
        minilm.embed([" ".join(SENTENCES) * 4] * 300, deadline_seconds=0.2)


def test_one_huge_text_is_given_up_at_the_deadline_too(minilm: LocalEmbeddings) -> None:
    began = time.monotonic()

    with pytest.raises(ProviderUnavailable, match="deadline"):
        minilm.embed(["some words of a text " * 200_000], deadline_seconds=0.2)

    assert time.monotonic() - began < 2


def test_runs_hold_every_chunk_once_within_both_limits() -> None:
    lengths = [3] * 40 + [100] * 25 + [256] * 9

    runs = list(cut_into_runs(range(len(lengths)), lengths, most=32))

    assert [at for run in runs for at in run] == list(range(len(lengths)))
    assert all(len(run) <= 32 and len(run) * lengths[run[-1]] <= MAX_TOKENS_PER_RUN for run in runs)


@pytest.mark.parametrize(
    "variant",
    [
        {},
        {"dtype": np.float16},
        {"hidden_act": "gelu_new"},
        {"num_attention_heads": 4},
        {"layer_norm_eps": 0.1},
        {"num_hidden_layers": 1},
    ],
    ids=str,
)
def test_a_custom_model_folder_agrees_with_a_reference_implementation(
    tmp_path: Path, variant: dict[str, object]
) -> None:
    folder = write_small_bert(tmp_path / "model", **variant)  # type: ignore[arg-type]
    texts = ["the lamp is red", "a cat", "nonsense in the cellar is a red lamp"]

    vectors = small(folder, tmp_path).embed(texts, deadline_seconds=None)

    expected = [NumpyBert(folder).mean_vector(token_ids(folder, text)) for text in texts]
    np.testing.assert_allclose(vectors, expected, atol=1e-4)


def test_a_folder_may_pool_by_its_first_token(tmp_path: Path) -> None:
    folder = write_small_bert(tmp_path / "model", pooling="cls_token")

    vectors = small(folder, tmp_path).embed(["a cat", "the lamp is red"], deadline_seconds=None)

    first = NumpyBert(folder).token_vectors(token_ids(folder, "a cat"))[0]
    np.testing.assert_allclose(vectors[0], first / np.linalg.norm(first), atol=1e-4)


def test_weights_saved_as_part_of_a_larger_model_are_found(tmp_path: Path) -> None:
    plain = write_small_bert(tmp_path / "plain")
    prefixed = write_small_bert(tmp_path / "prefixed", prefix="bert.")

    expected = small(plain, tmp_path).embed(["a cat"], deadline_seconds=None)

    np.testing.assert_array_equal(small(prefixed, tmp_path).embed(["a cat"], deadline_seconds=None), expected)


def test_a_long_text_is_the_mean_of_its_chunks_weighted_by_their_tokens(tmp_path: Path) -> None:
    folder = write_small_bert(tmp_path / "model")
    bert = NumpyBert(folder)
    words = "the lamp is red in a cellar the cat is in the red cellar"

    vector = small(folder, tmp_path).embed([words], deadline_seconds=None)[0]

    # 12 positions: [CLS], ten words, [SEP]; then [CLS], the other four, [SEP]
    head, tail = (token_ids(folder, " ".join(part)) for part in (words.split()[:10], words.split()[10:]))
    mean = len(head) * bert.mean_vector(head) + len(tail) * bert.mean_vector(tail)
    np.testing.assert_allclose(vector, mean / np.linalg.norm(mean), atol=1e-4)


def test_the_graph_is_built_once_and_kept_whole(tmp_path: Path) -> None:
    folder = write_small_bert(tmp_path / "model")
    kept_in = tmp_path / "data" / "models"
    small(folder, kept_in).embed(["a cat"], deadline_seconds=None)
    (graph,) = kept_in.iterdir()
    written = graph.stat().st_mtime_ns

    small(folder, kept_in).embed(["a cat"], deadline_seconds=None)

    assert [(file.suffix, file.stat().st_mtime_ns) for file in kept_in.iterdir()] == [(".onnx", written)]


def test_other_weights_have_another_graph(tmp_path: Path) -> None:
    for folder in (tmp_path / "one", tmp_path / "other"):
        write_small_bert(folder, layer_norm_eps=1e-5 if folder.name == "one" else 1e-6)
        small(folder, tmp_path / "kept").embed(["a cat"], deadline_seconds=None)

    assert len(list((tmp_path / "kept").iterdir())) == 2


def test_the_graph_is_stored_in_the_first_writable_folder(tmp_path: Path) -> None:
    folder = read_model_folder(write_small_bert(tmp_path / "model"))
    blocked = tmp_path / "a file, no folder"
    blocked.touch()

    graph = find_or_build_graph(folder, [blocked / "models", tmp_path / "cache"])

    assert isinstance(graph, Path)
    assert graph.parent == tmp_path / "cache"


def test_the_model_runs_where_no_folder_takes_its_graph(tmp_path: Path) -> None:
    folder = write_small_bert(tmp_path / "model")
    blocked = tmp_path / "a file, no folder"
    blocked.touch()

    vectors = small(folder, blocked / "models").embed(["a cat"], deadline_seconds=None)

    np.testing.assert_array_equal(vectors, small(folder, tmp_path).embed(["a cat"], deadline_seconds=None))


@pytest.mark.parametrize("damage", [b"", b"not a graph", None], ids=["emptied", "overwritten", "cut short"])
def test_a_damaged_graph_is_rebuilt(tmp_path: Path, damage: bytes | None) -> None:
    folder = write_small_bert(tmp_path / "model")
    expected = small(folder, tmp_path / "kept").embed(["a cat"], deadline_seconds=None)
    (graph,) = (tmp_path / "kept").iterdir()
    graph.write_bytes(graph.read_bytes()[:3000] if damage is None else damage)

    np.testing.assert_array_equal(small(folder, tmp_path / "kept").embed(["a cat"], deadline_seconds=None), expected)


@pytest.mark.slow
def test_processes_that_start_together_build_a_whole_graph(tmp_path: Path) -> None:
    folder = write_small_bert(tmp_path / "model")

    with multiprocessing.get_context("spawn").Pool(3) as pool:
        answers = pool.starmap(embed_elsewhere, [(folder, tmp_path / "kept")] * 3, chunksize=1)

    assert len(set(answers)) == 1
    assert [file.suffix for file in (tmp_path / "kept").iterdir()] == [".onnx"]


def embed_elsewhere(folder: Path, kept_in: Path) -> bytes:
    return small(folder, kept_in).embed(["a cat"], deadline_seconds=None).tobytes()


def test_a_worker_forked_after_first_use_loads_a_model_of_its_own(tmp_path: Path) -> None:
    folder = write_small_bert(tmp_path / "model")
    provider = LocalEmbeddings(folder, model="small", kept_in=[tmp_path], threads=2)
    expected = provider.embed(["a cat"], deadline_seconds=None)

    child = multiprocessing.get_context("fork").Process(target=exit_if_same, args=(provider, expected))
    child.start()
    child.join(timeout=30)
    child.kill()

    assert child.exitcode == 0


def exit_if_same(provider: LocalEmbeddings, expected: Vectors) -> None:
    sys.exit(0 if np.array_equal(provider.embed(["a cat"], deadline_seconds=None), expected) else 1)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_folder_that_lacks_a_file_is_refused_by_its_name(tmp_path: Path, name: str) -> None:
    folder = write_small_bert(tmp_path / "model")
    (folder / name).unlink()

    with pytest.raises(ImproperlyConfigured, match=name):
        small(folder, tmp_path)


@pytest.mark.parametrize(
    "config",
    [
        {"model_type": "roberta"},
        {"hidden_act": "relu"},
        {"position_embedding_type": "relative_key"},
        {"hidden_size": "wide"},
        {"num_attention_heads": None},
    ],
    ids=str,
)
def test_a_folder_of_another_architecture_is_refused(tmp_path: Path, config: dict[str, object]) -> None:
    folder = write_small_bert(tmp_path / "model", **config)  # type: ignore[arg-type]

    with pytest.raises(ImproperlyConfigured, match="no BERT or XLM-R model that is supported"):
        small(folder, tmp_path)


@pytest.mark.parametrize("content", ["[]", "{", "\x00"])
def test_a_folder_with_an_invalid_configuration_is_refused(tmp_path: Path, content: str) -> None:
    folder = write_small_bert(tmp_path / "model")
    (folder / "config.json").write_text(content)

    with pytest.raises(ImproperlyConfigured, match=r"config\.json"):
        small(folder, tmp_path)


def test_a_folder_that_pools_otherwise_is_refused(tmp_path: Path) -> None:
    folder = write_small_bert(tmp_path / "model", pooling="max_tokens")

    with pytest.raises(ImproperlyConfigured, match="mean or cls"):
        small(folder, tmp_path)


def test_weights_that_do_not_match_the_configuration_are_refused(tmp_path: Path) -> None:
    folder = write_small_bert(tmp_path / "model", num_hidden_layers=3)

    with pytest.raises(ImproperlyConfigured, match=r"encoder\.layer\.2"):
        small(folder, tmp_path).embed(["a cat"], deadline_seconds=None)


def test_the_token_limit_of_a_model_folder_is_read(tmp_path: Path) -> None:
    folder = write_small_bert(tmp_path / "model")
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 5}))

    assert read_model_folder(folder).max_tokens == 5


@pytest.mark.parametrize("text", ["", *SENTENCES, "word " * 600])
def test_counted_tokens_cover_the_whole_text_without_special_tokens(minilm: LocalEmbeddings, text: str) -> None:
    # [CLS] and [SEP] are no tokens of the text
    assert minilm.count_tokens(text) == len(token_ids(find_bundled_folder(), text)) - 2
