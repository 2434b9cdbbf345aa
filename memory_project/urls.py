"""The URLs: the API and its description, the admin, and health and metrics outside of the API's prefix."""

from django.contrib import admin
from django.urls import include, path, register_converter
from django.views.generic import RedirectView, TemplateView

from memory_project.http.docs import error_code, error_codes, openapi
from memory_project.http.paths import ExternalIdConverter, KeyConverter

register_converter(ExternalIdConverter, "id")
register_converter(KeyConverter, "key")

urlpatterns = [
    path("api/v1/", include("memory.api.urls")),
    path("api/v1/ledger/", include("ledger.urls")),
    path("api/schema", openapi, name="schema"),
    # served from here: no CDN, no inline script, no inline style
    path("api/docs", TemplateView.as_view(template_name="api_docs.html"), name="docs"),
    path("api/docs/errors", error_codes, name="errors"),
    path("api/docs/errors/<slug:code>", error_code, name="error"),
    path("", RedirectView.as_view(pattern_name="docs")),
    path("", include("memory.api.operations")),
    path("admin", RedirectView.as_view(pattern_name="admin:index")),
    # in place of Django's first page, whose name it keeps
    path("admin/", include("memory.admin.dashboard")),
    path("admin/dashboard/", RedirectView.as_view(pattern_name="admin:index")),
    path("admin/search/", include("memory.admin.search")),
    path("admin/account/", include("memory.admin.switcher")),
    path("admin/playground/", include("memory.admin.playground")),
    path("admin/inbox/", include("memory.admin.inbox")),
    path("admin/remember/", include("memory.admin.remember")),
    path("admin/totp/", include("memory.admin.totp")),
    path("admin/", admin.site.urls),
]

handler400 = "memory_project.http.handlers.bad_request"
handler403 = "memory_project.http.handlers.permission_denied"
handler404 = "memory_project.http.handlers.not_found"
handler500 = "memory_project.http.handlers.server_error"
