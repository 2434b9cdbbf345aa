"""Figures, alerts and upkeep for operators of the installation.

- `account_figures`: `read_account_figures`, `count_memories_by_kind`, `count_vectors`: bounded figures.
- `alerts`: `find_alerts`, what is behind or broken now.
- `canary`: `check_keys` at the start of a process; `compare_keys`, `replace_canary`: whether the
  keys are those of the database.
- `jobs`: `request_run`, `schedule_run`: queue runs of jobs.
- `samples`: the job `measure` stores figures over time; `read_samples` and others read them for the dashboard.
- `statistics`: `gather_statistics`, what is stored and how much of it.
- `usage`: `record_usage`, what language models cost an account.
- `reseal`: encrypts sealed columns again after a key rotation.

To add an alert, see `alerts`; to add a sampled figure, see `samples`.
"""
