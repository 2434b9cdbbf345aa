"""Embedding: texts become vectors, for writers, searches and the queue; and the indexes over the vectors.

- `embed`: `embed_texts` and `embed_questions` with cache and deadline; `EmbeddingBudget` for commands that embed much.
- `queue`: `embed_pending` embeds the rows that have no vector yet; run by a job.
- `passages`: `add_passages` embeds the passages of long memories that lack them; run by a job.
- `vector_index`: builds and drops indexes over a model's vectors, HNSW or IVFFlat.
- `account_indexes`: decides which large accounts have an index of their own; run by a job.

To add an index method, write a class with the methods of `vector_index.IndexMethod`.
"""
