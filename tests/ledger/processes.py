"""Real processes of the service's code, to be killed or to find their stores gone."""

import os
import subprocess
import sys


def start_python(source: str, *args: str, **environment: str) -> "subprocess.Popen[str]":
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "memory_project.settings", **environment}
    command = [sys.executable, "-c", source, *args]
    return subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
