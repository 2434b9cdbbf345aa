"""Links between memories: the edges of the documented graph, whose nodes are memories."""

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from memory.models.accounts import AccountRow
from memory.models.memory import Memory
from memory_project.tenancy import AccountForeignKey, ReferenceInAccount

STRUCTURAL_TYPES = frozenset(
    {
        *("DERIVED_FROM", "ABOUT", "SUPERSEDES", "PROMOTED_FROM", "MENTIONS", "SUBGOAL_OF", "BLOCKED_BY"),
        *("CONTINUES", "MERGED_INTO", "WORKS_ON", "PRODUCED", "USED", "DUPLICATE_OF", "NOT_DUPLICATE_OF", "REPLACES"),
    }
)
"""Types of links that the service makes and interprets. Clients, extractors and staff cannot make a relationship of
such a type."""


class Link(AccountRow):
    """A typed, weighted edge. A foreign key over (account, id) keeps both ends in the link's account."""

    source = AccountForeignKey(Memory, models.CASCADE, related_name="links_out")
    target = AccountForeignKey(Memory, models.CASCADE, related_name="links_in")
    type = models.CharField(max_length=50)
    weight = models.FloatField(default=1.0)
    properties = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        db_table = "memory_links"
        constraints = [
            ReferenceInAccount("source", name="memory_links_source_in_account"),
            ReferenceInAccount("target", name="memory_links_target_in_account"),
            models.UniqueConstraint(fields=["account", "source", "type", "target"], name="link_once"),
            models.CheckConstraint(condition=~Q(source=F("target")), name="link_between_two"),
            models.CheckConstraint(condition=~Q(type=""), name="link_has_a_type"),
            models.UniqueConstraint(
                fields=["account", "source"], name="goal_has_one_parent", condition=Q(type="SUBGOAL_OF")
            ),
        ]
        indexes = [
            # graph walks read the links of greatest weight, of some types or of all, and not the rest of a hub
            models.Index(fields=["account", "source", "type", "-weight", "id"], name="link_out_by_type"),
            models.Index(fields=["account", "target", "type", "-weight", "id"], name="link_in_by_type"),
            models.Index(fields=["account", "source", "-weight", "id"], name="link_out_by_weight"),
            models.Index(fields=["account", "target", "-weight", "id"], name="link_in_by_weight"),
        ]

    def __str__(self) -> str:
        return f"{self.source_id} {self.type} {self.target_id}"
