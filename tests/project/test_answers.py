"""Answer shapes: the JSON of a row follows from the declared fields."""

from types import SimpleNamespace
from typing import Any
from uuid import UUID

from rest_framework import serializers

from memory.models import Artifact, ContextSnapshot, Fact, Temporal, Turn
from memory_project.http.answers import AnswerSerializer, columns_of

ID = UUID("01890000-0000-7000-8000-000000000001")


class Part(AnswerSerializer):
    name = serializers.CharField()


class Whole(AnswerSerializer):
    id = serializers.UUIDField()
    parent_id = serializers.UUIDField(allow_null=True)
    others = serializers.ListField(child=serializers.UUIDField())
    title = serializers.CharField(source="text")
    owner = serializers.CharField(source="account.name")
    first = Part(allow_null=True)
    parts = Part(many=True)
    words = serializers.IntegerField()
    signals = serializers.DictField(required=False)

    @staticmethod
    def compute_words(row: Any) -> int:
        return len(row.text.split())


ROW = SimpleNamespace(
    id=ID,
    parent_id=None,
    others=[ID],
    text="two words",
    account=SimpleNamespace(name="workshop"),
    first=None,
    parts=[SimpleNamespace(name="one")],
)


def test_a_row_is_serialized_to_the_declared_fields() -> None:
    assert Whole.serialize(ROW) == {
        "id": str(ID),
        "parent_id": None,
        "others": [str(ID)],
        "title": "two words",
        "owner": "workshop",
        "first": None,
        "parts": [{"name": "one"}],
        "words": 2,
    }


def test_values_passed_explicitly_override_those_of_the_row() -> None:
    answer = Whole.serialize(ROW, {"words": 7, "signals": {"recency": 1.0}})

    assert (answer["words"], answer["signals"]) == (7, {"recency": 1.0})


def test_a_field_passed_explicitly_needs_no_attribute_on_the_row() -> None:
    assert Part.serialize(object(), {"name": "none"}) == {"name": "none"}


def test_columns_in_lists_the_model_columns_that_a_serializer_reads() -> None:
    class Shown(AnswerSerializer):
        id = serializers.UUIDField()
        content = serializers.CharField(source="text")
        item_key = serializers.CharField()

    assert Shown.columns_in(Turn) == ["id", "text"]


def test_columns_of_a_model_are_fields_with_their_types_choices_and_null_in_the_order_of_declarations() -> None:
    class Base(AnswerSerializer):
        item_key = serializers.CharField()

    class Shown(Base):
        columns = columns_of(Fact, "id temporal valid_to metadata")
        title = serializers.CharField(source="text")

    fields: dict[str, Any] = dict(Shown().fields)

    assert list(fields) == ["item_key", "id", "temporal", "valid_to", "metadata", "title"]
    assert isinstance(fields["id"], serializers.UUIDField)
    assert dict(fields["temporal"].choices) == dict(Temporal.choices)
    assert isinstance(fields["metadata"], serializers.DictField)
    assert [name for name, field in fields.items() if field.allow_null] == ["valid_to"]
    assert all(field.required for field in fields.values())


def test_the_column_of_a_reference_is_the_id_that_it_holds() -> None:
    class Shown(AnswerSerializer):
        columns = columns_of(ContextSnapshot, "context_id")

    assert Shown.serialize(SimpleNamespace(context_id=ID)) == {"context_id": str(ID)}


def test_a_subclass_may_say_more_about_a_column() -> None:
    class Shown(AnswerSerializer):
        columns = columns_of(Artifact, "uri title")

    class Named(Shown):
        title = serializers.CharField(help_text="May be empty.")

    assert {name: field.help_text for name, field in Named().fields.items()} == {"uri": None, "title": "May be empty."}
