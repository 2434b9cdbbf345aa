"""Work episodes (E5): memories that stand for adjacent records of one goal, made by `services.compression`.

- `read`: `visible_work_episodes`, `view_work_episode`, `redacted_view`
- `propagate`: what corrections and erasures of slots, episodes, goals and artifacts change in episodes and records, and
  the hooks that run it: `WorkLifecycle`, `MentionLifecycle`

To show another part of an episode's data under a shallow policy, add it to `read.DATA_LABELS`. To have episodes follow
the names of another kind, name `MentionLifecycle` in its `KindSpec` and extend `propagate.read_current_names`.
"""
