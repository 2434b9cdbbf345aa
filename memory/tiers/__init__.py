"""Where keyed values live: what an agent looks up by name rather than remembers.

A tier owns its keys (patterns in `memory_project.redis.KEY_PATTERNS`), its limits and its expiry; each call is one
round trip, and what must not be seen half done is one Lua script. To add a tier: a key pattern, a module with one
class that takes its `Owner`, and values through `base.to_json` and `base.from_json`. What the router shall read by key
is a `base.Tier` over it, in `services/router_tiers`.

Working memory is what one agent has in hand; a session is what all agents of a conversation share: the buffer of its
latest turns (`session_stores`), and its thoughts, active goal and context values (`session`).
"""
