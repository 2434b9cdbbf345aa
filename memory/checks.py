"""System checks: misconfiguration is told at start, with a hint, not at the first request."""
