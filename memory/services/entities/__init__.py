"""Entities: the people, places and things that memories mention, their names, and the relationships between them.

- `learn`: `upsert_entity`, `upsert_entities`, `upsert_entities_leniently` find entities by name or create them.
- `resolve`: finds the entity that a name stands for, exactly or as a misspelling; `lock_holder` serializes writers.
- `store`: `visible_entities`, `list_entities`, `find_entity` read; the rest locks and updates rows.
- `change`: `change_entity`, `remove_entity`.
- `merge`: `merge_entities`, `split_entity`; `relink` moves their links and details.
- `relate`: `create_relationship`, `create_relationships`, `delete_relationship`, `explore_graph`.
- `structure`: `add_structure`, the relations to conversations, users and tools.

A new way to change an entity belongs in `change`: lock with `lock_own_entity`, write with `update_changed_entities`.
"""
