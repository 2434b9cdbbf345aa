"""Artifacts: files and pages that agents produced, with their revisions and where they came from."""

from django import forms
from django.contrib import admin
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from memory.admin.artifact_cards import format_revision, linkable_url
from memory.admin.columns import DAY, column, excerpt_column, link_column, row_link, text_column
from memory.admin.fields import ExternalIdField, PlainTextField
from memory.admin.memories import LONG_COLUMNS, MemoryKindAdmin, OwnedMemoryForm
from memory.admin.text import excerpt_of, mark_invisible
from memory.models import Artifact
from memory_project.admin_lists import AccountFilter

MAX_REVISIONS = 50


class ArtifactForm(OwnedMemoryForm):
    """The place cannot be changed: at another place it would be another artifact."""

    title = PlainTextField(required=False, max_length=500, widget=forms.TextInput(attrs={"class": "vLargeTextField"}))
    artifact_type = ExternalIdField(required=False, max_length=50, label="Type")


def render_uri(artifact: Artifact) -> SafeString | str:
    """Render the URI as a link if a browser may follow it, else as text."""
    text, url = mark_invisible(artifact.uri), linkable_url(artifact.uri)
    return format_html('<a href="{}" rel="noopener noreferrer nofollow">{}</a>', url, text) if url else text


def render_revisions(artifact: Artifact) -> SafeString:
    """Render the revisions at the same place for the same holder, who is a user or else an agent."""
    objects = Artifact.objects
    same = objects.filter(
        account_id=artifact.account_id, channel=artifact.channel, user_id=artifact.user_id, uri=artifact.uri
    )
    if not artifact.user_id:
        same = same.filter(agent_id=artifact.agent_id)
    rows = same.order_by("-revision", "-pk").defer(*LONG_COLUMNS)[:MAX_REVISIONS]
    links = [(row_link("artifact", row.pk, format_revision(row)), f"{row.event_time:{DAY}}") for row in rows]
    return format_html_join("", "<div>{}, {}</div>", links)


@admin.register(Artifact)
class ArtifactAdmin(MemoryKindAdmin):
    """The pages of artifacts. Only addresses on the web become links."""

    form = ArtifactForm
    list_display = (
        "named", "place", "type_text", "revision_text", "state", "agent_id", "user_id", "channel", "event_time",
        "account",
    )  # fmt: skip
    list_filter = (AccountFilter, "is_latest", *MemoryKindAdmin.list_filter[1:])
    editable_fields = (
        "text", "title", "artifact_type", "event_time", "expires_at", "salience", "trust", "source", "metadata",
    )  # fmt: skip
    detail_fields = (
        "address", "revision_text", "digest_text", "revisions", "record_page", "goal_page", "user_id", "channel",
        *MemoryKindAdmin.detail_fields,
    )  # fmt: skip
    allow_add = False

    named = column("Artifact", lambda artifact: excerpt_of(artifact.title) or excerpt_of(artifact.uri))
    place = excerpt_column("Path or URI", "uri", empty="")
    type_text = text_column("Type", "artifact_type")
    address = column("Path or URI", render_uri)
    revision_text = column("Revision", format_revision)
    digest_text = text_column("Digest", "digest")
    record_page = link_column("Produced by", "turnrecord", "source_record_id", "Open the structured turn")
    goal_page = link_column("Goal", "goal", "for_goal_id", "Open the goal")
    revisions = column("All revisions", render_revisions)
