"""Databases of former versions, which every later version migrates forward unchanged.

Before a release, add one of its version, and keep the others: `.venv/bin/pytest -n 0 tests/upgrades/make_dump.py`.
"""
