"""Snippets in requests and answers: the part of a long text that answers a question (`retrieval.snippets`)."""

from typing import Any

from rest_framework import serializers

from memory.providers.passages import MAX_PASSAGE_TOKENS
from memory_project.http.answers import AnswerSerializer
from memory_project.http.serializers import Flag, WholeNumber

MIN_SNIPPET_TOKENS = 10
MAX_SNIPPET_TOKENS = 4_000


class SnippetOptions(serializers.Serializer[Any]):
    """How much of a long text is answered."""

    max_snippet_tokens = WholeNumber(
        default=MAX_PASSAGE_TOKENS,
        min_value=MIN_SNIPPET_TOKENS,
        max_value=MAX_SNIPPET_TOKENS,
        help_text="Maximum number of estimated tokens of a snippet. A longer text is answered by its snippet, the part "
        "that answers the question.",
    )
    whole = Flag(default=False, help_text="Answer whole texts in place of snippets, however long they are.")


class SnippetFields(AnswerSerializer):
    """The part of a text that answers the question. A text no longer than a snippet may be is its own snippet."""

    snippet = serializers.CharField(help_text="The part of the text that answers the question.")
    snippet_start = serializers.IntegerField(help_text="First character of the snippet in the whole text.")
    snippet_end = serializers.IntegerField(help_text="Character after the snippet in the whole text.")
