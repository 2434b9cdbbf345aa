"""`manage.py migrate`: Django's command, one at a time, so that nodes may start together."""

import time
from typing import Any

from django.conf import settings
from django.core.management.commands import migrate
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.state import ProjectState
from django.db.migrations.utils import field_is_referenced
from django.db.models import Field

from memory_project.postgresql.failures import MIGRATIONS_MISSING
from memory_project.postgresql.locks import lock_connection
from memory_project.postgresql.options import store_role_settings
from memory_project.postgresql.roles import create_application_role, grant_rights, owner_connection

MIGRATE_LOCK_ID = 0x6D656D626F6F7401
LOOK_SECONDS = 0.5


class LeanState(ProjectState):
    """A state of the models that renders only the changed model again after each operation.

    Django renders all models that are related to it as well, and all tables have a reference to the account: three
    quarters of the time of a first start. What is outdated until the next whole rendering are other models' references
    to the changed one, of which operations on tables need only the table and the key. Operations in Python see all
    models rendered anew, as after any change that Django calls delayed.
    """

    def reload_model(self, app_label: str, model_name: str, delay: bool = False) -> None:
        if "apps" in self.__dict__:
            self.is_delayed = True
            self._reload({(app_label, model_name)})  # type: ignore[attr-defined]

    def alter_field(
        self, app_label: str, model_name: str, name: str, field: "Field[Any, Any]", preserve_default: bool
    ) -> None:
        super().alter_field(app_label, model_name, name, field, preserve_default)
        if field.is_relation or field_is_referenced(self, (app_label, model_name), (name, field)):
            # the type of other models' references may follow
            self.__dict__.pop("apps", None)


class LeanExecutor(MigrationExecutor):
    """Django's executor, with a lean state."""

    def migrate(
        self,
        targets: Any,
        plan: Any = None,
        state: ProjectState | None = None,
        fake: bool = False,
        fake_initial: bool = False,
    ) -> ProjectState:
        if state is None:
            state = self._create_project_state(with_applied_migrations=True)  # type: ignore[attr-defined]
        lean = LeanState(models=state.models, real_apps=state.real_apps)
        return super().migrate(targets, plan, lean, fake, fake_initial)


class Command(migrate.Command):
    def check(self, *args: Any, **options: Any) -> None:
        """Run the system checks, but not the one for missing migrations."""
        silenced = settings.SILENCED_SYSTEM_CHECKS
        settings.SILENCED_SYSTEM_CHECKS = [*silenced, MIGRATIONS_MISSING]
        try:
            super().check(*args, **options)
        finally:
            settings.SILENCED_SYSTEM_CHECKS = silenced

    @owner_connection()
    def handle(self, *args: Any, **options: Any) -> str | None:
        """Wait for another node's migrations, then run those that are missing still.

        The lock belongs to a transaction on a connection of its own: it holds through PgBouncer as well, ends with the
        process, and a transaction that is idle at READ COMMITTED keeps no index from being built concurrently.
        Afterwards, the application's role exists and has its rights, and the role of a pooler has the settings of its
        sessions.
        """
        with lock_connection(options["database"]) as cursor:
            # a statement that waits would hold a snapshot, for whose end an index built concurrently waits
            while not cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [MIGRATE_LOCK_ID]).fetchone()[0]:
                time.sleep(LOOK_SECONDS)
            migrate.MigrationExecutor = LeanExecutor  # type: ignore[attr-defined]
            printed = super().handle(*args, **options)
            if not (options["plan"] or options["check_unapplied"]):
                create_application_role()
                grant_rights()
            if settings.DATABASE_POOLER_URL:
                store_role_settings()
        return printed
