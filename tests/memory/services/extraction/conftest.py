import pytest
from pytest_django import Settings

from memory.providers.language_models import language_model
from tests.language_model_server import LanguageModelServer


@pytest.fixture
def model(language_model_server: LanguageModelServer, settings: Settings) -> LanguageModelServer:
    settings.EXTRACTION_MODEL = settings.SUMMARY_MODEL
    language_model.cache_clear()
    return language_model_server
