"""Learnings (P10): insights that agents publish to their teams, and the votes on them.

`publish` holds everything: `publish_learning`, `vote_on_learning`, `remove_learning` and, for staff, `delete_vote`
write; `visible_learnings`, `find_learning` and `find_learnings` read. A new operation takes its lock with
`lock_learning` and, if it changes votes, ends with `count_votes`.
"""
