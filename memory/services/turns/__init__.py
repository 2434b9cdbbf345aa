"""Turns, which are the log of a conversation.

- `store`: `store_turns`, `store_turn_stream`, `append_turns`, `turns_of_conversation`, `get_conversation`,
  `get_recent_turns`
- `lifecycle`: hooks for turns that are corrected, quarantined or released

To add a column, extend `store.TurnDraft` and `store.build_turn`; for imports and exports, also
`services.conversations.import_files` and `export`.
"""
