import gc
from types import ModuleType

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class MemoryConfig(AppConfig):
    name = "memory"
    verbose_name = "Memory"
    default_auto_field = "django.db.models.BigAutoField"

    def __init__(self, app_name: str, app_module: ModuleType) -> None:
        super().__init__(app_name, app_module)
        # until everything is loaded there is no garbage, and a seventh of the time of a start goes into looking for it
        gc.disable()

    def ready(self) -> None:
        from memory import checks  # noqa: F401, PLC0415 - registers the system checks once apps are loaded
        from memory.admin.groups import update_groups  # noqa: PLC0415 - models are loaded now

        # after the permissions of the same app, which `auth` makes
        post_migrate.connect(update_groups, dispatch_uid="staff groups")
        gc.freeze()
        gc.enable()
