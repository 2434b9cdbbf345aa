"""Memory pools: JSON documents, blackboards and tool caches that agents share, and the workflow runs they belong to.

- `manage`: create, find, lock, change, grant, delete pools; `ensure_own_pool` is the pool of an agent's keyed values.
- `data`: `read_data`, `write_data`, `merge_data` by JSON Pointer; `post_to_blackboard`, `read_postings`;
  `cache_result`, `find_cached_result`, `delete_cached_result`.
- `workflow_runs`: `start_run`, `change_run`, `create_run_pool`.

Every write locks its pool first (`lock_pool`), because the pool's row holds the counts and the size limit. To add a
type of pool, add it to `MemoryPool.PoolType` and to DEFAULT_SCOPES in `manage`; a type whose content is rows belongs
to TYPES_WITHOUT_DATA in `data`.
"""
