"""Bulk changes: one action on many rows of an account, previewed by staff, with a reason, resumable and undoable.

- `actions`: `BulkAction`, `register_action`, `find_action`; `change_each` and `change_memories` help to write one
- `run`: `request_bulk_change`, `continue_bulk_change`, `stop_bulk_change`, `request_undo`

The admin declares the actions next to its lists (`memory.admin.bulk`), and every process that loads the admin knows
them: the web for small selections, the job `change_in_bulk` for the others.
"""
