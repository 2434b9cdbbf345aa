"""Keeps web server and worker (the node) and MCP running next to the embedded servers, in one terminal and one log.

One thread, one loop: it reads what the parts print, restarts what dies, and stops everything in order on request. To
add a part: one `Part` in `parts.py`; the order there is the order in which they stop. `forks.py` keeps
the processes running that the node forks, and those that the web server forks.
"""
