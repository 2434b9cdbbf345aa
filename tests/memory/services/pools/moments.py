"""Times and conditions of changes."""

from datetime import timedelta
from typing import Any

from tests.memory.pools import NOW

LATER = NOW + timedelta(hours=1)


ANY: dict[str, Any] = {"expected": None, "now": NOW}
