"""Accounts and what belongs to them: agents, teams, API keys, the language; and access checks on shared rows.

- `register`: `find_account`, `create_agent`, `register_agent`, `create_team`, `add_member`, `issue_key`, `revoke_keys`.
- `access`: `check_version`, `check_author`, `change_grant`, `raise_write_refused`, used by services of shared rows.
- `language`: `set_language`, `reindex_texts`.

A change of an account's rows belongs in `register`, with `record_audit` in the same transaction.
"""
