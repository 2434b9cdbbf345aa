"""Structured turns (E2, E3): observation, reasoning, action and outcome of an agent's turn, recorded slot by slot.

- `record`: `prepare_record`, `record_turn`, `add_slots`, `delete_record`
- `read`: `get_record`, `records_of_conversation`, slots and references of records
- `reasoning`: the account's policy (`read_policy`, `set_policy`), `redact_slots`, `destroy_traces`
- `slots`: the parts of `record` that build and compare slots, and that link references

Imports run one way: `reasoning` ← `slots`; `reasoning` ← `read`; all of them ← `record`.

To add a slot, extend `TurnSlot.Slot` and `memory.extraction.turn_slots.Slots`, and build its row in
`slots.build_slots`. To add a kind of reference, extend `slots.References` and link it in `slots.link_references`.
"""
