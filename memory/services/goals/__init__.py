"""Goals (X6): what a user or agent works towards, their parts, and the goals that they wait for.

- `plan`: `add_goal`, `change_goal`, `block_goal`, `unblock_goal`, `complete_goal`, `delete_goal`; for staff also
  `erase_goal` and `delete_goal_link`.
- `store`: `get_goal`, `active_goals`, `goals_in_channels`, `find_goals`, `find_goal` read; the rest locks, links and
  saves rows, and derives their status.

A new way to change a goal belongs in `plan`. If it adds or removes links or closes a goal, it calls `lock_goal_graph`
first and `recompute_status` last.
"""
