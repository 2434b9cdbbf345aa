"""`/artifacts`: store, list, read with related rows, change, delete; hidden from others."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from pytest_django import DjangoAssertNumQueries

from memory.models import Artifact, Link, Vector
from memory.owner import Owner
from memory.services.artifacts.store import MAX_URI_CHARACTERS
from tests.api_client import ServiceClient
from tests.embedding_server import MODEL, WIDTH, EmbeddingServer, vector_of
from tests.memory.artifacts import kept
from tests.memory.records import add_record

NOBODY = UUID(int=7)
"""The id of nothing, the same in every process that collects these tests."""

ACTING = {"agent_id": "assistant"}
URI = "docs/roses.md"

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _embedder(embedding_server: EmbeddingServer) -> None:
    """Start an embedding server, so that every text gets its vector."""


def post(api: ServiceClient, uri: str = URI, **fields: Any) -> Any:
    headers = {name: fields.pop(name) for name in tuple(fields) if name.startswith("HTTP_")}
    return api.post("/artifacts", {**ACTING, "uri": uri, **fields}, **headers)


def posted(api: ServiceClient, uri: str = URI, **fields: Any) -> str:
    return str(post(api, uri, **fields).json()["id"])


def listed(api: ServiceClient, query: str = "") -> list[tuple[str, int]]:
    answer = api.get(f"/artifacts?agent_id=assistant{query}").json()
    return [(each["uri"], each["revision"]) for each in answer["results"]]


def patch(api: ServiceClient, artifact: str, fields: dict[str, Any], **headers: Any) -> Any:
    return api.patch(f"/artifacts/{artifact}", {**ACTING, **fields}, **headers)


def test_an_artifact_is_stored_and_read(api: ServiceClient, owner: Owner) -> None:
    record = add_record(owner).record
    fields = {"type": "document", "title": "Roses", "description": "Water them.", "digest": "sha256:1", "label": "v1"}

    answer = post(api, **fields, record_id=str(record.id), user_id="ana", channel="garden", metadata={"plot": 4})
    read = api.get(f"/artifacts/{answer.json()['id']}?agent_id=assistant&user_id=ana").json()

    said: dict[str, Any] = {
        **fields,
        "uri": URI,
        "agent_id": "assistant",
        "user_id": "ana",
        "channel": "garden",
        "metadata": {"plot": 4},
    }
    said |= {"revision": 1, "is_latest": True, "version": 1, "embedding": "stored", "conversation_id": "chat-1"}
    said |= {"record_id": str(record.id), "goal_id": None}
    assert (answer.status_code, answer.headers["ETag"]) == (201, '"1"')
    assert read | answer.json() | said == read
    assert (read["record"]["id"], read["record"]["number"], read["goal"]) == (str(record.id), 0, None)


def test_the_same_digest_returns_the_stored_artifact_and_another_digest_makes_a_revision(api: ServiceClient) -> None:
    first = post(api, digest="sha256:1")

    again = post(api, digest="sha256:1")
    following = post(api, digest="sha256:2")

    assert (first.status_code, again.status_code, following.status_code) == (201, 200, 201)
    assert (again.json(), following.json()["revision"]) == (first.json(), 2)
    assert listed(api) == [(URI, 2)]
    assert listed(api, "&revisions=all") == [(URI, 2), (URI, 1)]


@pytest.mark.parametrize(
    "change",
    [
        {"uri": ""},
        {"uri": None},
        {"uri": 7},
        {"uri": "x" * (MAX_URI_CHARACTERS + 1)},
        {"uri": "JavaScript:alert(1)"},
        {"uri": " javascript:alert(1)"},
        {"uri": "java\tscript:alert(1)"},
        {"uri": "java%0Ascript:alert(1)"},
        {"uri": "data:text/html,x"},
        {"uri": "vbscript:x"},
        {"uri": "blob:x"},
        {"uri": "about:blank"},
        {"uri": "docs\n/roses.md"},
        {"uri": "docs/\u202eexe.md"},
        {"title": "two\nlines"},
        {"title": "x" * 501},
        {"type": "x" * 51},
        {"digest": "x" * 201},
        {"label": "x" * 101},
        {"description": "x" * 10_001},
        {"record_id": "x"},
        {"goal_id": None},
        {"about": "x"},
        {"about": [str(NOBODY)] * 101},
        {"derived_from": [None]},
        {"metadata": []},
        {"embedding": []},
        {"revision": 2},
    ],
    ids=lambda change: ascii(change)[:40],
)
def test_an_invalid_artifact_is_refused_and_not_stored(api: ServiceClient, change: dict[str, Any]) -> None:
    answer = post(api, **change)

    assert answer.status_code == 400
    assert set(answer.json()["errors"]) == set(change)
    assert not Artifact.objects.exists()


@pytest.mark.parametrize("name", ["record_id", "goal_id", "about", "derived_from"])
def test_a_reference_to_an_unknown_row_is_a_422(api: ServiceClient, name: str) -> None:
    named: Any = str(NOBODY) if name.endswith("_id") else [str(NOBODY)]

    answer = post(api, **{name: named})

    assert (answer.status_code, Artifact.objects.count()) == (422, 0)


def test_an_artifact_is_read_with_its_goal_links_and_revisions(api: ServiceClient) -> None:
    goal = str(api.post("/goals", {**ACTING, "description": "Save the roses."}).json()["id"])
    source = posted(api, "docs/source.md", title="Source")
    first = posted(api, digest="sha256:1")
    second = posted(api, digest="sha256:2", label="v2", goal_id=goal, derived_from=[source])

    read = api.get(f"/artifacts/{second}?agent_id=assistant").json()

    links = {(link["type"], link["direction"], link["id"], link["kind"]): link["label"] for link in read["links"]}
    assert read["goal"] == {"id": goal, "description": "Save the roses.", "status": "active"}
    assert links == {
        ("SUPERSEDES", "out", first, "artifact"): URI,
        ("DERIVED_FROM", "out", source, "artifact"): "Source\ndocs/source.md",
        ("WORKS_ON", "out", goal, "goal"): "Save the roses.",
    }
    assert [(each["id"], each["revision"], each["is_latest"]) for each in read["revisions"]] == [
        (second, 2, True),
        (first, 1, False),
    ]
    assert not read["truncated"]


def test_a_link_to_a_turn_slot_does_not_show_the_text_of_the_turn(api: ServiceClient, owner: Owner) -> None:
    made = posted(api, record_id=str(add_record(owner).record.id))

    (link,) = api.get(f"/artifacts/{made}?agent_id=assistant").json()["links"]

    assert (link["type"], link["direction"], link["kind"], link["label"]) == ("PRODUCED", "in", "turn_slot", "")


def test_lists_of_artifacts_are_filtered(api: ServiceClient, owner: Owner) -> None:
    goal = str(api.post("/goals", {**ACTING, "description": "Save the roses."}).json()["id"])
    record = str(add_record(owner).record.id)
    post(api, "docs/a%b.md", type="page", goal_id=goal)
    post(api, "docs/azb.md", record_id=record)
    post(api, "src/main.py", channel="garden")

    assert listed(api, f"&goal_id={goal}") == listed(api, "&type=page") == [("docs/a%b.md", 1)]
    assert listed(api, f"&record_id={record}") == listed(api, "&conversation_id=chat-1") == [("docs/azb.md", 1)]
    assert listed(api, "&uri=docs/azb.md") == [("docs/azb.md", 1)]
    assert listed(api, "&uri_prefix=docs/a%25") == [("docs/a%b.md", 1)]
    assert listed(api, "&channel=garden") == [("src/main.py", 1), ("docs/azb.md", 1), ("docs/a%b.md", 1)]


@pytest.mark.parametrize("query", ["revisions=some", "record_id=x", "goal_id=x", "surprise=1", "uri=" + "x" * 2_001])
def test_invalid_filters_of_artifacts_are_refused(api: ServiceClient, query: str) -> None:
    assert api.get(f"/artifacts?{query}").status_code == 400


def test_changing_an_artifact_makes_the_next_version_of_the_same_revision(api: ServiceClient) -> None:
    made = posted(api, title="Roses", description="Water them.", digest="sha256:1")

    changed = patch(api, made, {"title": "Tulips", "type": "page", "metadata": {"a": 1}}, HTTP_IF_MATCH='"1"')
    same = patch(api, made, {"title": "Tulips"})
    stale = patch(api, made, {"title": "Lilies"}, HTTP_IF_MATCH='"1"')

    assert (changed.status_code, changed.headers["ETag"], same.headers["ETag"]) == (200, '"2"', '"2"')
    assert changed.json()["description"] == "Water them."
    assert (stale.status_code, Artifact.objects.get().text) == (412, "Tulips\ndocs/roses.md\nWater them.")
    assert Vector.objects.count() == 1


def test_a_new_goal_replaces_the_former_goal_of_an_artifact(api: ServiceClient) -> None:
    goals = [str(api.post("/goals", {**ACTING, "description": "Save them."}).json()["id"]) for _ in range(2)]
    made = posted(api, goal_id=goals[0])

    moved = patch(api, made, {"goal_id": goals[1]}).json()["goal_id"]
    targets = [str(target) for target in Link.objects.values_list("target_id", flat=True)]
    left = patch(api, made, {"goal_id": None}).json()["goal_id"]

    assert (moved, targets, left, Link.objects.count()) == (goals[1], [goals[1]], None, 0)
    assert patch(api, made, {"goal_id": str(NOBODY)}).status_code == 422


@pytest.mark.parametrize(
    "change",
    [{"title": "a\nb"}, {"uri": "other"}, {"digest": "x"}, {"goal_id": "x"}, {"embedding": [0.0]}],
    ids=str,
)
def test_invalid_changes_of_an_artifact_are_refused(api: ServiceClient, change: dict[str, Any]) -> None:
    made = posted(api)

    assert patch(api, made, change).status_code == 400
    assert Artifact.objects.get().version == 1


def test_an_artifact_may_be_stored_with_a_vector_of_the_client(api: ServiceClient) -> None:
    own = [float(number) for number in vector_of("something else")]

    made = post(api, embedding=own, embedding_model=MODEL)
    wrong = post(api, "other", embedding=[*own, 1.0], embedding_model=MODEL)

    assert (made.json()["embedding"], len(own), Vector.objects.get().width) == ("stored", WIDTH, WIDTH)
    assert wrong.status_code == 422


def test_an_agent_that_may_only_read_an_artifact_cannot_change_it(api: ServiceClient, owner: Owner) -> None:
    made = kept(replace(owner, agent_id=""))
    path, reader = f"/artifacts/{made.id}", {"agent_id": "colleague", "user_id": "ana"}

    assert api.get(f"{path}?agent_id=colleague&user_id=ana").status_code == 200
    assert api.patch(path, {**reader, "title": "Mine"}).status_code == 403
    assert api.delete(f"{path}?agent_id=colleague&user_id=ana").status_code == 403


@pytest.mark.parametrize("sub", ["", "/lineage"])
def test_other_agents_and_accounts_cannot_find_an_artifact(
    api: ServiceClient, stranger_api: ServiceClient, owner: Owner, sub: str
) -> None:
    path = f"/artifacts/{kept(owner).id}"

    assert api.get(f"{path}{sub}?agent_id=colleague").status_code == stranger_api.get(path + sub).status_code == 404
    assert api.patch(path, {"agent_id": "colleague", "title": "Mine"}).status_code == 404
    assert stranger_api.delete(path).status_code == 404
    assert stranger_api.get("/artifacts").json()["results"] == []


def test_after_deleting_a_revision_the_one_before_is_the_latest(api: ServiceClient) -> None:
    first = posted(api, digest="sha256:1")
    second = posted(api, digest="sha256:2")

    gone = api.delete(f"/artifacts/{second}?agent_id=assistant", HTTP_IF_MATCH='"1"')

    assert (gone.status_code, listed(api)) == (204, [(URI, 1)])
    assert api.get(f"/artifacts/{second}").status_code == 404
    assert post(api, digest="sha256:1").json()["id"] == first


def test_the_lineage_of_an_artifact_lists_sources_and_results(api: ServiceClient) -> None:
    source = posted(api, "source")
    first = posted(api, digest="sha256:1", derived_from=[source])
    second = posted(api, digest="sha256:2")
    built = posted(api, "built", derived_from=[second])

    lineage = api.get(f"/artifacts/{first}/lineage?agent_id=assistant").json()

    assert [(each["id"], each["step"]) for each in lineage["artifacts"]] == [
        (source, -1),
        (first, 0),
        (second, 1),
        (built, 2),
    ]
    assert {(link["source"], link["type"], link["target"]) for link in lineage["links"]} == {
        (first, "DERIVED_FROM", source),
        (second, "SUPERSEDES", first),
        (built, "DERIVED_FROM", second),
    }
    assert not lineage["truncated"]


def test_a_post_repeated_with_one_idempotency_key_gets_the_same_answer(api: ServiceClient) -> None:
    answers = [post(api, digest="sha256:1", HTTP_IDEMPOTENCY_KEY="one") for _ in range(2)]

    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].json() == answers[1].json()


def test_a_list_of_artifacts_takes_two_statements_at_any_length(
    api: ServiceClient, owner: Owner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(12):
        kept(owner, f"docs/{number}.md")
    api.get("/artifacts")

    for size in (2, 10):
        with django_assert_num_queries(2):
            assert len(api.get(f"/artifacts?agent_id=assistant&page_size={size}").json()["results"]) == size
