"""Has this item been injected into this conversation? The ledger says so, and says who was first to do it.

The live ledger is a Redis hash a conversation (`store`); every change is journalled, so that a Redis that lost its
data loses no ledger (`journal`). It knows nothing of memories: an item is a key of the caller's, by convention
`skill:…`, `entity:…`, `artifact:…` or `{kind}:{id}`.
"""
