"""The choice of the extractor: the language model's where one is configured, else the rules."""

from memory.extraction.knowledge import Extractor
from memory.extraction.model_extractor import ModelExtractor
from memory.extraction.rules import RuleExtractor
from memory.providers.language_models import language_model


def knowledge_extractor() -> Extractor:
    """Return the language model's extractor if EXTRACTION_MODEL is set, else the offline one."""
    model = language_model("extraction")
    return RuleExtractor() if model is None else ModelExtractor(model)
