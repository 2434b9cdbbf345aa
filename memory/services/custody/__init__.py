"""Custody: what is erased for good, what follows from it, and the proof of it.

- `memories`: `erase_derived` erases memories with all that hangs on them and what was derived from them alone;
  `find_derived` says what would go
- `traces`: `erase_traces` erases what says something about memories elsewhere: kept answers, audited texts, histories
- `conversations`: `erase_conversation`, `erase_turn`
- `stores`: the registry of tables, by what erasing a user does to each
- `histories`: what the history of the admin says of erased rows and users
- `naming`: `Naming` finds a user id in texts of others
- `sealed`: encrypted values of others that name a user
- `steps`: the steps of erasing a user or what a filter finds, each a batch
- `subjects`: `preview_subject`, `request_subject`, `preview_filter`, `request_filter`, `continue_erasure`,
  `readmit_user`, `verify_receipt`
- `single`: erasing what has an id; `preview_memory` and `preview_conversation` say what that would erase
- `marks`: `refuse_erased_user`, and the signatures

A new table needs a rule in `stores`, and a new key of Redis one in tests/memory/services/custody/test_stores.py, which
says what lacks one. docs/custody.md has the rules in words.
"""
