"""Text in, dataclasses out: what can be read out of texts and files, before anything is decided or stored.

Nothing here writes. To add a reader, write a module named after what it reads, with functions that yield frozen
dataclasses, and let a service store them.
"""
