"""Accounts and what belongs to them: agents, teams, API keys, the language; and access checks on shared rows.

- `register`: `find_account`, `create_agent`, `register_agent`, `create_team`, `add_member`, `issue_key`, `rotate_key`,
  `revoke_keys`. `set_language` and `reindex_texts` change the language of an account.
- `access`: `check_version`, `check_author`, `raise_write_refused`, `save_shared_row`, used by services of shared rows.

A change of an account's rows belongs in `register`, with `record_audit` in the same transaction.
"""
