"""The registry of jobs: each is declared where it lives, and former names still find it."""

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from memory.errors import NotFound
from memory.maintenance import JOBS, Batch, BatchReport, find_job
from memory.maintenance.base import REGISTERED_JOBS, job


@pytest.fixture
def registry() -> Iterator[None]:
    """Take back what a test registers."""
    before = dict(REGISTERED_JOBS)
    yield
    REGISTERED_JOBS.clear()
    REGISTERED_JOBS.update(before)


def test_a_job_is_named_after_its_function_and_described_by_its_docstring(registry: None) -> None:
    @job(every=timedelta(hours=1), batch_size=5)
    def tidy_up(*, now: datetime, batch: Batch) -> BatchReport:
        """Do nothing at all.

        This is not part of the description.
        """
        return BatchReport(examined=0, changed=0)

    registered = REGISTERED_JOBS["tidy_up"]
    assert (registered.description, registered.batch_size) == ("Do nothing at all.", 5)
    assert registered.run is tidy_up


@pytest.mark.parametrize("name", JOBS)
def test_each_job_is_described_in_one_sentence(name: str) -> None:
    description = JOBS[name].description

    assert description.endswith(".")
    assert 20 < len(description) <= 120


@pytest.mark.parametrize(
    ("former", "name"),
    [("consolidate", "extract_knowledge"), ("graduate", "promote_short_term"), ("promote", "globalize_facts")],
)
def test_former_names_find_their_job(former: str, name: str) -> None:
    assert find_job(former).name == name


def test_an_unknown_name_is_refused_with_the_names_that_exist() -> None:
    with pytest.raises(NotFound, match="no job 'tidy'; jobs: audit_partitions, change_in_bulk, cleanup"):
        find_job("tidy")
