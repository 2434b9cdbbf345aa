"""The memory service: one table of memories, one of vectors, one of links, and the tiers where keyed values live."""
