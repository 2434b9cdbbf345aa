"""Strategies (X4, X12): ways of doing something, the tools that they call in order, and how often they worked.

- `learn`: `learn_strategy`, `reinforce_strategy`, `remove_strategy` write, and `move_uses` in a merge;
  `find_strategies`, `find_strategy`, `visible_strategies` read.
- `patterns`: `extract_patterns` learns strategies from work that ended, found by `sources`: `next_conversation_sources`
  and `next_goal_sources`.
- `failures`: `learn_from_failures` learns what to do about tools that failed the same way several times.

Another source of work belongs in `sources`, as a function that returns an `AccountPage` of sources by account and end.
"""
