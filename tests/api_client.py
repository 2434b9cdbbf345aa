"""A client of the API as the WSGI layer lets requests in: ids in a path stay encoded until the URL converter."""

from typing import Any
from urllib.parse import quote

from rest_framework.test import APIClient

from memory_project.http.paths import decode_path_info

API = "/api/v1"


class ServiceClient(APIClient):
    """Sends JSON with a key; paths are below /api/v1 and raw."""

    def __init__(self, secret: str = "", **options: Any) -> None:
        super().__init__(**options)
        if secret:
            self.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")

    def generic(self, method: str, path: Any, *args: Any, **options: Any) -> Any:
        path = str(path)
        return super().generic(method, path if path.startswith("/api/") else API + path, *args, **options)

    def _get_path(self, parsed: Any) -> str:
        return decode_path_info(str(parsed.path))


def segment(text: str) -> str:
    """An id as a path segment."""
    return quote(text, safe="")
