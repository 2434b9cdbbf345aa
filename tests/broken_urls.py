"""URLs whose views fail, in front of the project's own error handlers."""

from django.db import OperationalError
from django.http import HttpRequest, HttpResponse
from django.urls import path

from memory_project.urls import handler400, handler403, handler404, handler500

__all__ = ["handler400", "handler403", "handler404", "handler500", "urlpatterns"]


def divide_by_zero(request: HttpRequest) -> HttpResponse:
    return HttpResponse(1 // 0)


def lose_postgresql(request: HttpRequest) -> HttpResponse:
    raise OperationalError("the connection is closed; password=secret")


urlpatterns = [
    path("api/v1/broken", divide_by_zero),
    path("api/v1/storeless", lose_postgresql),
    path("admin/storeless", lose_postgresql),
]
