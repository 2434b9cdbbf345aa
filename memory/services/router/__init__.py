"""The memory router (P9) and the storage service (P10): one interface over all tiers of an agent's memory.

- `route`: `MemoryRouter` reads, writes and deletes keyed values in whichever tier has them.
- `tiers`: one class for each tier, over the services that store its values.
- `concerns`: `StorageService`, the documented storage concerns in one place.

To add a tier, write a class with the methods of `tiers.base.Tier` in `tiers`, add it to `build_tiers` in reading order,
fastest first, and its name to TIERS in `route`.
"""
