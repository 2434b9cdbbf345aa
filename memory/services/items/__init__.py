"""Items: keyed entries of a persistent context under namespaces, as stores of agent frameworks have them.

An item is an entry whose key is a path: `users.ana/prefs` is the item `prefs` in the namespace `("users", "ana")`.
So it has versions, vectors, access rules and erasure like every entry. Deduplication and context rot leave it alone.

- `paths`: keys of entries from namespaces and keys, and back.
- `store`: `store_items` writes and deletes many items at once.
- `query`: `read_items`, `search_items` and `list_namespaces` read them; `embed_queries` makes the vectors of searches.
- `filters`: conditions on members of the values.
"""
