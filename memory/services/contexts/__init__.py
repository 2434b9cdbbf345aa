"""Persistent contexts: named containers of versioned entries that agents keep for themselves or share.

- `manage`: create, find, lock, change, archive, share and delete contexts; `ensure_own_context` is the context of an
  agent's long-term memory; `lock_keyed_entries` and `find_keyed_value` find entries by key.
- `aliases`: keys of entries that were merged into others: `list_aliases`, `remove_alias`.
- `entries`: `store_entries`, `update_entry_content`, `restore_version`, `boost_importance`, `remove_entry`, …
- `versions`: writes entry columns and versions; applies staff corrections to them.
- `search`: `find_entries`, a recall of entries alone; `store_fact`, `search_facts`: facts in an agent's own context.
- `snapshots`: `create_snapshot`, `preview_restore`, `restore_snapshot`.
- `access_log`: which agent read or wrote which entry, when.
- `rot`: archives stale entries (context rot); run by a job.

Every write locks the context first, then its entries in the order of their ids. To add an operation on entries, write
it in `entries`: call `lock_entry`, then `record_writes` in the same transaction.
"""
