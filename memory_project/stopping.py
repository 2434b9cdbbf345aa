"""The mark of a process that has been asked to stop: readiness says so before anything else ends."""

from threading import Event

STOPPING = Event()
