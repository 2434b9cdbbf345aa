"""Where everything is: the API, its description, health and metrics outside its prefix, the admin."""

from django.contrib import admin
from django.urls import include, path, register_converter

from memory_project.http.paths import ExternalIdConverter

register_converter(ExternalIdConverter, "id")

urlpatterns = [
    path("api/v1/", include("memory.api.urls")),
    path("admin/", admin.site.urls),
]

handler400 = "memory_project.http.handlers.bad_request"
handler403 = "memory_project.http.handlers.permission_denied"
handler404 = "memory_project.http.handlers.not_found"
handler500 = "memory_project.http.handlers.server_error"
