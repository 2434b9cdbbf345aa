"""Compression of structured turns over time (E5), by the job `compress`, one stage after the other.

- `batches`: the rows that one call of a stage takes, and whether more are due
- `compress`: the frame that the stages share (due records, workers, locks, failures), and `compress_slots` (level 1)
- `merge`: `merge_records` (level 2) and `archive_episodes` (level 3)

To add a level, extend `CompressionLevel`, write a stage that takes a `Batch` and returns a
`BatchReport`, and add it to `memory.maintenance.conversation_jobs.COMPRESSION_STAGES`.
"""
