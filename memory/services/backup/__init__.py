"""Backups of an installation: PostgreSQL, what must last of Redis, and the keys, in a folder.

- `create`: `create_backup` writes a backup of the moment at which its snapshot of PostgreSQL was taken.
- `restore`: `plan_restore` verifies a backup and says what it would replace; `restore_backup` restores it.
- `manifest`: what is in a backup, with versions, counts and digests; `BackupError`, whose text is for people.
- `database`, `live`, `keys`: the three parts.

To add a part: a file's name in `manifest`, a writer and a reader, called by `create` and `restore`.
"""
