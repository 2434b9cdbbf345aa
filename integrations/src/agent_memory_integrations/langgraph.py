"""A LangGraph store: `graph.compile(store=AgentMemoryStore(client))`.

Items are keyed entries of one persistent context of the service. A batch is one request for what it reads, and one for
what it writes. Reads see what was stored before the batch; of several puts of one key, the last one wins.
"""

import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, cast

from agent_memory_client import AgentMemoryError, Client
from langgraph.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    ensure_embeddings,
    get_text_at_path,
    validate_op_namespace,
)

from agent_memory_integrations.contexts import NamedContext
from agent_memory_integrations.item_pages import MAX_ITEMS, ItemPages, is_cut

DEFAULT_FIELDS = ["$"]
SECONDS_PER_MINUTE = 60.0
MAX_QUESTIONS = 50
"""Searches, and lists of namespaces, of one request."""
MAX_PATH_CHARACTERS = 200
ENCODED = re.compile(r"[%\x00-\x1f\x7f-\x9f]")
Vectors = Mapping[str, Sequence[float]]
"""The embeddings of texts, made in this process."""


class AgentMemoryStore(BaseStore):
    """A `BaseStore` whose items are in the agent memory service.

    Without `index`, the service embeds the whole value of each item with its own model. `index={"fields": [...]}` names
    the fields to embed, each by itself, and `index={"embed": …, "dims": …}` embeds in this process instead, under the
    name `embedding_model`; an asynchronous `embed` is for the asynchronous methods. False embeds nothing, so that
    queries are ignored. Expired items are never returned (`omit_expired`), and need no sweeper.
    """

    supports_ttl = True

    def __init__(
        self,
        client: Client,
        *,
        context: str = "langgraph",
        scope: str = "agent",
        index: IndexConfig | Literal[False] | None = None,
        embedding_model: str = "",
        ttl: TTLConfig | None = None,
    ) -> None:
        self.client = client
        self.ttl_config = ttl
        self.index_config = index if index is False else {**(index or {})}
        self._context = NamedContext(client, context, scope=scope)
        given = {} if index is False else cast("dict[str, Any]", index or {})
        self._fields = given.get("fields") or DEFAULT_FIELDS
        self._embeddings = ensure_embeddings(given["embed"]) if given.get("embed") else None
        self._model = embedding_model or f"langgraph:{given.get('dims', '')}" if self._embeddings else ""

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations: all reads in one request, then all writes in another one; large batches in several."""
        prepared = prepare_ops(ops)
        texts = self._list_embedded(prepared)
        vectors = self._embeddings.embed_documents(texts) if self._embeddings and texts else []
        return self._execute(prepared, dict(zip(texts, vectors, strict=True)))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations: the embeddings are awaited, and the requests are sent in a thread."""
        prepared = prepare_ops(ops)
        texts = self._list_embedded(prepared)
        vectors = await self._embeddings.aembed_documents(texts) if self._embeddings and texts else []
        return await asyncio.to_thread(self._execute, prepared, dict(zip(texts, vectors, strict=True)))

    def _execute(self, listed: Sequence[Op], vectors: Vectors) -> list[Result]:
        results: list[Result] = [None] * len(listed)
        reads = [(at, op) for at, op in enumerate(listed) if not isinstance(op, PutOp)]
        if reads:
            for chunk in divide_reads(reads):
                for (at, _), result in zip(chunk, self._read([op for _, op in chunk], vectors), strict=True):
                    results[at] = result
        puts = list_last_puts(listed)
        for start in range(0, len(puts), MAX_ITEMS):
            self._write(puts[start : start + MAX_ITEMS], vectors)
        return results

    def _list_embedded(self, ops: Sequence[Op]) -> list[str]:
        """Return the texts that this process embeds, each once: queries, and what searches compare with them."""
        if self._embeddings is None:
            return []
        asked = [op.query for op in ops if isinstance(op, SearchOp) and op.query]
        stored = [text for op in list_last_puts(ops) for text in self._list_texts(op)]
        return list(dict.fromkeys([*asked, *stored]))

    def _read(self, ops: Sequence[Op], vectors: Vectors) -> list[Result]:
        gets = [op for op in ops if isinstance(op, GetOp) and may_exist(op)]
        searches = [op for op in ops if isinstance(op, SearchOp)]
        lists = [op for op in ops if isinstance(op, ListNamespacesOp)]
        found = self._context.query(
            reads=[{"namespace": op.namespace, "key": op.key, "refresh_ttl": op.refresh_ttl} for op in gets],
            searches=self._make_searches(searches, vectors),
            namespaces=[make_namespace_question(op) for op in lists],
            **({"embedding_model": self._model} if self._model else {}),
        )
        if found is None:
            return [None if isinstance(op, GetOp) else [] for op in ops]
        if is_cut(found):
            return self._read_parts(ops, vectors)
        answers: dict[type, Iterator[Any]] = {
            GetOp: iter(found["reads"]),
            SearchOp: iter(found["searches"]),
            ListNamespacesOp: iter(found["namespaces"]),
        }
        return [
            None if isinstance(op, GetOp) and not may_exist(op) else make_result(op, next(answers[type(op)]))
            for op in ops
        ]

    def _read_parts(self, ops: Sequence[Op], vectors: Vectors) -> list[Result]:
        """Read what one answer has no room for: half of the operations at a time, and one search in pages."""
        if len(ops) > 1:
            half = len(ops) // 2
            return [*self._read(ops[:half], vectors), *self._read(ops[half:], vectors)]
        [op] = ops
        if not isinstance(op, SearchOp):
            raise AgentMemoryError("An item is longer than an answer of the service may be.")
        [search] = self._make_searches([op], vectors)
        pages, items = ItemPages(search, wanted=op.limit), []
        model: dict[str, Any] = {"embedding_model": self._model} if self._model else {}
        while (asked := pages.next_search()) and (found := self._context.query(searches=[asked], **model)):
            items += pages.read_items(found)
        return [make_result(op, {"items": items})]

    def _make_searches(self, ops: Sequence[SearchOp], vectors: Vectors) -> list[dict[str, Any]]:
        questions = [make_question(op) for op in ops]
        for op, question in zip(ops, questions, strict=True):
            if op.query and self._embeddings:
                question["query_embedding"] = vectors[op.query]
            elif op.query and self.index_config is not False:
                question["query"] = op.query
        return questions

    def _write(self, ops: Sequence[PutOp], vectors: Vectors) -> None:
        items = [self._make_item(op, op.value, vectors) for op in ops if op.value is not None]
        gone = [{"namespace": op.namespace, "key": str(op.key)} for op in ops if op.value is None]
        model = {"embedding_model": self._model} if self._model else {}
        # items are of the agent, whatever user the client names: a graph keeps those of several users
        self._context.write(items=items, deleted=gone, user_id=None, **model)

    def _make_item(self, op: PutOp, value: Mapping[str, Any], vectors: Vectors) -> dict[str, Any]:
        texts = self._list_texts(op)
        item: dict[str, Any] = {"namespace": op.namespace, "key": str(op.key), "value": dict(value), "texts": texts}
        if self._embeddings:
            item["embeddings"] = [vectors[text] for text in texts]
        return item if op.ttl is None else item | {"ttl_seconds": op.ttl * SECONDS_PER_MINUTE}

    def _list_texts(self, op: PutOp) -> list[str]:
        """Return the texts that searches compare. Each is compared by itself."""
        if self.index_config is False or op.index is False or op.value is None:
            return []
        return [text for path in op.index or self._fields for text in get_text_at_path(op.value, path) if text.strip()]


