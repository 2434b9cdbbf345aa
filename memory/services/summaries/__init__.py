"""Summaries of conversations and other episodes (A3, A5).

- `summarize`: `request_session_summary`, `request_summary`, `latest_summary`; and `summarize_due`, which the job
  `summarize` calls
- `store`: `store_episodes`, `episodes_of_conversation`, and finding the current summaries of conversations

A summary is an episode with a source of `store.SUMMARIES`. To make summaries from another source, add it there and
store the summaries with `store.store_copies`.
"""
