"""Keeps web, worker and beat running beside the embedded servers, in one terminal and one log.

One thread, one loop: it reads what the parts say, restarts what dies, and stops everything in order when it is
told to. To add a part: one `Part` in `parts.py`; the order there is the order in which they stop.
"""
