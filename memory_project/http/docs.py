"""The view of the OpenAPI document."""

from typing import Any, ClassVar

from drf_spectacular.renderers import OpenApiJsonRenderer2, OpenApiYamlRenderer2
from drf_spectacular.views import SpectacularAPIView
from rest_framework.exceptions import ValidationError
from rest_framework.renderers import BaseRenderer


class OpenApiDocument(SpectacularAPIView):
    """The OpenAPI document as YAML, or as JSON with `?format=json`. The Accept header of a browser does not count."""

    formats: ClassVar[dict[str, type[BaseRenderer]]] = {"yaml": OpenApiYamlRenderer2, "json": OpenApiJsonRenderer2}

    def get_renderers(self) -> list[Any]:
        wanted = self.request.GET.get("format", "yaml") if self.request else "yaml"
        if wanted not in self.formats:
            raise ValidationError({"format": [f"Must be one of: {', '.join(self.formats)}."]})
        return [self.formats[wanted]()]
