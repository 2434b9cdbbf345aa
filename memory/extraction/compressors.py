"""The choice of the compressor: the language model's where one is configured, else quotations."""

from memory.extraction.compression import Compressor, ExtractiveCompressor
from memory.extraction.model_compressor import ModelCompressor
from memory.providers.language_models import language_model


def work_compressor() -> Compressor:
    """Return the language model's compressor if COMPRESSION_MODEL is set, else the offline one."""
    model = language_model("compression")
    return ExtractiveCompressor() if model is None else ModelCompressor(model)
