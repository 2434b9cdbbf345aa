"""Operations on memories of any kind.

- `store`: `store_memories` stores new ones, `update_texts` replaces texts, `validate_vector` checks vectors of
  clients.
- `links`: `insert_links` links memories.
- `correct`: `correct_memory`, `mark_memories`, `delete_memories` and `queue_for_embedding`, for staff.
- `trust`: `least_trust` and `least_trust_of_conversations`, for what is derived from turns without links to them.
- `decay`: `decay_rows` lowers what nobody reads, `reinforce` counts reads.
- `lifecycle`: `Lifecycle`, by which a kind takes part in corrections, marks and erasures.

To add a kind of memory, see `memory.kinds`.
"""
