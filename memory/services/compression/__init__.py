"""Compression of structured turns over time (E5), by the job `compress`, one stage after the other.

- `compress`: the frame that the stages share: due records, workers, locks, failures
- `shorten`: `compress_slots` (level 1) and `archive_episodes` (level 3)
- `merge`: `merge_records` (level 2)

To add a level, extend `CompressionLevel`, write a stage that takes a `CompressionBatch` and returns a
`BatchResult`, and add it to `memory.maintenance.compress.STAGES`.
"""
