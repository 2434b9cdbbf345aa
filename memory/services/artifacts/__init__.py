"""Artifacts (E9): files, documents and pages that work produces or uses, kept revision by revision.

- `store`: `complete_draft`, `store_artifact`, `find_uri_error`
- `read`: `find_artifact`, `artifacts_in_channels`, `view_artifact`, `read_artifact_lineage`
- `change`: `change_artifact`, `delete_artifact`, and `ArtifactLifecycle`, the hooks for artifacts erased as memories

To add a field, extend `store.ArtifactDraft` and `store.add_revision`; if clients may change it, also
`change.CHANGEABLE_COLUMNS`.
"""
