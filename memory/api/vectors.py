"""Vectors brought by clients: a list of numbers, checked without one serializer field per number."""

from typing import Any, ClassVar

import numpy as np
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from memory.models.statements import Embedding
from memory.models.vectors import MAX_WIDTH
from memory.owner import Owner
from memory.services.memories.store import ClientVector, validate_vector
from memory_project.http.serializers import ExternalId, StrictSerializer

ARRAY_OF_NUMBERS = {"type": "array", "items": {"type": "number"}, "minItems": 1, "maxItems": MAX_WIDTH}
NUMBERS = frozenset({int, float})
"""Types of JSON numbers. `true` and `false` are of a type of their own."""
QUERY_HELP = "Text to search for. Required without `query_embedding`."
MODEL_HELP = "Name of the model that produced the vector. Default: the configured embedding model."


@extend_schema_field(ARRAY_OF_NUMBERS)
class EmbeddingField(serializers.Field[Embedding, Any, Any, Any]):
    """A list of 1 to MAX_WIDTH finite numbers."""

    default_error_messages = {
        "shape": f"Must be a list of 1 to {MAX_WIDTH} numbers.",
        "number": "Every element must be a finite number.",
    }

    def to_internal_value(self, data: Any) -> Embedding:
        if not isinstance(data, list) or not 1 <= len(data) <= MAX_WIDTH:
            self.fail("shape")
        if not NUMBERS.issuperset(map(type, data)):
            self.fail("number")
        try:
            vector = np.asarray(data, dtype=np.float64)
        except OverflowError:
            self.fail("number")
        with np.errstate(over="ignore"):
            narrow = vector.astype(np.float32)
        if not np.isfinite(narrow).all():
            self.fail("number")
        return narrow


class VectorFields(StrictSerializer):
    """The vector of a text that is stored. `read_vector(owner, body)` checks it."""

    embedding = EmbeddingField(required=False, help_text="Vector of the text. Default: the service makes one.")
    embedding_model = ExternalId(required=False, help_text=MODEL_HELP)


class QueryVectorFields(StrictSerializer):
    """The vector of a query. `read_vector(owner, body, "query_embedding")` checks it."""

    query_embedding = EmbeddingField(required=False, help_text="Vector of the query. Default: the service makes one.")
    embedding_model = ExternalId(required=False, help_text=MODEL_HELP)


class QuestionFields(QueryVectorFields):
    """A question by its text, by its vector, or by both. Its text is a field that is not required."""

    text_field: ClassVar[str] = "query"

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if self.text_field not in attrs and "query_embedding" not in attrs:
            sentence = f"Send `{self.text_field}`, or `query_embedding` to search by meaning alone."
            raise serializers.ValidationError({self.text_field: [sentence]})
        checked: dict[str, Any] = super().validate(attrs)
        return checked


def read_vector(owner: Owner, body: dict[str, Any], field: str = "embedding") -> ClientVector | None:
    """Return the vector that a checked body has in `field`, or None. Raises as `validate_vector` does."""
    if field not in body:
        return None
    return validate_vector(owner, model=body.get("embedding_model", ""), vector=body[field])
