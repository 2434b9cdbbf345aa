"""Migrations: that none is missing, and which models are rendered again after an operation."""

import pytest
from django.core.management import call_command
from django.db import models
from django.db.migrations.state import ModelState, ProjectState

from memory.management.commands.migrate import LeanState

KEY = ("id", models.BigAutoField(primary_key=True))


def rendered_state() -> LeanState:
    """Return a state with a shelf and a book on it, rendered."""
    shelf = models.ForeignKey("tests.Shelf", models.CASCADE)
    state = LeanState()
    state.add_model(ModelState("tests", "Shelf", [KEY]))
    state.add_model(ModelState("tests", "Book", [KEY, ("shelf", shelf)]))
    assert len(state.apps.get_models()) == 2
    return state


def model(state: ProjectState, name: str) -> type[models.Model]:
    found: type[models.Model] = state.apps.get_model("tests", name)
    return found


@pytest.mark.django_db
def test_no_migration_is_missing() -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=1)


def test_a_changed_model_alone_is_rendered_again() -> None:
    state = rendered_state()
    shelf, book = model(state, "shelf"), model(state, "book")

    state.add_field("tests", "shelf", "room", models.TextField(), preserve_default=True)

    assert model(state, "shelf") is not shelf
    assert model(state, "shelf")._meta.get_field("room")
    assert model(state, "book") is book


def test_operations_in_python_see_all_models_anew() -> None:
    state = rendered_state()
    state.add_field("tests", "shelf", "room", models.TextField(), preserve_default=True)

    seen = state.clone()
    seen.clear_delayed_apps_cache()

    assert model(seen, "book")._meta.get_field("shelf").related_model is model(seen, "shelf")


def test_references_follow_the_type_of_a_key() -> None:
    state = rendered_state()

    state.alter_field("tests", "shelf", "id", models.UUIDField(primary_key=True), preserve_default=True)

    shelf = model(state, "book")._meta.get_field("shelf")
    assert isinstance(shelf, models.ForeignKey)
    assert isinstance(shelf.target_field, models.UUIDField)
