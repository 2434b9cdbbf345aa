"""The names of the source documents, one module per document, each name where a reader of that document looks for it.

- `three_layer`: working memory, episodic memory and the injection ledger; asynchronous.
- `tiers`: the router, working memory of an agent, pools, contexts, maintenance; synchronous.
- `cognitive`: AgentMemory and its subsystems, retrieval, consolidation, audit; synchronous.
- `evidence`: scopes, structured turns, replay, resume.
- `sessions`: the memory manager of sessions; asynchronous.

A name is the class that does the work, or a thin class whose methods are one call each into the service of its noun.
docs/from-the-documents.md lists all of them with their routes and keys in Redis. To add a name, import it in its
document's module, or write a thin class in `subsystems`, and add its row there; a test imports every row.
"""
