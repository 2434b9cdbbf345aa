"""Conversations: their life from the first write to erasure, their work queues, import and export.

- `lifecycle`: `find_conversation`, `create_conversation`, `open_conversation`, `change_conversation`, and locks
- `end`: `end_conversation`, and what clears the live side of a conversation
- `lineage`: `read_conversation_lineage`
- `queue`: the queues of summaries and extraction, which `services.summaries` and `services.extraction` process
- `import_files`, `export`: JSON Lines in and out
- `staff_edits`: archive, retry and erase, for the admin

To add a work queue, add its columns to `Conversation`, describe them with a `queue.ConversationQueue`, and process its
claims with a `queue.ClaimWorker`.
"""
