"""Language models, and the choice among them for each use.

To use one for something else: a setting that names the model, and its line in MODEL_SETTINGS. To add another kind of
provider: a module next to `openai.py` with a class that implements `LanguageModel`.
"""

from collections.abc import Mapping
from decimal import Decimal
from functools import cache

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from memory.providers.endpoints import openai_connection
from memory.providers.language_models.base import LanguageModel, Meter, Question, Usage
from memory.providers.language_models.openai import ChatEndpoint, ChatModel

__all__ = ["MODEL_SETTINGS", "LanguageModel", "Meter", "Question", "Usage", "language_model"]

MODEL_SETTINGS: Mapping[str, str] = {
    "summary": "SUMMARY_MODEL",
    "extraction": "EXTRACTION_MODEL",
    "recall": "RECALL_MODEL",
    "compression": "COMPRESSION_MODEL",
}
"""The setting that names the model of each use."""
MAX_NAME_CHARACTERS = 100
"""Characters of a model's name that a row of usage keeps."""


@cache
def language_model(use: str) -> LanguageModel | None:
    """Return the model for this use, or None if its setting is empty and the use works without one.

    Made once per process, without a connection; call `.cache_clear()` after changing settings. Raises
    ImproperlyConfigured for settings that cannot work.
    """
    setting = MODEL_SETTINGS[use]
    name: str = getattr(settings, setting)
    if not name:
        return None
    if len(name) > MAX_NAME_CHARACTERS:
        raise ImproperlyConfigured(
            f"{setting} has {len(name)} characters; a model's name has at most {MAX_NAME_CHARACTERS}"
        )
    return ChatModel(
        ChatEndpoint(
            model=name,
            timeout_seconds=settings.LANGUAGE_MODEL_TIMEOUT_SECONDS,
            thinking_tokens=settings.LANGUAGE_MODEL_THINKING_TOKENS,
            prompt_price=Decimal(str(settings.LANGUAGE_MODEL_PROMPT_PRICE)),
            completion_price=Decimal(str(settings.LANGUAGE_MODEL_COMPLETION_PRICE)),
            **openai_connection(setting),
        )
    )
