"""Vectors that clients bring: a list of numbers, checked without a serializer field for each of them."""

from typing import Any

import numpy as np
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from memory.models.binary import Embedding
from memory.models.vectors import MAX_WIDTH

ARRAY_OF_NUMBERS = {"type": "array", "items": {"type": "number"}, "minItems": 1, "maxItems": MAX_WIDTH}


@extend_schema_field(ARRAY_OF_NUMBERS)
class EmbeddingField(serializers.Field[Embedding, Any, Any, Any]):
    """1 to 4,000 finite numbers."""

    default_error_messages = {
        "shape": f"A list of 1 to {MAX_WIDTH} numbers is needed.",
        "number": "Every element must be a finite number.",
    }

    def to_internal_value(self, data: Any) -> Embedding:
        if not isinstance(data, list) or not 1 <= len(data) <= MAX_WIDTH:
            self.fail("shape")
        if not all(type(number) in (int, float) for number in data):
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
