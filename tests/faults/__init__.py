"""Proofs by force that take too long for the gate: each a module to be run, on servers of its own."""