@dataclass(slots=True)
class ReadChunk:
    """Reads of one request, and how much of it they take."""

    reads: list[tuple[int, Op]] = field(default_factory=list)
    items: int = 0
    questions: int = 0


def prepare_ops(ops: Iterable[Op]) -> list[Op]:
    """Return operations as a list. Raises InvalidNamespaceError for a namespace that cannot be."""
    listed = list(ops)
    for op in listed:
        validate_op_namespace(op)
    return listed


def list_last_puts(ops: Iterable[Op]) -> list[PutOp]:
    """Return the writes that count: of several of one key, the last one."""
    return list({(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}.values())


def divide_reads(reads: Sequence[tuple[int, Op]]) -> list[list[tuple[int, Op]]]:
    """Return the reads as parts that the service answers in one request each."""
    chunks = [ReadChunk()]
    for at, op in reads:
        items = op.limit if isinstance(op, SearchOp) else int(isinstance(op, GetOp))
        last = chunks[-1]
        if last.reads and (last.items + items > MAX_ITEMS or last.questions == MAX_QUESTIONS):
            chunks.append(ReadChunk())
        last = chunks[-1]
        last.reads.append((at, op))
        last.items += items
        last.questions += not isinstance(op, GetOp)
    return [chunk.reads for chunk in chunks]


def may_exist(op: GetOp) -> bool:
    """Return False for a key that the service cannot have: empty, or too long with its namespace."""
    text = ".".join(label.replace("/", "%") for label in op.namespace) + "/" + str(op.key)
    encoded = sum(3 * len(char.encode()) - 1 for char in ENCODED.findall(text))
    return bool(op.key) and len(text) + encoded <= MAX_PATH_CHARACTERS


def make_question(op: SearchOp) -> dict[str, Any]:
    question: dict[str, Any] = {
        "namespace_prefix": op.namespace_prefix,
        "limit": op.limit,
        "offset": op.offset,
        "refresh_ttl": op.refresh_ttl,
    }
    return question | ({"filter": op.filter} if op.filter else {})


def make_namespace_question(op: ListNamespacesOp) -> dict[str, Any]:
    conditions = op.match_conditions or ()
    return {
        "prefixes": [list(each.path) for each in conditions if each.match_type == "prefix"],
        "suffixes": [list(each.path) for each in conditions if each.match_type == "suffix"],
        "max_depth": op.max_depth,
        "limit": op.limit,
        "offset": op.offset,
    }


def make_result(op: Op, answer: Any) -> Result:
    """Return what an operation answers, from its part of the service's answer."""
    if isinstance(op, ListNamespacesOp):
        return [tuple(labels) for labels in answer]
    if isinstance(op, SearchOp):
        return [SearchItem(**read_fields(each), score=each["score"]) for each in answer["items"]]
    return None if answer is None else Item(**read_fields(answer))


def read_fields(item: Mapping[str, Any]) -> dict[str, Any]:
    value = item["value"]
    return {
        "namespace": tuple(item["namespace"]),
        "key": item["key"],
        # an entry that was stored by other means may be anything
        "value": value if isinstance(value, dict) else {"value": value},
        "created_at": datetime.fromisoformat(item["created_at"]),
        "updated_at": datetime.fromisoformat(item["updated_at"]),
    }
