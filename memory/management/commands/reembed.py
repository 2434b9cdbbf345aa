"""`manage.py reembed`: change the embedding model while the service goes on."""

import json
import time
from argparse import ArgumentParser
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError
from django.core.serializers.json import DjangoJSONEncoder
from django.utils import timezone

from memory.errors import Conflict
from memory.maintenance import JOBS, runner
from memory.management.base import OperatorCommand, require_keys, terminal_bar
from memory.models import JobRun
from memory.providers.embeddings import (
    DEFAULT_OPENAI_MODEL,
    PROVIDERS,
    ModelSpec,
    TextPrefixes,
    configured_model,
    open_model,
)
from memory.providers.embeddings.tiny import TINY_WIDTH
from memory.providers.endpoints import has_secret
from memory.services.embedding.change import (
    STALE_FOR,
    ChangeStatus,
    Phase,
    estimate_change,
    find_status,
    plan_change,
    request_abort,
    request_finish,
    start_change,
)
from memory.services.embedding.reembed import next_model_answers
from memory_project.embedded.models import BUNDLED_MODEL

WAIT_SECONDS = 2.0

EPILOG = """
All memories get vectors of the new model next to those of the model that serves searches. Indexes are built, then the
new model serves from one moment on. Searches and writes go on throughout. The command may be stopped anywhere: run it
again, or let the worker go on (job `reembed`).

  manage.py reembed --model text-embedding-3-large --width 1024 --dry-run
  manage.py reembed --model text-embedding-3-large --width 1024
  manage.py reembed --provider local --folder /srv/models/e5-small
  manage.py reembed --status --json
  manage.py reembed --finish

Without a model, the one that the settings configure is changed to. Afterwards set the settings to the new model and
restart; --finish then drops the vectors of the former one, and until then the way back takes seconds.

Exit status: 0, or 1 when the change was refused or could not go on, 130 on Ctrl-C.
"""


class Command(OperatorCommand):
    help = "Change the embedding model: embed all memories by another one, then let it serve searches."
    epilog = EPILOG
    advice = "The worker goes on with it; `manage.py reembed --abort` gives it up."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--model", metavar="NAME", default="", help="the new model (default: that of the settings)")
        parser.add_argument("--width", metavar="N", type=int, help="dimensions to ask an endpoint for, or to expect")
        parser.add_argument("--provider", choices=sorted(PROVIDERS), help="who computes it (default: as the settings)")
        parser.add_argument("--folder", metavar="DIR", default="", help="folder of local weights")
        parser.add_argument(
            "--base-url",
            metavar="URL",
            default="",
            help="address of the endpoint, if not OPENAI_BASE_URL; its key is EMBEDDING_SECOND_API_KEY",
        )
        parser.add_argument("--query-prefix", metavar="TEXT", default="", help="text before each question")
        parser.add_argument("--passage-prefix", metavar="TEXT", default="", help="text before each stored text")
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--status", action="store_true", help="print which model serves and how far the change is")
        what.add_argument("--abort", action="store_true", help="give the change up, and drop the vectors made for it")
        what.add_argument("--finish", action="store_true", help="drop the vectors and indexes of the former model")
        parser.add_argument("--dry-run", action="store_true", help="print what would be done, and change nothing")
        parser.add_argument("--no-wait", action="store_true", help="leave the work to the worker")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        require_keys()
        if options["status"]:
            self.report(options)
            return
        if options["dry_run"]:
            self.report_plan(options)
            return
        if options["abort"]:
            request_abort()
        elif options["finish"]:
            request_finish()
        else:
            start_change(plan_change(read_wanted(options)), now=timezone.now())
        if not options["no_wait"]:
            self.work(options)
        self.report(options)

    def work(self, options: dict[str, Any]) -> None:
        """Continue until nothing is left to do, together with a worker if there is one. Raises CommandError."""
        with terminal_bar("{task.fields[phase]}: {task.completed}", total=lambda: 0.0, phase="starting") as update:
            while (status := find_status()) and status.phase != Phase.IDLE:
                update(phase=status.phase, completed=status.done)
                try:
                    run = JobRun(job="reembed", requested_by="command")
                    shown = {"on_progress": lambda report: update(advance=report.changed)}
                    run = runner.run_at_once(JOBS["reembed"], run, clock=timezone.now, **shown)
                except Conflict:  # a worker is at it
                    time.sleep(WAIT_SECONDS)
                    continue
                if run.status == JobRun.Status.FAILED:
                    raise CommandError(run.error)
                if run.failed and not run.changed and not next_model_answers():
                    raise CommandError(
                        "The new model does not answer. Nothing is lost: run the same command again, or let the "
                        "worker try again every minute."
                    )
                if not run.changed:
                    time.sleep(WAIT_SECONDS)

    def report_plan(self, options: dict[str, Any]) -> None:
        if options["abort"] or options["finish"]:
            raise CommandError("--dry-run is about a change: leave --abort and --finish out, or use --status.")
        planned = plan_change(read_wanted(options))
        plan = asdict(estimate_change(planned))
        sentence = (
            f"Would change to {planned.describe()}: {plan['to_embed']:,} memories to embed, {plan['embedded']:,} have "
            f"their vectors already. New vectors take about {plan['megabytes']:,} MB, with indexes up to twice that."
        )
        self.print_figures({"dry_run": True, "next": show_model(planned)} | plan, sentence, options)

    def report(self, options: dict[str, Any]) -> None:
        status = find_status()
        if options["json"]:
            shown = None if status is None else serialize_status(status)
            self.stdout.write(json.dumps(shown, cls=DjangoJSONEncoder))
        elif status is None:
            self.stdout.write("No model is recorded yet: the configured one serves.")
        else:
            self.stdout.write(format_status(status))


