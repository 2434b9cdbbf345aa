"""Extraction: read texts and files, and return dataclasses. Services decide what of it is stored.

Nothing here writes. To add a reader, write a module named after what it reads, with functions that yield frozen
dataclasses, and let a service store them.
"""
