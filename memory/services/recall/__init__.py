"""Recall (X8, X9): from a question to memories, for all edges. Embeds the question, searches, counts the reads.

- `recall`: `recall` searches all kinds (`RecallRequest` -> `Bundle`), `conclude_recall` counts and logs the reads.
  `search_episodes_by_text`, `search_helpful_episodes`, `search_turns_by_text` search one kind; `embed_search_query`,
  `record_search` help others.
- `search`: `search_memories`, a recall with all columns of what it finds.
- `term_statistics`: `fold_terms` keeps the word counts small that a search by words uses; run by a job.

The search itself is `memory.retrieval`, which writes nothing: to add a retriever, scorer or technique, see there. A new
field of a request belongs in `RecallRequest`, and is applied in `prepare_query`.
"""
