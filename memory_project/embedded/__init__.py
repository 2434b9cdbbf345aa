"""PostgreSQL and Valkey from wheels, for a machine that has neither.

Nothing here imports Django: it runs before the settings load, and only sets the environment that they read.
Every process that uses the servers holds a shared lock next to the data; the last one to leave stops them. A process
that was killed has released its lock by dying, so the next process adopts the servers that still run.

To embed another server: a module with a subclass of `daemons.Daemon`, one line in
`servers.servers_of`, and the variable that replaces it in `environment.py`.
"""
