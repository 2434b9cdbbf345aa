"""Language models, and the choice among them for each use.

To use one for something else: a setting that names the model, and its line in MODEL_SETTINGS. To add another kind of
provider: a module next to `openai.py` with a class that implements `LanguageModel`.
"""

import logging
from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from importlib import import_module

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from memory.providers.endpoints import openai_connection
from memory.providers.language_models.base import LanguageModel, Meter, Question, Usage
from memory.providers.language_models.openai import ChatEndpoint, ChatModel

logger = logging.getLogger(__name__)

__all__ = ["MODEL_SETTINGS", "LanguageModel", "Meter", "Question", "Usage", "language_model"]

MODEL_SETTINGS: Mapping[str, str] = {
    "summary": "SUMMARY_MODEL",
    "extraction": "EXTRACTION_MODEL",
    "recall": "RECALL_MODEL",
    "compression": "COMPRESSION_MODEL",
}
"""The setting that names the model of each use."""
DEFAULT_SUMMARY_MODEL = "gpt-4o-mini"
"""The model of OpenAI's own endpoint that writes summaries if only OPENAI_API_KEY is set."""
NO_MODEL = "none"
"""The name that means no model, also where there is a default."""
MAX_NAME_CHARACTERS = 100
"""Characters of a model's name that a row of usage keeps."""


def model_name(use: str) -> str:
    """Return the name of the model for this use; empty for none."""
    name: str = getattr(settings, MODEL_SETTINGS[use])
    if name or use != "summary":
        return "" if name == NO_MODEL else name
    return DEFAULT_SUMMARY_MODEL if settings.OPENAI_API_KEY and not settings.OPENAI_BASE_URL else ""


def announce_default_model() -> None:
    """Log one sentence if summaries are written by a model that no setting names."""
    if model_name("summary") and not settings.SUMMARY_MODEL:
        logger.info(
            "Summaries are written by %s, because OPENAI_API_KEY is set: set SUMMARY_MODEL to another model, or to %s.",
            DEFAULT_SUMMARY_MODEL,
            NO_MODEL,
        )


def load_client() -> None:
    """Load the client of the models if any use has one: for processes that are forked from this one."""
    if any(map(model_name, MODEL_SETTINGS)):
        import_module("openai")


@cache
def language_model(use: str) -> LanguageModel | None:
    """Return the model for this use, or None if its setting is empty and the use works without one.

    Made once per process, without a connection; call `.cache_clear()` after changing settings. Raises
    ImproperlyConfigured for settings that cannot work.
    """
    setting = MODEL_SETTINGS[use]
    name = model_name(use)
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
