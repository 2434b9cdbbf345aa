"""Artifacts: as memories are, with where they are, what they came of, and their other revisions."""

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from memory.admin.artifact_cards import linkable, tell_revision
from memory.admin.fields import ExternalIdField, PlainTextField
from memory.admin.memories import LONG_COLUMNS, MemoryPages
from memory.admin.text import mark_invisible, shorten
from memory.admin.turn_records import PlacedMemoryForm, link_to
from memory.models import Artifact
from memory_project.admin_lists import AccountFilter

MOST_REVISIONS = 50


class ArtifactForm(PlacedMemoryForm):
    """Where it is stays: at another place it is another one."""

    title = PlainTextField(required=False, max_length=500, widget=forms.TextInput(attrs={"class": "vLargeTextField"}))
    artifact_type = ExternalIdField(required=False, max_length=50, label="Type")


@admin.register(Artifact)
class ArtifactAdmin(MemoryPages):
    """Told by agents. Only what is on the web becomes a link."""

    form = ArtifactForm
    list_display = (
        "named", "place", "of_type", "revision_told", "state", "agent_id", "user_id", "channel", "event_time",
        "account",
    )  # fmt: skip
    list_filter = (AccountFilter, "is_latest", *MemoryPages.list_filter[1:])
    correctable = (
        "text", "title", "artifact_type", "event_time", "expires_at", "salience", "trust", "source", "metadata",
    )  # fmt: skip
    shown = (
        "address", "revision_told", "digest_told", "revisions", "of_record", "of_goal",
        "user_id", "channel", *MemoryPages.shown,
    )  # fmt: skip
    long_columns = LONG_COLUMNS

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    @admin.display(description="Artifact")
    def named(self, artifact: Artifact) -> str:
        return shorten(artifact.title) or shorten(artifact.uri)

    @admin.display(description="Where")
    def place(self, artifact: Artifact) -> str:
        return shorten(artifact.uri)

    @admin.display(description="Type")
    def of_type(self, artifact: Artifact) -> str:
        return mark_invisible(artifact.artifact_type) or "-"

    @admin.display(description="Path or URI")
    def address(self, artifact: Artifact) -> SafeString | str:
        return show_uri(artifact.uri)

    @admin.display(description="Revision")
    def revision_told(self, artifact: Artifact) -> str:
        return tell_revision(artifact)

    @admin.display(description="Digest")
    def digest_told(self, artifact: Artifact) -> str:
        return mark_invisible(artifact.digest) or "-"

    @admin.display(description="Produced by")
    def of_record(self, artifact: Artifact) -> SafeString | str:
        return link_to("turnrecord", artifact.record_id, name="a structured turn")

    @admin.display(description="Goal")
    def of_goal(self, artifact: Artifact) -> SafeString | str:
        return link_to("goal", artifact.for_goal_id, name="its goal")

    @admin.display(description="All revisions")
    def revisions(self, artifact: Artifact) -> SafeString | str:
        """Of what is at the same place, for the same holder: an agent's own, or a user's."""
        objects: Any = Artifact.objects
        same = objects.filter(
            account_id=artifact.account_id, channel=artifact.channel, user_id=artifact.user_id, uri=artifact.uri
        )
        if not artifact.user_id:
            same = same.filter(agent_id=artifact.agent_id)
        rows = same.order_by("-revision", "-pk").defer(*LONG_COLUMNS)[:MOST_REVISIONS]
        named = [
            (reverse("admin:memory_artifact_change", args=[row.pk]), tell_revision(row), f"{row.event_time:%Y-%m-%d}")
            for row in rows
        ]
        return format_html_join("", '<div><a href="{}">{}</a>, {}</div>', named)


def show_uri(uri: str) -> SafeString | str:
    """A link where a browser may follow it, else text."""
    shown, url = mark_invisible(uri), linkable(uri)
    if not url:
        return shown
    return format_html('<a href="{}" rel="noopener noreferrer nofollow">{}</a>', url, shown)
