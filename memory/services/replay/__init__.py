"""`/replay` (E8): the smallest slice of what was done for a goal, record, work episode or decision that answers.

- `replay`: `replay` returns a `ReplaySlice`, `conclude_replay` counts its reads. Finds what there is to replay of each
  target, in layers of candidates; unseals raw traces and audits that.
- `candidates`: `ReplayRequest`, what may be read of slots, episodes and traces, and what fits into the token budget.

To add a target, add its field to `ReplayRequest` and to `check_replay_request`, and return its `TargetMaterial` from
`replay.find_target_material`.
"""
