"""Entities: people, places, organisations and things that conversations mention, and the names they are known by."""

from typing import Any

from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower

from memory.models.accounts import AccountRow
from memory.models.memory import TABLE, MemoryRow
from memory_project.tenancy import AccountForeignKey, ReferenceInAccount

MAX_ENTITY_NAME_CHARACTERS = 500
MAX_ENTITY_TYPE_CHARACTERS = 50


class Entity(MemoryRow):
    """Something with a name. The memory's `event_time` is when it was first seen, its `text` is what searches read.

    `aliases` are its other names as they were written. An entity that was merged into another one is archived and
    refers to it. It keeps the links that would have become links from the other one to itself.
    """

    name = models.CharField(max_length=MAX_ENTITY_NAME_CHARACTERS)
    type = models.CharField(max_length=MAX_ENTITY_TYPE_CHARACTERS)
    aliases = models.JSONField(default=list, blank=True)
    description = models.TextField(blank=True, default="")
    properties = models.JSONField(default=dict, blank=True)
    # code that deletes that entity clears it
    merged_into = AccountForeignKey("self", models.DO_NOTHING, null=True, blank=True, related_name="+")

    class Meta:
        db_table = TABLE
        managed = False
        verbose_name_plural = "entities"
        constraints = [
            ReferenceInAccount("merged_into", name="entity_merged_into_in_account"),
            models.CheckConstraint(condition=~Q(name=""), name="entity_has_a_name"),
            models.CheckConstraint(condition=~Q(type=""), name="entity_has_a_type"),
        ]
        indexes = [
            models.Index(
                fields=["account", "merged_into"], name="entity_merged", condition=Q(merged_into__isnull=False)
            ),
        ]

    @property
    def names(self) -> list[str]:
        """The name, then the aliases."""
        aliases: list[Any] = self.aliases
        return [self.name, *aliases]


class EntityName(AccountRow):
    """A name or an alias of an entity.

    `identity` (`memory.identity.entity_identity`) is unique in the account: for one holder, channel and type, a name
    stands for one entity, the one that was stored first.
    """

    # the database deletes names with their entity
    entity = AccountForeignKey(Entity, models.CASCADE, related_name="known_names")
    identity = models.CharField(max_length=64)
    # hash of holder and normalized name (`memory.identity.name_digest`), for look-ups whatever the type
    name_digest = models.CharField(max_length=64)
    name = models.CharField(max_length=MAX_ENTITY_NAME_CHARACTERS)

    class Meta:
        db_table = "entity_names"
        constraints = [
            ReferenceInAccount("entity", name="entity_names_entity_in_account"),
            models.UniqueConstraint(fields=["account", "identity"], name="entity_name_once"),
        ]
        indexes = [
            models.Index(fields=["account", "entity"], name="entity_names_of"),
            models.Index(fields=["account", "name_digest"], name="entity_names_alike"),
            # without the holder: a question may name what others know
            models.Index("account", Lower("name"), name="entity_names_spelt"),
        ]

    def __str__(self) -> str:
        return f"name {self.pk}"
