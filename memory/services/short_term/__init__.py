"""Short-term memory: values that an agent keeps for some hours under a key of a session.

- `keep`: `store_entry`, `read_entry`, `find_entry_by_id`, `refresh_entry`, `delete_entry`; `correct_entry` for staff.
- `promote`: `promote_session_entries` and `promote_in_batches` copy entries that were read often into the agent's
  long-term memory.

To add an operation on one entry, write it in `keep`, with `record_entry_change` in the same transaction.
"""
