"""The cost of the service over the servers below it: real requests compared with the same work done bare.

    scratch (an account of its own) → web (a real server) → cases (ways of doing the same) → measure (in turns)

To add a case: a function in `cases.py` that returns a `Case`, named in `all_cases`.
"""
