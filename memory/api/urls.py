"""The table of contents below /api/v1: one line a path. Ids of the client's are `<id:…>`, ids of ours `<uuid:…>`."""

from django.urls import path

from memory.api.agents import Agents

urlpatterns = [
    path("agents", Agents.as_view({"get": "list", "post": "create"})),
    path("agents/<id:agent_id>", Agents.as_view({"get": "retrieve", "patch": "partial_update"})),
]
