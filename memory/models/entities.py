"""Entities: the people, places, organisations and things that are spoken of, and the names that they go by."""

from typing import Any

from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower

from memory.models.accounts import Account
from memory.models.memory import Memory
from memory_project.ids import uuid7

LONGEST_NAME = 500
LONGEST_TYPE = 50


class Entity(Memory):
    """Something with a name. The memory's `event_time` is when it was first seen, its `text` what is searched.

    `aliases` are its other names as they were written. One that was merged into another is archived, keeps the links
    that would have become links to itself, and names the other.
    """

    name = models.CharField(max_length=LONGEST_NAME)
    type = models.CharField(max_length=LONGEST_TYPE)
    aliases = models.JSONField(default=list, blank=True)
    description = models.TextField(blank=True, default="")
    properties = models.JSONField(default=dict, blank=True)
    # the database empties it with the entity that it names (see the migration)
    merged_into = models.ForeignKey(
        "self", models.DO_NOTHING, null=True, blank=True, related_name="+", db_index=False, db_constraint=False
    )

    class Meta:
        db_table = "entities"
        verbose_name_plural = "entities"
        constraints = [
            models.CheckConstraint(condition=~Q(name=""), name="entity_has_a_name"),
            models.CheckConstraint(condition=~Q(type=""), name="entity_has_a_type"),
        ]

    def __str__(self) -> str:
        return f"entity {self.pk}"

    @property
    def names(self) -> list[str]:
        """Its name, then its aliases."""
        aliases: list[Any] = self.aliases
        return [self.name, *aliases]


class EntityName(models.Model):
    """A name, or an alias, of an entity. `identity` (`memory.identity.entity_identity`) is unique in the account: of
    one holder, channel and type a name stands for one entity, whoever writes it first."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    account = models.ForeignKey(Account, models.CASCADE, related_name="+", db_index=False)
    # the database takes names along with their entity, by a key that stays in the account (see the migration)
    entity = models.ForeignKey(Entity, models.CASCADE, related_name="known_names", db_index=False, db_constraint=False)
    identity = models.CharField(max_length=64)
    # of holder and normalized name (`memory.identity.name_digest`): names are looked up whatever they are names of
    name_digest = models.CharField(max_length=64)
    name = models.CharField(max_length=LONGEST_NAME)

    class Meta:
        db_table = "entity_names"
        constraints = [models.UniqueConstraint(fields=["account", "identity"], name="entity_name_once")]
        indexes = [
            models.Index(fields=["account", "entity"], name="entity_names_of"),
            models.Index(fields=["account", "name_digest"], name="entity_names_alike"),
            # whosever it is: a question may name what others know
            models.Index("account", Lower("name"), name="entity_names_spelt"),
        ]

    def __str__(self) -> str:
        return f"name {self.pk}"
