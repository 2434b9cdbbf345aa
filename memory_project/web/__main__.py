"""The command line of the web server."""

import argparse
import os
import sys

import django
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from memory_project.counters import reserve_files, share_counters
from memory_project.encryption import check_database_keys, check_encryption_keys
from memory_project.logs import say_last
from memory_project.postgresql.options import prepare_web_connections
from memory_project.redis import refuse_cluster_node


def main() -> None:
    options = read_options()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memory_project.settings")
    # before anything that counts is imported
    share_counters(settings.DATA_DIR, os.environ)
    reserve_files(os.environ)
    try:
        check_encryption_keys()
        from memory_project.web.launcher import Launcher, listen, load_application  # noqa: PLC0415  loads Django's apps

        sockets = [listen(address) for address in (options.bind, options.health) if address != "none"]
        prepare_web_connections()
        django.setup()
        check_database_keys()
        refuse_cluster_node()
        application = load_application()
    except ImproperlyConfigured as error:
        sys.exit(say_last(f"The web server does not start: {error}."))
    except OSError as error:
        sys.exit(say_last(f"The web server does not start: {options.bind} or {options.health}: {error.strerror}."))
    sys.exit(Launcher(application, sockets).run())


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m memory_project.web", description=__doc__)
    parser.add_argument("--bind", default="127.0.0.1:8002", metavar="HOST:PORT", help="Address of the service.")
    parser.add_argument(
        "--health",
        default="none",
        metavar="HOST:PORT",
        help="Address where only /health/live, /health/ready and /metrics are served. Default: none.",
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
