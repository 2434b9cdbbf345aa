"""Merging duplicates (P11): memories that mean nearly the same and say the same become one.

- `deduplicate`: `deduplicate` merges, `preview_duplicates` counts what it would merge; finds the pairs.
- `compare`: decides which pairs may be merged, and which memory of a pair stays.
- `paraphrases`: `paraphrase_words` compares English texts that say the same in other words.
- `texts`: `differing_words` compares two texts, `normalized_text_hash` is equal for equivalent ones.
- `merge`: `merge_pair` and `undo_merge`.
- `resolve`: `find_survivors` and others follow merged memories to the ones that stand for them.

To merge another kind, declare `merging` in its `KindSpec`; a new word that texts may differ in belongs in `texts`.
"""
