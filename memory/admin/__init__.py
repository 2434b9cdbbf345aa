"""The Django admin: staff browse all data here, and correct it through the services, which audit every write.

Each module holds the pages of one group of models; modules with a plural name that are not imported below
(`goal_trees`, `turn_cards`) prepare what those pages show. What the pages share:

- `base`: base classes of pages. `BoundedAdmin` keeps lists at a few queries whatever the number of rows, and declares
  the common behaviour as attributes (`allow_add`, `long_columns`, `deletion_note`, …). `ReadOnlyAdmin` is for records,
  `AuditedAdmin` for plain rows, `memories.MemoryKindAdmin` for a kind of memory, `meaning_search.MeaningSearchAdmin`
  for a kind that is found by meaning, `live.LiveAdmin` for what lives in Redis.
- `columns`: list columns and read-only fields, such as `text_column("User", "user_id")`.
- `filters`, `fields`, `page_links`, `text`: list filters, form fields, links, and text made safe to show. What pages
  show was written by strangers: templates escape it, and `mark_invisible` shows characters that nobody would see.
- `object_actions`: buttons and forms that do something to one object on its page.
- `charts`, `diffs`: numbers for the SVG and HTML templates in `templates/admin/memory/`, which render them.

To add a page: write a module with a class derived from one of the base classes and `@admin.register` it; import the
module below; name its columns with `columns`; write through a service in `save_model` and `delete_model`; put
`long_columns` and an excerpt in `list_annotations` if rows may be large; add a maker of rows to `MAKERS` in
`tests/memory/admin/test_lists.py`, which tests every list for its queries, searches, permissions and content security.
A page with a template of its own extends `admin/memory/page.html` and is returned by `render_page`.

Data that is derived from memories and that nobody corrects has no pages, such as counts of words (`TermCount`). Raw
traces of reasoning have none either: nobody reads them here.
"""

from django.contrib import admin

from memory.admin import (  # noqa: F401 - registers their pages
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
    links,
    live,
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
)

admin.site.site_header = "Agent memory"
admin.site.site_title = "Agent memory"
admin.site.index_title = "All data"
admin.site.site_url = "/api/docs"
admin.site.enable_nav_sidebar = True
