"""The shipped groups of staff, whose permissions follow from the registered pages (`changed_by`)."""

from typing import Any

from django.apps import AppConfig
from django.apps import apps as installed_apps
from django.contrib import admin
from django.contrib.auth import get_permission_codename

from memory_project.staff import AccountLimitedAdmin, StaffGroup

CHANGES = ("add", "change", "delete")


def update_groups(sender: AppConfig, using: str = "default", apps: Any = installed_apps, **options: Any) -> None:
    """Make the groups, and give each what it may do with the models of an app that has just been migrated.

    `apps` has the models as the migrations left them. Nothing is taken from a group, and nothing is done while
    there are no permissions yet.
    """
    try:
        groups, permissions = apps.get_model("auth", "Group"), apps.get_model("auth", "Permission")
    except LookupError:
        return
    allowed: dict[StaffGroup, set[str]] = {group: set() for group in StaffGroup}
    for model, pages in admin.site._registry.items():
        if model._meta.app_label != sender.label or not isinstance(pages, AccountLimitedAdmin):
            continue
        for group in StaffGroup:
            allowed[group].add(get_permission_codename("view", model._meta))
        allowed[pages.changed_by] |= {get_permission_codename(verb, model._meta) for verb in CHANGES}
    for group, names in allowed.items():
        found = permissions.objects.using(using).filter(content_type__app_label=sender.label, codename__in=names)
        if ids := list(found.values_list("pk", flat=True)):
            row, _ = groups.objects.using(using).get_or_create(name=group.value)
            row.permissions.add(*ids)
