"""The OpenAPI document and its page, served from here: no CDN, no inline script, no inline style."""

from typing import Any, ClassVar

from drf_spectacular.renderers import OpenApiJsonRenderer2, OpenApiYamlRenderer2
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
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


class OpenApiPage(SpectacularSwaggerSplitView):
    template_name = "api_docs.html"
