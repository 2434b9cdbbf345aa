import subprocess
import sys

import numpy as np
import pytest

from memory.providers.embeddings.tiny import TinyEmbeddings


def test_rows_have_the_width_asked_for_and_length_one() -> None:
    vectors = TinyEmbeddings(width=32).embed(["one text", "another", "!?", "語"], deadline_seconds=None)

    assert vectors.shape == (4, 32)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)


def test_texts_that_share_words_are_nearer() -> None:
    question, near, far = TinyEmbeddings().embed(
        ["where is the red lamp", "the red lamp is in the cellar", "tomatoes need sun"], deadline_seconds=None
    )

    assert question @ near > question @ far + 0.2


@pytest.mark.slow
def test_the_same_text_has_the_same_vector_in_every_process() -> None:
    program = (
        "from memory.providers.embeddings.tiny import TinyEmbeddings;"
        "print(TinyEmbeddings().embed(['a text'], deadline_seconds=None).tobytes().hex())"
    )
    elsewhere = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)

    here = TinyEmbeddings().embed(["a text"], deadline_seconds=None)

    assert elsewhere.stdout.strip() == here.tobytes().hex()


def test_embedding_no_texts_returns_no_rows() -> None:
    assert TinyEmbeddings().embed([], deadline_seconds=None).shape == (0, 64)


@pytest.mark.parametrize("text", ["", "  \n", "\udfff"])
def test_a_text_without_meaning_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="text 0"):
        TinyEmbeddings().embed([text], deadline_seconds=None)
