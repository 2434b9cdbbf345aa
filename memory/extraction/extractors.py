"""Which extractor looks for knowledge: the language model's where one is set, else the rules."""

from memory.extraction.knowledge import Chunk, Extraction, Extractor
from memory.extraction.model_extractor import ModelExtractor
from memory.providers.language_models import Meter, language_model


class RuleExtractor:
    """Finds nothing."""

    is_remote = False

    def extract(self, chunk: Chunk, *, meter: Meter, deadline_seconds: float) -> Extraction:
        return Extraction(source="rules")


def knowledge_extractor() -> Extractor:
    """The language model's where EXTRACTION_MODEL is set, else the offline one: never one for the other."""
    model = language_model("extraction")
    return RuleExtractor() if model is None else ModelExtractor(model)
