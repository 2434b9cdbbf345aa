"""Embeddings from a folder of weights on this machine: no key, no network."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnxruntime.capi import onnxruntime_pybind11_state as runtime_errors
from tokenizers import Tokenizer

from memory.errors import ProviderUnavailable
from memory.providers.connections import Deadline
from memory.providers.embeddings.base import TextPrefixes, Vectors, mean_of_chunks, normalized_rows, refuse_unembeddable
from memory.providers.processes import PerProcess
from memory_project.embedded.models import TOKENIZER, find_or_build_graph, read_model_folder

# padded tokens in one run: larger batches measured no faster, and the deadline is looked at between runs
MAX_TOKENS_PER_RUN = 2048
# a text goes to the tokenizer in parts, for the same reason: a megabyte takes it a second
MAX_CHARACTERS_AT_ONCE = 50_000
UNREADABLE_GRAPH = (
    runtime_errors.Fail,
    runtime_errors.InvalidArgument,
    runtime_errors.InvalidGraph,
    runtime_errors.InvalidProtobuf,
)
FAILED_RUN = (runtime_errors.Fail, runtime_errors.RuntimeException)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenChunk:
    """A part of a text that the model reads at once."""

    text: int
    tokens: tuple[int, ...]


class LocalEmbeddings:
    """Runs BERT models by onnxruntime; thread-safe. Weights are loaded at first use, once in each process.

    A text longer than the model reads at once (256 tokens for MiniLM) is cut into chunks, and its vector is
    the normalized mean of theirs, weighted by their tokens. Pooling is the mean of the tokens or [CLS], as
    the folder says.
    """

    max_batch = 32

    def __init__(self, folder: Path, *, model: str, kept_in: Sequence[Path], threads: int = 1) -> None:
        """Read the model folder. `kept_in`: folders for the graph, best first. Raises ImproperlyConfigured."""
        self.model = model
        self._folder = read_model_folder(folder)
        self._kept_in = tuple(kept_in)
        self._threads = threads
        # one thread is the caller's
        self._session = PerProcess(self._open_session, survives_fork=threads == 1)
        self._tokenizer = PerProcess(self._open_tokenizer, survives_fork=True)

    @property
    def prefixes(self) -> TextPrefixes:
        """The prefixes that the folder states. `embed` takes texts that have theirs."""
        return TextPrefixes(query=self._folder.query_prefix, passage=self._folder.passage_prefix)

    @property
    def width(self) -> int:
        return self._folder.shape.hidden

    def find_width(self, *, deadline_seconds: float | None) -> int:
        """Return the width that the folder states; the deadline is never needed."""
        return self.width

    def embed(self, texts: Sequence[str], *, deadline_seconds: float | None) -> Vectors:
        """Return the vectors. May exceed the deadline by one run of the model, a fraction of a second."""
        refuse_unembeddable(texts)
        deadline = Deadline.after(deadline_seconds)
        if not texts:
            return np.empty((0, self.width), dtype=np.float32)
        chunks = [chunk for number, text in enumerate(texts) for chunk in self._cut(number, text, deadline)]
        # texts of like length meet in a run, so little of it is padding
        by_length = sorted(range(len(chunks)), key=lambda at: len(chunks[at].tokens))
        vectors = np.empty((len(chunks), self.width), dtype=np.float32)
        for batch in cut_into_runs(by_length, [len(chunk.tokens) for chunk in chunks], most=self.max_batch):
            vectors[batch] = self._run([chunks[at].tokens for at in batch], deadline)
        return mean_of_chunks(
            normalized_rows(vectors),
            text_of_chunk=[chunk.text for chunk in chunks],
            lengths=[len(chunk.tokens) for chunk in chunks],
        )

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens of the whole text, without the markers of its beginning and end."""
        parts = (text[start : start + MAX_CHARACTERS_AT_ONCE] for start in range(0, len(text), MAX_CHARACTERS_AT_ONCE))
        encoded = (self._tokenizer.get().encode(part, add_special_tokens=False) for part in parts)
        return sum(len(piece.ids) for whole in encoded for piece in (whole, *whole.overflowing))

    def _cut(self, number: int, text: str, deadline: Deadline) -> Iterator[TokenChunk]:
        for start in range(0, len(text), MAX_CHARACTERS_AT_ONCE):
            deadline.remaining_seconds(at_most=0)
            part = text[start : start + MAX_CHARACTERS_AT_ONCE]
            if part.strip():
                # one by one: `encode_batch` starts threads of its own, which do not survive the fork of a worker
                whole = self._tokenizer.get().encode(part)
                yield from (TokenChunk(text=number, tokens=tuple(piece.ids)) for piece in (whole, *whole.overflowing))

    def _run(self, batch: Sequence[tuple[int, ...]], deadline: Deadline) -> Vectors:
        deadline.remaining_seconds(at_most=0)
        longest = max(len(tokens) for tokens in batch)
        input_ids = np.full((len(batch), longest), self._folder.pads_with, dtype=np.int64)
        mask = np.zeros_like(input_ids)
        for row, tokens in enumerate(batch):
            input_ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        try:
            (outputs,) = self._session.get().run(None, {"input_ids": input_ids, "attention_mask": mask})
        except FAILED_RUN as err:
            raise ProviderUnavailable(f"the local model failed on a batch of {input_ids.shape}") from err
        return pool_by_mean(outputs, mask) if self._folder.pools_by_mean else outputs[:, 0]

    def _open_tokenizer(self) -> Tokenizer:
        tokenizer = Tokenizer.from_file(str(self._folder.path / TOKENIZER))
        # the file may ask for padding or shorter texts, as it was used in training
        tokenizer.no_padding()
        tokenizer.enable_truncation(max_length=self._folder.max_tokens)
        return tokenizer

    def _open_session(self) -> onnxruntime.InferenceSession:
        try:
            graph = find_or_build_graph(self._folder, self._kept_in)
            return self._start(graph)
        except UNREADABLE_GRAPH as err:
            if isinstance(graph, bytes):
                raise ProviderUnavailable("onnxruntime cannot run the local model's graph") from err
            graph.unlink(missing_ok=True)
            return self._start(find_or_build_graph(self._folder, self._kept_in))
        except OSError as err:
            raise ProviderUnavailable(f"the local model cannot be read: {err.strerror}") from err

    def _start(self, graph: Path | bytes) -> onnxruntime.InferenceSession:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self._threads
        # waiting threads sleep instead of spinning: this process has requests to answer
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        source: Any = graph if isinstance(graph, bytes) else str(graph)
        return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def cut_into_runs(by_length: Sequence[int], lengths: Sequence[int], *, most: int) -> Iterator[list[int]]:
    """Yield runs of neighbours in `by_length` (shortest first): at most `most`, and MAX_TOKENS_PER_RUN with padding."""
    run: list[int] = []
    for at in by_length:
        if run and (len(run) == most or (len(run) + 1) * lengths[at] > MAX_TOKENS_PER_RUN):
            yield run
            run = []
        run.append(at)
    if run:
        yield run


def pool_by_mean(outputs: Vectors, mask: NDArray[np.int64]) -> Vectors:
    """Return the mean of the token vectors; padding does not count."""
    present = mask[:, :, None].astype(np.float32)
    mean: Vectors = (outputs * present).sum(axis=1) / present.sum(axis=1)
    return mean
