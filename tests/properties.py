"""The number of examples that property tests draw: few in `make test`, all of them in `make test-all`."""

from hypothesis import HealthCheck, settings

FULL_EXAMPLES = 100
QUICK_EXAMPLES = 20
MIN_EXAMPLES = 4

# How fast the machine is today is no property of the code, and examples share the database on purpose.
_COMMON = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    max_examples=FULL_EXAMPLES,
)


def register_profiles() -> None:
    """Register `random` (the default: new examples in each run), `full` and `quick` (the same examples each time)."""
    settings.register_profile("random", _COMMON)
    settings.register_profile("full", _COMMON, derandomize=True)
    settings.register_profile("quick", _COMMON, derandomize=True, max_examples=QUICK_EXAMPLES)
    settings.load_profile("random")


def examples(count: int, *, derandomize: bool | None = None) -> settings:
    """Draw `count` examples in a full run, and in proportion fewer under the profile `quick`."""
    current = settings.default
    assert current is not None
    scaled = max(min(count, MIN_EXAMPLES), count * current.max_examples // FULL_EXAMPLES)
    return settings(max_examples=scaled, derandomize=current.derandomize if derandomize is None else derandomize)
