"""Paths outside the API's prefix, for operators of the service."""

from django.urls import path

from memory.api.health import live, ready
from memory.api.metrics import metrics

urlpatterns = [
    path("health/live", live),
    path("health/ready", ready),
    path("metrics", metrics),
]