def read_wanted(options: dict[str, Any]) -> ModelSpec:
    """Return the model that the options name, over the one that the settings configure. Raises CommandError."""
    if has_secret(options["base_url"]):
        raise CommandError("An address is stored: it must hold no password. The key is EMBEDDING_SECOND_API_KEY.")
    configured = configured_model()
    provider = options["provider"] or ("local" if options["folder"] else configured.provider)
    names = ("model", "width", "folder", "base_url", "query_prefix", "passage_prefix", "provider")
    if not any(options[name] for name in names):
        return configured
    prefixes = TextPrefixes(query=options["query_prefix"], passage=options["passage_prefix"])
    width = options["width"] or 0
    if provider == "openai":
        model = options["model"] or (configured.model if configured.provider == provider else DEFAULT_OPENAI_MODEL)
        base_url = options["base_url"]
        return ModelSpec(
            name=model,
            provider=provider,
            model=model,
            width=width,
            asks_width=bool(width),
            base_url=base_url,
            prefixes=prefixes,
        )
    return local_model(options, provider=provider, prefixes=prefixes)


def local_model(options: dict[str, Any], *, provider: str, prefixes: TextPrefixes) -> ModelSpec:
    """Return a model that this machine computes, named as the settings would name it. Raises CommandError."""
    width, folder = options["width"] or 0, options["folder"]
    name = options["model"] or (Path(folder).resolve().name if folder else BUNDLED_MODEL)
    if provider == "tiny":
        name = f"tiny-{width or TINY_WIDTH}"
    elif not folder and name != BUNDLED_MODEL:
        raise CommandError(f"Only the weights of {BUNDLED_MODEL} are installed: name the folder of {name} by --folder.")
    wanted = ModelSpec(name=name, provider=provider, model=name, width=width, folder=folder, prefixes=prefixes)
    made = open_model(wanted).width
    if width not in (0, made):
        raise CommandError(f"The vectors of {name} have {made} dimensions, not {width}: leave --width out.")
    return replace(wanted, width=made)


def show_model(spec: ModelSpec | None) -> dict[str, Any] | None:
    """Return what people and scripts need of a model."""
    return None if spec is None else {"model": spec.name, "width": spec.width, "provider": spec.provider}


def serialize_status(status: ChangeStatus) -> dict[str, Any]:
    models = {name: show_model(getattr(status, name)) for name in ("serving", "next", "former", "configured")}
    names = ("phase", "done", "failed", "left", "refused", "lacking", "started_at", "switched_at")
    return models | {name: getattr(status, name) for name in names}


def format_status(status: ChangeStatus) -> str:
    lines = [f"Searches are served by {status.serving.describe()}."]
    if status.lacking:
        lines.append(f"Memories without a vector of it: {status.lacking:,}; their words find them.")
    if status.next is not None:
        done = f"{status.done:,} memories embedded, {status.left:,} written meanwhile are left"
        lines.append(f"A change to {status.next.describe()} is going on ({status.phase}): {done}.")
    if status.refused:
        lines.append(f"Memories that it refuses, which do not keep it from serving: {status.refused:,}.")
    if status.failed:
        lines.append(f"Failed attempts: {status.failed:,}; the log of the worker has the reasons.")
    if status.former is not None:
        doing = format_dropping(status) if status.phase == Phase.DROP else "are kept; --finish drops them"
        lines.append(f"Vectors of {status.former.describe()}, which served before, {doing}.")
    if status.configured is not None and not status.configured.is_same(status.serving):
        lines.append(f"The settings configure {status.configured.describe()}.")
    return "\n".join(lines)


def format_dropping(status: ChangeStatus) -> str:
    since = status.switched_at
    if since is None or timezone.now() >= since + STALE_FOR:
        return "are being dropped"
    return f"are dropped from {since + STALE_FOR:%H:%M:%S} UTC on: until then, processes may still store some"
