"""The Django admin: staff browse all data here, and correct it through the services, which audit every write.

Each module holds the pages of one group of models, or prepares what those pages show (`goal_trees`, `turn_cards`).
All of them are imported below, which registers their pages. What the pages share:

- `base`: base classes of pages. `BoundedAdmin` keeps lists at a few queries whatever the number of rows, and declares
  the common behaviour as attributes (`allow_add`, `long_columns`, `deletion_note`, …). `ReadOnlyAdmin` is for records,
  `AuditedAdmin` for plain rows, `memories.MemoryKindAdmin` for a kind of memory, `memories.MeaningSearchAdmin`
  for a kind that is found by meaning, `live.LiveAdmin` for what lives in Redis.
- `columns`: list columns and read-only fields, such as `text_column("User", "user_id")`, and links to pages.
- `filters`, `fields`, `text`: list filters, form fields, and text made safe to show. What pages show was written by
  strangers: templates escape it, and `mark_invisible` shows characters that nobody would see.
- `users`, `groups`, `switcher`, `totp`: who may do what (`changed_by`), and the accounts to which pages are limited.
- `bulk`: actions on many rows of a list, declared as `bulk_actions`; each asks for confirmation and a reason, and is
  carried out by `memory.services.bulk`, at once or by a job.
- `playground`, `provenance`, `conversation_timeline`: what an agent would get and why, where a memory comes from, and
  what happened in a conversation. `graph_pages` shows what is linked to a memory, as `graph_layout` places it;
  `access_matrix` who has access to an account.
- `inbox`: what curators have to decide, in one queue. `remember`: memories that are added by hand.
- `object_actions`: buttons and forms that do something to one object on its page.
- `charts`, `diffs`: numbers for the SVG and HTML templates in `templates/admin/memory/`, which render them.

To add a page: write a module with a class derived from one of the base classes and `@admin.register` it; name its
columns with `columns`; write through a service in `save_model` and `delete_model`; put `long_columns` and an excerpt in
`list_annotations` if rows may be large; add a maker of rows to `MAKERS` in `tests/memory/admin/rows.py`, which
tests every list for its queries, searches, permissions and content security.
A page with a template of its own extends `admin/memory/page.html` and is returned by `render_page`.

Data that is derived from memories and that nobody corrects has no pages, such as counts of words (`TermCount`). Raw
traces of reasoning have none either: nobody reads them here.
"""

from importlib import import_module
from pkgutil import iter_modules

from django.contrib import admin

from memory_project.http.login import ThrottledLoginForm

for each in iter_modules(__path__, f"{__name__}."):
    import_module(each.name)

admin.site.login_form = ThrottledLoginForm
admin.site.login_template = "admin/memory/login.html"
admin.site.site_header = "Agent memory"
admin.site.site_title = "Agent memory"
admin.site.index_title = "All data"
admin.site.site_url = "/api/docs"
admin.site.enable_nav_sidebar = True
