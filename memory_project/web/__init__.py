"""The web server: waitress in forked processes that share their sockets.

    python -m memory_project.web --bind 127.0.0.1:8002 --health 127.0.0.1:8003

- `launcher`: the main process. It loads the application and the model once, forks, and restarts what dies.
- `worker`: a forked process: one thread for all sockets, and threads for whole requests. Its lanes say which threads
  serve which paths, so that health checks and documents never wait for each other.
- `channels`: connections: what their requests may send, how long they may take, how many an address may have.

waitress reads a request to its end, into a file where it is large, before a thread gets it, and sends an answer without
the thread that made it. So slow clients cost a file descriptor each, never a thread.
"""
