"""Which extractor looks for knowledge: the language model's where one is set, else the rules."""

from memory.extraction.knowledge import Extractor
from memory.extraction.model_extractor import ModelExtractor
from memory.extraction.rules import RuleExtractor
from memory.providers.language_models import language_model


def knowledge_extractor() -> Extractor:
    """The language model's where EXTRACTION_MODEL is set, else the offline one: never one for the other."""
    model = language_model("extraction")
    return RuleExtractor() if model is None else ModelExtractor(model)
