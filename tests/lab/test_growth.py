"""`manage.py bench --jobs`: rows are there that the job looks at, and gone behind it."""

import pytest

from lab.benchmarks.growth import FILLINGS, run_over
from memory.models import Account, Memory, TermCount


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("job", "changed"), [("decay", 400), ("context_rot", 2), ("deduplicate", 1)])
def test_a_job_benchmark_deletes_its_rows_afterwards(job: str, changed: int) -> None:
    _rows, fill = FILLINGS[job]

    seconds, found = run_over(job, fill, 200)

    assert (seconds > 0, found) == (True, changed)
    assert not any(table._default_manager.exists() for table in (Account, Memory, TermCount))
