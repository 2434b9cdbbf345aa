"""Extraction of knowledge from conversations (X10): entities, facts, relationships and preferences of users.

- `extract`: `request_extraction`; `extract_due`, which the job `extract_knowledge` calls
- `store`: `store_extractions` and the rules for facts that correct or contradict others
- `outcomes`: what becomes of each item, and how it is counted

`memory.extraction` finds the items and writes nothing. To add a kind of item, extend `memory.extraction.knowledge`,
add its plural to `outcomes.NOUNS`, and store it in `store.store_extractions`.
"""
