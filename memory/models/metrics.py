"""Samples of the installation's metrics, which show how they develop over time."""

from django.db import models

from memory_project.ids import uuid7


class MetricSample(models.Model):
    """The value of a metric at a time. `name` is that of `/metrics`; `label` is a kind, a quantile or empty."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    at = models.DateTimeField()
    name = models.CharField(max_length=100)
    label = models.CharField(max_length=100, blank=True, default="")
    value = models.FloatField()

    class Meta:
        db_table = "metric_samples"
        constraints = [models.UniqueConstraint(fields=["name", "label", "at"], name="sample_once")]
        indexes = [models.Index(fields=["at"], name="sample_time")]

    def __str__(self) -> str:
        return f"{self.name} {self.label} {self.at:%Y-%m-%d %H:%M}"
