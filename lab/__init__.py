"""Measurements of the service: benchmarks, evaluation of recall, simulation of a month, and their commands.

`lab` is an app only so that `manage.py` finds its commands. Nothing in `memory`, `ledger` or `memory_project` imports
it: a production process loads nothing of it but its `AppConfig`.
"""
