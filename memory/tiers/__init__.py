"""Stores of keyed values: what an agent looks up by name rather than remembers.

A tier owns its keys (patterns in `memory_project.redis.KEY_PATTERNS`), its limits and its expiry. Each call is one
round trip, and what must be atomic is one Lua script.

Working memory is one agent's (`working` per conversation, `agent_working` beyond conversations). A session is shared by
all agents of a conversation: the buffer of its latest turns (`session_stores`), and its thoughts, active goal and
context values (`session`). `access_log` and `audit_reads` are streams between reads and their tables.

To add a tier: a key pattern, a module with one class that takes its `Owner`, and values through `base.to_json` and
`base.from_json`. For the router to read it by key, write a `base.Tier` over it in `services.router`.
"""
