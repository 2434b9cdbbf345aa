"""The OpenAPI document and its page, served from here: no CDN, no inline script, no inline style."""

from typing import Any, ClassVar

from drf_spectacular.renderers import OpenApiJsonRenderer2, OpenApiYamlRenderer2
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.exceptions import ValidationError
from rest_framework.renderers import BaseRenderer


class Document(SpectacularAPIView):
    """YAML, or JSON where `?format=json` asks for it; what a browser says it accepts does not count."""

    formats: ClassVar[dict[str, type[BaseRenderer]]] = {"yaml": OpenApiYamlRenderer2, "json": OpenApiJsonRenderer2}

    def get_renderers(self) -> list[Any]:
        wanted = self.request.GET.get("format", "yaml") if self.request else "yaml"
        if wanted not in self.formats:
            raise ValidationError({"format": [f"one of {', '.join(self.formats)}"]})
        return [self.formats[wanted]()]


class DocumentPage(SpectacularSwaggerSplitView):
    template_name = "api_docs.html"
