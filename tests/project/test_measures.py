"""Measurements of processes: shared by web servers and workers, and shown as quantiles."""

import os
import shutil
import subprocess
import sys
import time
from math import inf
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as some
from prometheus_client.mmap_dict import MmapedDict

from memory_project.counters import (
    FILE_BYTES,
    VARIABLE,
    WORKER,
    all_counted_files,
    node_folder,
    release_files,
    reserve_files,
    share_counters,
    share_worker_counters,
)
from memory_project.embedded.paths import PROJECT
from memory_project.measures import CountedTogether, merged, outcome_counts, quantile, recall_buckets, since

BOUNDS = (0.01, 0.1, 1.0, inf)
COUNT = """
import os, sys
from pathlib import Path
from memory_project import counters
getattr(counters, sys.argv[1])(Path(sys.argv[2]), os.environ)
from memory_project.measures import EMBEDDED_TEXTS, EMBEDDING_CACHE, HIT, RECALL_SECONDS
EMBEDDING_CACHE.labels(HIT).inc(int(sys.argv[3]))
EMBEDDED_TEXTS.inc(int(sys.argv[3]))
RECALL_SECONDS.observe(0.04)
"""


def count_elsewhere(how: str, data: Path, texts: int) -> None:
    """A process of its own that counts so many texts, and a recall."""
    clean = {name: value for name, value in os.environ.items() if name != VARIABLE}
    command = [sys.executable, "-c", COUNT, how, str(data), str(texts)]
    subprocess.run(command, cwd=PROJECT, env=clean, check=True)


def test_a_scrape_sums_the_counters_of_running_and_ended_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count_elsewhere("share_counters", tmp_path, 1)
    count_elsewhere("share_worker_counters", tmp_path, 10)
    count_elsewhere("share_worker_counters", tmp_path, 100)
    [server] = [folder for folder in node_folder(tmp_path).iterdir() if folder.name.isdecimal()]
    monkeypatch.setenv(VARIABLE, str(server))

    samples = {sample.name: sample.value for metric in CountedTogether().collect() for sample in metric.samples}

    assert samples["memory_embedded_texts_total"] == 111
    assert samples["memory_recall_seconds_count"] == 3
    assert recall_buckets(tmp_path)[0.05] == 3
    assert outcome_counts(tmp_path)["memory_embedding_cache_lookups_total", "hit"] == 111
    assert outcome_counts(tmp_path)["memory_embedding_requests_total", "failed"] == 0


def test_a_starting_server_clears_the_counters_of_ended_processes(tmp_path: Path) -> None:
    parent = node_folder(tmp_path)
    for name in ("999999999", f"{WORKER}999999999", f"{WORKER}{os.getpid()}", "kept"):
        (parent / name).mkdir(parents=True)

    share_worker_counters(tmp_path, {})
    assert len(list(parent.iterdir())) == 4

    environ: dict[str, str] = {}
    share_counters(tmp_path, environ)

    assert {folder.name for folder in parent.iterdir()} == {str(os.getpid()), f"{WORKER}{os.getpid()}", "kept"}
    assert environ == {VARIABLE: str(parent / str(os.getpid()))}


def test_a_starting_server_clears_the_counters_of_machines_that_are_gone(tmp_path: Path) -> None:
    folders = node_folder(tmp_path).parent
    for name in ("gone", "1234", "other"):
        counted = folders / name / "7" / "counter_7.db"
        counted.parent.mkdir(parents=True)
        counted.touch()
    long_ago = time.time() - 2 * 86_400
    for name in ("gone", "1234"):
        for path in (*(folders / name).rglob("*"), folders / name):
            os.utime(path, (long_ago, long_ago))

    share_counters(tmp_path, {})

    assert {folder.name for folder in folders.iterdir()} == {"other", node_folder(tmp_path).name}


def test_files_of_counts_have_their_space_on_disk_before_anything_is_counted(tmp_path: Path) -> None:
    reserve_files({VARIABLE: str(tmp_path)})

    # sparse ones would have no blocks, and a write to one on a full disk would kill the process
    assert {file.name: file.stat().st_blocks * 512 >= 1 << 20 for file in tmp_path.iterdir()} == {
        f"counter_{os.getpid()}.db": True,
        f"histogram_{os.getpid()}.db": True,
    }


