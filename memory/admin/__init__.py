"""The Django admin: everything to browse, and to correct where correcting makes sense. One module a group of models.

Change lists issue the same few queries whatever the number of rows (`base.BoundedAdmin`), and every write goes
through a service, which audits it in the same transaction (`base.AuditedAdmin` for plain rows). What the pages
show was written by strangers: templates escape it, and `text.mark_invisible` shows what would not be seen.

What follows from memories and is nobody's to correct has no pages: counts of words (`TermCount`), for one. Nor have
raw traces of reasoning: nobody reads them here.
"""

from django.contrib import admin

from memory.admin import (
    access_log,
    accounts,
    agent_working,
    api_keys,
    artifacts,
    audit,
    contexts,
    conversations,
    entities,
    entries,
    episodes,
    fact_reviews,
    fact_tombstones,
    facts,
    goals,
    idempotency,
    jobs,
    learnings,
    ledger,
    links,
    memories,
    pool_rows,
    pools,
    profiles,
    short_term,
    snapshots,
    strategies,
    tools,
    turn_records,
    turns,
    usage,
    vectors,
    work_episodes,
    workflow_runs,
    working,
)

__all__ = [
    "access_log",
    "accounts",
    "agent_working",
    "api_keys",
    "artifacts",
    "audit",
    "contexts",
    "conversations",
    "entities",
    "entries",
    "episodes",
    "fact_reviews",
    "fact_tombstones",
    "facts",
    "goals",
    "idempotency",
    "jobs",
    "learnings",
    "ledger",
    "links",
    "memories",
    "pool_rows",
    "pools",
    "profiles",
    "short_term",
    "snapshots",
    "strategies",
    "tools",
    "turn_records",
    "turns",
    "usage",
    "vectors",
    "work_episodes",
    "workflow_runs",
    "working",
]

admin.site.site_header = "Agent memory"
admin.site.site_title = "Agent memory"
admin.site.index_title = "Everything there is"
admin.site.site_url = "/api/docs"
admin.site.enable_nav_sidebar = True
