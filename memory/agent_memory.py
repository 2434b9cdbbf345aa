"""The in-process API over everything that is remembered."""
