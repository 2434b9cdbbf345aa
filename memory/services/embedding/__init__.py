"""Embedding: texts become vectors, for writers, searches and the queue; and the indexes over the vectors.

- `embed`: `embed_texts` and `embed_questions` with cache and deadline; `EmbeddingBudget` for commands that embed much.
- `serving`: `serving_model` is the model that serves searches, as the database says; take it once per search.
- `change`: `plan_change`, `start_change`, `request_abort`, `request_finish`, `find_status` for operators; the switch.
- `reembed`: `continue_change` does the next batch of a change of the model; run by a job.
- `queue`: `embed_pending` embeds the rows that have no vector yet; run by a job.
- `passages`: `add_passages` embeds the passages of long memories that lack them; run by a job.
- `vector_index`: builds and drops indexes over a model's vectors, HNSW or IVFFlat.
- `account_indexes`: decides which large accounts have an index of their own; run by a job.

To add an index method, write a class with the methods of `vector_index.IndexMethod`.
"""