def test_a_process_without_space_for_its_counts_counts_elsewhere(tmp_path: Path) -> None:
    environ = {VARIABLE: str(tmp_path / "missing")}

    reserve_files(environ)

    assert Path(environ[VARIABLE]).is_dir()
    shutil.rmtree(environ[VARIABLE])


def test_counters_cleared_during_a_scrape_are_left_out(tmp_path: Path) -> None:
    count_elsewhere("share_worker_counters", tmp_path, 10)
    (dead,) = node_folder(tmp_path).iterdir()
    count_elsewhere("share_worker_counters", tmp_path, 100)

    def find_and_clear() -> list[Path]:
        found = all_counted_files(tmp_path, "counter")
        shutil.rmtree(dead, ignore_errors=True)
        return found

    samples = {sample.name: sample.value for metric in merged(find_and_clear) for sample in metric.samples}

    assert samples["memory_embedded_texts_total"] == 100


def test_an_empty_counter_file_counts_nothing(tmp_path: Path) -> None:
    count_elsewhere("share_worker_counters", tmp_path, 10)
    for folder in node_folder(tmp_path).iterdir():
        (folder / "counter_1.db").touch()

    assert outcome_counts(tmp_path)["memory_embedding_cache_lookups_total", "hit"] == 10


def test_a_counter_folder_named_in_the_environment_is_kept(tmp_path: Path) -> None:
    environ = {VARIABLE: "/elsewhere"}

    share_worker_counters(tmp_path, environ)

    assert environ == {VARIABLE: "/elsewhere"}


@pytest.mark.parametrize(
    ("counts", "share", "expected"),
    [
        ((0, 0, 0, 0), 0.5, None),
        ((10, 10, 10, 10), 0.5, 0.005),
        ((10, 20, 20, 20), 0.5, 0.01),
        ((10, 20, 20, 20), 0.75, 0.055),
        ((0, 0, 0, 7), 0.99, 1.0),
        ((0, 4, 8, 8), 1.0, 1.0),
    ],
)
def test_a_quantile_lies_within_its_bucket(counts: tuple[int, ...], share: float, expected: float | None) -> None:
    found = quantile(dict(zip(BOUNDS, map(float, counts), strict=True)), share)

    assert found == (None if expected is None else pytest.approx(expected))


@given(some.lists(some.floats(0, 0.999), min_size=1, max_size=50), some.floats(0.01, 1))
def test_no_quantile_is_off_by_more_than_its_bucket(seconds: list[float], share: float) -> None:
    buckets = {bound: float(sum(each <= bound for each in seconds)) for bound in BOUNDS}
    exact = sorted(seconds)[max(0, -int(-share * len(seconds) // 1) - 1)]
    lower = max((bound for bound in (0.0, *BOUNDS) if bound < exact), default=0.0)
    upper = min(bound for bound in BOUNDS if bound >= exact)

    found = quantile(buckets, share)

    assert found is not None
    assert lower <= found <= upper


def test_counts_below_the_earlier_ones_are_all_counted_as_new() -> None:
    assert since({1.0: 5.0, inf: 9.0}, {1.0: 2.0, inf: 3.0}) == {1.0: 3.0, inf: 6.0}
    assert since({1.0: 1.0, inf: 2.0}, {1.0: 2.0, inf: 3.0}) == {1.0: 1.0, inf: 2.0}


def test_a_dead_process_keeps_its_counts_and_gives_back_its_space(tmp_path: Path) -> None:
    environ, counts_in = {VARIABLE: str(tmp_path)}, cast(Any, MmapedDict)  # prometheus_client has no types here
    reserve_files(environ)
    file = tmp_path / f"counter_{os.getpid()}.db"
    counted = counts_in(str(file))
    counted.write_value("requests", 7.0, 0.0)
    counted.close()
    reserved = file.stat().st_size

    release_files(os.getpid(), environ)

    assert (reserved, file.stat().st_size) == (FILE_BYTES["counter"], 64)
    assert [value for _, value, *_ in counts_in.read_all_values_from_file(str(file))] == [7.0]
