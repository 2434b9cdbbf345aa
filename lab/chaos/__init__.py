"""Faults on purpose: `manage.py chaos` holds crowds of bad clients and stops servers, and measures what others notice.

- `crowds`: many connections that send or read slowly, or not at all, held by a process of its own.
- `servers`: PostgreSQL and an embedder that hang.
- `watching`: a client that works and a probe that asks for health meanwhile, and what they met.
- `scenarios`: the faults. To add one: a function there and its name in SCENARIOS.
"""
