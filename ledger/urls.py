"""URL patterns below /api/v1/ledger/."""

from django.urls import path

from ledger.views import Ledgers

urlpatterns = [
    path("<id:conversation_id>", Ledgers.as_view({"get": "retrieve"})),
    path("<id:conversation_id>/check", Ledgers.as_view({"post": "check"})),
    path("<id:conversation_id>/mark", Ledgers.as_view({"post": "mark"})),
    path("<id:conversation_id>/evict", Ledgers.as_view({"post": "evict"})),
]
