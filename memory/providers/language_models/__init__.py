"""Language models, and which of them this service uses for what."""

from memory.providers.language_models.base import LanguageModel, Meter, Question, Usage

__all__ = ["LanguageModel", "Meter", "Question", "Usage"]
