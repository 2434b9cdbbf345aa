"""A record of which items have been injected into which conversation, and of which agent injected each first.

The live ledger is one Redis hash per conversation (`store`). Every change is also journalled, so a Redis that loses its
data loses no ledger (`journal`). The app knows nothing of memories: an item key is the caller's own, by convention
`skill:…`, `entity:…`, `artifact:…` or `{kind}:{id}`.
"""
