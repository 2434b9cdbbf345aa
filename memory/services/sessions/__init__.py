"""Sessions, the live side of conversations in Redis (H1, H2).

- `hybrid`: `MemoryManager`, `open_session`, `join_session`, `latest_question`

Keyed values of a session are kept by `memory.tiers.session`, its buffer of turns by `memory.tiers.session_stores`. To
add a part to the context of a session, extend `hybrid.HybridContext` and the template `context/hybrid_memory.txt`.
"""
