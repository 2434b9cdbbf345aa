"""`/resume` (E8): the packet that resumes work, what an agent needs for the next move in a bounded text.

    ResumeRequest
      -> resume.read_material      lineage, turns, records, episodes, goals, facts; then recall, artifacts, replay
      -> resume.focus_material     without what concerns neither the lineage, an open goal nor the query (`focus`)
      -> resume.collect_items      PacketItems of everything that was read:
           goals.goal_items            open trees of goals, the most pressing first
           records.last_outcome_items  what the work came to last
           records.snippets_of_...     sentences of records, episodes and recalled memories
           snippets.snippets_of_turns  sentences of turns, since a runtime may record nothing else
           items.*_items               profile, facts, strategies, artifacts, replay
      -> pack.keep_heaviest        as many as are worth comparing
      -> retract.drop_retracted    without what something later took back, revised, resolved or settled (`settle`)
      -> pack.render_packet        what fits into the token budget, nothing twice, as text
      -> ResumePacket

Callers need `resume.resume_work` and, once the answer is on its way, `resume.conclude_resume`, which counts the reads.

To add something that a packet shows: read it in `resume.ResumeMaterial`, write a function that returns its
`PacketItem`s, and call it in `resume.collect_items`. A new section also needs a member of `items.PacketSection` and its
share in `pack.SECTION_SHARES`.
"""
