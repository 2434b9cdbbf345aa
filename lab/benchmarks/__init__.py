"""What the service costs over the servers beneath it: real requests against the same work done bare, side by side.

    scratch (an account of its own) → web (a real server) → cases (ways of doing the same) → measure (turn by turn)

To add a case: a function in `cases.py` that answers a `Case`, named in `all_cases`.
"""
