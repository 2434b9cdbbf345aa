"""The modules that the processes of the service import: nothing of `lab` but its AppConfig, and no client unasked."""

import json
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
LOAD_ALL_PROCESSES = """
import json, sys

# web: the server, the application, and its routes, which load the views
import memory_project.web.launcher, memory_project.wsgi, memory_project.urls

# worker and beat: the application, its tasks and the schedule
from memory_project.celery import app
app.loader.import_default_modules()
app.finalize()

tasks = [name for name in app.tasks if name.startswith("memory.")]
print(json.dumps({"modules": sorted(sys.modules), "tasks": tasks, "schedule": list(app.conf.beat_schedule)}))
"""
LOAD_SUPERVISOR = """
import json, sys
import memory_project.up, memory_project.settings, memory.conf

print(json.dumps(sorted(sys.modules)))
"""


def test_web_worker_and_beat_import_no_client_of_models_and_nothing_of_lab_but_its_app_config() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", LOAD_ALL_PROCESSES], cwd=PROJECT, check=True, capture_output=True, text=True, timeout=60
    )
    loaded = json.loads(ended.stdout)

    assert {"memory.api.urls", "memory.admin", "memory.tasks"} <= set(loaded["modules"])
    assert "memory.tasks.run_job" in loaded["tasks"]
    assert "run decay" in loaded["schedule"]
    assert [name for name in loaded["modules"] if f"{name}.".startswith("lab.")] == ["lab", "lab.apps"]
    # which takes half a second, and is loaded with the first model that is behind it
    assert "openai" not in loaded["modules"]


def test_the_supervisor_imports_no_models_and_no_http_of_django() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", LOAD_SUPERVISOR], cwd=PROJECT, check=True, capture_output=True, text=True, timeout=60
    )
    loaded = set(json.loads(ended.stdout))

    assert "django.conf" in loaded
    assert {"django.db.models", "django.http", "rest_framework"} & loaded == set()
