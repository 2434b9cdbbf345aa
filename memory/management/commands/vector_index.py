"""Build, replace or drop the index over one embedding model's vectors."""

from argparse import ArgumentParser
from collections.abc import Generator
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandError
from django.db import DatabaseError
from rich.filesize import decimal

from memory.errors import Unprocessable
from memory.management.base import OperatorCommand, terminal_bar
from memory.services.embedding.serving import serving_model
from memory.services.embedding.vector_index import (
    BuiltIndex,
    Hnsw,
    IndexedVectors,
    IndexMethod,
    IndexProgress,
    IvfFlat,
    build_index,
    drop_all_indexes,
    find_widths,
)


class Command(OperatorCommand):
    help = (
        "Build the index that searches of large owners use, while the service runs, and drop the one it replaces. "
        "Small owners are searched exactly and need none. If it is interrupted, run it again."
    )
    advice = "The build was cancelled, and the index that served before still does."

    def add_arguments(self, parser: ArgumentParser) -> None:
        task = parser.add_mutually_exclusive_group(required=True)
        task.add_argument("--method", choices=("hnsw", "ivfflat"), help="how to index")
        task.add_argument("--drop", action="store_true", help="drop the index, so that every search is exact")
        parser.add_argument("--model", default="", help="an embedding model (default: the one in use)")
        parser.add_argument("--width", type=int, default=0, help="dimensions, if vectors of the model differ in them")
        parser.add_argument("--lists", type=int, default=100, help="ivfflat: number of lists (default: %(default)s)")
        graph = Hnsw()
        parser.add_argument("--m", type=int, default=graph.m, help="hnsw: links of a vector (default: %(default)s)")
        parser.add_argument(
            "--ef-construction",
            type=int,
            default=graph.ef_construction,
            help="hnsw: candidates for its links (default: %(default)s)",
        )
        parser.add_argument("--json", action="store_true", help="print the figures as one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            indexed = choose_indexed(options["model"], options["width"])
            if options["drop"]:
                self.report_drop(indexed, drop_all_indexes(indexed), options)
            else:
                method: IndexMethod = Hnsw(m=options["m"], ef_construction=options["ef_construction"])
                if options["method"] == "ivfflat":
                    method = IvfFlat(lists=options["lists"])
                self.report_build(indexed, method, watch(build_index(indexed, method)), options)
        except DatabaseError as err:
            raise CommandError(f"The database refused: {str(err).splitlines()[0]}") from err

    def report_drop(self, indexed: IndexedVectors, dropped: list[str], options: dict[str, Any]) -> None:
        sentence = f"There is no index over {indexed.model}, {indexed.width} dimensions."
        if dropped:
            sentence = f"Dropped {', '.join(dropped)}."
        self.print_figures(asdict(indexed) | {"dropped": dropped}, sentence, options)

    def report_build(
        self, indexed: IndexedVectors, method: IndexMethod, built: BuiltIndex, options: dict[str, Any]
    ) -> None:
        replaced = f" It replaces {', '.join(built.dropped)}." if built.dropped else ""
        sentence = (
            f"Built {built.name} over {built.rows:,} vectors of {indexed.model} ({method.name}, {method.options()}): "
            f"{decimal(built.size_bytes)} in {built.seconds:.1f} seconds.{replaced}"
        )
        self.print_figures({"method": method.name} | asdict(indexed) | asdict(built), sentence, options)


def choose_indexed(model: str, width: int) -> IndexedVectors:
    """Return the model and width to index: the model in use, or another one's width, if it has exactly one.

    Raises Unprocessable.
    """
    serving = serving_model()
    if model in ("", serving.name):
        return IndexedVectors(model=serving.name, width=width or serving.width or serving.provider.width)
    widths = [width] if width else find_widths(model)
    if not widths:
        raise Unprocessable(f"No vector is of {model}.")
    if len(widths) > 1:
        known = ", ".join(map(str, widths))
        raise Unprocessable(f"Vectors of {model} have {known} dimensions: choose by --width.")
    return IndexedVectors(model=model, width=widths[0])


def watch(steps: Generator[IndexProgress, None, BuiltIndex]) -> BuiltIndex:
    """Run the build to its end, with a bar on a terminal's standard error for the phase it is in."""
    with terminal_bar("{task.fields[phase]}", total=lambda: 1.0, phase="starting") as update:
        while True:
            try:
                step = next(steps)
            except StopIteration as end:
                built: BuiltIndex = end.value
                return built
            update(phase=step.phase, completed=step.share)
