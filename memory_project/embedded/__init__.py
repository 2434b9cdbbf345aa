"""PostgreSQL and Valkey out of wheels, for a machine that has neither.

Nothing here imports Django: it runs before the settings load, and only sets the environment that they read.
Every process that uses the servers holds a shared lock beside the data; the last one out stops them, and a
process that was killed has let go by dying, so whoever comes next adopts what still runs.

To embed another server: a module with a class that satisfies `servers.EmbeddedServer`, one line in
`servers.servers_of`, and the variable that replaces it in `environment.py`.
"""
