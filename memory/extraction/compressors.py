"""Which compressor tells work in fewer words: the language model's where one is set, else quotations."""

from memory.extraction.compression import Compressor, ExtractiveCompressor
from memory.extraction.model_compressor import ModelCompressor
from memory.providers.language_models import language_model


def work_compressor() -> Compressor:
    """The language model's where COMPRESSION_MODEL is set, else the offline one: never one for the other."""
    model = language_model("compression")
    return ExtractiveCompressor() if model is None else ModelCompressor(model)
