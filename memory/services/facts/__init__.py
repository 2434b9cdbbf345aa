"""Facts (X3, B3): claims with a period in which they are true, and a history of what was believed and when.

- `learn`: `learn_fact`, `learn_facts` store claims, or confirm those that are known already.
- `store`: `visible_facts`, `list_facts`, `find_fact`, `read_visible_history` read; `revise_beliefs` and `end_beliefs`
  write versions; `lock_for_reference` and `lock_for_change` lock what facts refer to.
- `supersede`: `supersede_fact`, `replace_wrong_fact`, `correct_fact`, `retract_fact`, `reject_fact`.
- `reopen`: `reopen_superseded` believes again what a retracted, rejected or erased fact superseded.
- `lock`: `lock_facts`, `lock_fact_with_copies` lock what changes; `copies`: which copies in `_global` follow a change.
- `contradict`: `find_contradicted` finds what a claim contradicts by subject and attribute; `learn_consistent_fact`
  learns a fact and treats what it contradicts as its caller or the account says.
- `review`: `find_rivals`, `prefer_new`, `open_review`, `decide_review` handle facts that contradict each other.
- `repair`: `resolve_disputed_key` and `resolve_denial` end or review contradictions that were stored before.
- `globalize`: `globalize_fact`, `globalize_facts` copy facts of a project's channel to `_global`.
- `tombstones`: `find_equal_claims` finds what is rejected with a fact; `find_tombstones`, `add_tombstone` and
  `lift_tombstone` keep rejected claims from being learned again.

A new way to change a fact belongs in `supersede`: lock with `lock_facts`, then write through `store`, which keeps the
versions.
"""
