"""Transfer: the archive of an account, an agent or a user, written and read back (docs/transfer.md).

- `rules`: the registry of tables, by what an archive has of each, and the columns and references of those it has
- `selection`: the rows of an account, an agent or a user
- `export`: `export_archive` writes the zip, from a connection that reads at one moment
- `archive`: `open_archive` checks a zip as a whole before anything of it is stored
- `redis_lines`: the keys of Redis as lines
- `ledgers`: the journal of injections, and the ledgers that follow it
- `remap`: new ids where the installation has the archive's in another account
- `store`: stores a batch of rows
- `load`: `load_archive` stores what an archive has, resumable
- `transfers`: `request_export`, `request_import` and `run_transfer`, for requests and the job `transfer`

A new table needs a rule in `rules`: tests/memory/services/transfer/test_rules.py says which lack one.
"""
