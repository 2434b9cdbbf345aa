"""`/contexts/{context_id}/items`: keyed values under namespaces."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memory.models import ContextEntry, Vector
from memory.services.contexts.rot import find_stale_entries
from tests.api_client import ServiceClient
from tests.embedding_server import EmbeddingServer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]


@pytest.fixture
def context(bound_api: ServiceClient, embedding_server: EmbeddingServer) -> str:
    return str(bound_api.post("/contexts", {"name": "store"}).json()["id"])


def item(namespace: Sequence[str], key: str, value: Any, **fields: Any) -> dict[str, Any]:
    return {"namespace": list(namespace), "key": key, "value": value, **fields}


def write(api: ServiceClient, context: str, *items: dict[str, Any], **fields: Any) -> dict[str, Any]:
    answer = api.post(f"/contexts/{context}/items", {"items": list(items), **fields})
    assert answer.status_code == 200, answer.json()
    return dict(answer.json())


def read(api: ServiceClient, context: str, namespace: Sequence[str], key: str, **fields: Any) -> Any:
    body = {"reads": [{"namespace": list(namespace), "key": key, **fields}]}
    return api.post(f"/contexts/{context}/items/query", body).json()["reads"][0]


def search(api: ServiceClient, context: str, *prefix: str, **fields: Any) -> list[str]:
    body = {"searches": [{"namespace_prefix": list(prefix), **fields}]}
    answer = api.post(f"/contexts/{context}/items/query", body).json()
    return [each["key"] for each in answer["searches"][0]["items"]]


def list_namespaces(api: ServiceClient, context: str, **fields: Any) -> list[str]:
    answer = api.post(f"/contexts/{context}/items/query", {"namespaces": [fields]}).json()
    return [".".join(each) for each in answer["namespaces"][0]]


def test_an_item_is_stored_replaced_and_deleted(bound_api: ServiceClient, context: str) -> None:
    done = write(bound_api, context, item(["users", "ana"], "prefs", {"seat": "aisle"}))
    write(bound_api, context, item(["users", "ana"], "prefs", {"seat": "window"}))

    assert done == {"stored": 1, "versions": [1], "deleted": 0}
    assert read(bound_api, context, ["users", "ana"], "prefs")["value"] == {"seat": "window"}
    gone = {"deleted": [{"namespace": ["users", "ana"], "key": "prefs"}]}
    assert write(bound_api, context, **gone) == {"stored": 0, "versions": [], "deleted": 1}
    assert write(bound_api, context, **gone) == {"stored": 0, "versions": [], "deleted": 0}
    assert read(bound_api, context, ["users", "ana"], "prefs") is None


def test_an_item_is_an_entry_whose_versions_are_kept(bound_api: ServiceClient, context: str) -> None:
    for seat in ("aisle", "window"):
        write(bound_api, context, item(["users", "ana"], "prefs", {"seat": seat}))

    [entry] = bound_api.get(f"/contexts/{context}/entries?key=users.ana%2Fprefs").json()["results"]
    versions = bound_api.get(f"/entries/{entry['id']}/versions").json()["results"]

    assert [each["value"] for each in versions] == [{"seat": "aisle"}, {"seat": "window"}]


def test_the_last_write_of_a_path_wins(bound_api: ServiceClient, context: str) -> None:
    path = {"namespace": ["a"], "key": "k"}

    done = write(bound_api, context, item(["a"], "k", {"n": 1}), item(["a"], "k", {"n": 3}), deleted=[path])

    assert done == {"stored": 1, "versions": [1, 1], "deleted": 0}
    assert read(bound_api, context, ["a"], "k")["value"] == {"n": 3}


def test_a_prefix_ends_at_a_label(bound_api: ServiceClient, context: str) -> None:
    namespaces = [["foo"], ["foo", "child"], ["foobar"], ["foo_"], ["foo%"]]
    write(bound_api, context, *(item(each, "/".join(each), {}) for each in namespaces))

    assert sorted(search(bound_api, context, "foo")) == ["foo", "foo/child"]
    assert search(bound_api, context, "foo_") == ["foo_"]
    assert search(bound_api, context, "foo%") == ["foo%"]
    assert len(search(bound_api, context)) == 5


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ({"color": "red"}, ["apple", "car"]),
        ({"score": {"$gt": 3}, "color": "red"}, ["apple"]),
        ({"score": {"$lte": 3.0}}, ["car"]),
        ({"color": {"$ne": "red"}}, ["sky"]),
        ({"score": {"$gt": "1"}}, []),
        ({"parts": {"wheels": 4}}, ["car"]),
        ({"nothing": 1}, []),
    ],
)
def test_values_are_filtered(
    bound_api: ServiceClient, context: str, condition: dict[str, Any], found: list[str]
) -> None:
    write(
        bound_api,
        context,
        item(["a"], "apple", {"color": "red", "score": 4.5}),
        item(["a"], "car", {"color": "red", "score": 3, "parts": {"wheels": 4, "doors": 2}}),
        item(["a"], "sky", {"color": "blue"}),
    )

    assert sorted(search(bound_api, context, "a", filter=condition)) == found


def test_a_search_by_meaning_is_filtered_too(bound_api: ServiceClient, context: str) -> None:
    for color in ("red", "blue"):
        write(bound_api, context, item(["a", color], color, {"color": color, "score": 3}, texts=[f"a {color} car"]))

    asked = {"query": "a red car", "filter": {"color": "blue", "score": {"$gte": 3}}}

    assert search(bound_api, context, "a", **asked) == ["blue"]
    assert search(bound_api, context, "a", "red", query="a blue car") == ["red"]


def test_an_unknown_operator_is_refused(bound_api: ServiceClient, context: str) -> None:
    body = {"searches": [{"filter": {"a": {"$regex": "x"}}}]}

    answer = bound_api.post(f"/contexts/{context}/items/query", body)

    assert answer.status_code == 422
    assert "$gte" in answer.json()["detail"]


def test_the_nearest_text_of_an_item_decides_its_score(bound_api: ServiceClient, context: str) -> None:
    def vectors(*angles: tuple[float, float]) -> dict[str, Any]:
        return {"texts": [f"text {n}" for n in range(len(angles))], "embeddings": [list(each) for each in angles]}

    write(
        bound_api,
        context,
        item(["a"], "one", {"n": 1}, **vectors((0.0, 1.0), (1.0, 0.0))),
        item(["a"], "two", {"n": 2}, texts=["other"], embeddings=[[1.0, 1.0]]),
        item(["a"], "unsearched", {"n": 3}),
        embedding_model="own",
    )

    body = {"embedding_model": "own", "searches": [{"query_embedding": [1.0, 0.0]}]}
    found = bound_api.post(f"/contexts/{context}/items/query", body).json()["searches"][0]["items"]

    assert [each["key"] for each in found] == ["one", "two"]
    assert [each["score"] for each in found] == pytest.approx([1.0, 0.5**0.5], abs=1e-3)


def test_an_item_without_texts_has_no_vector_and_waits_for_none(bound_api: ServiceClient, context: str) -> None:
    write(bound_api, context, item(["a"], "k", {"n": 1}, texts=["a pump"]))
    write(bound_api, context, item(["a"], "k", {"n": 2}))

    assert not Vector.objects.exists()
    assert ContextEntry.objects.get().embed_after is None
    assert search(bound_api, context, query="a pump") == []


def test_namespaces_are_listed(bound_api: ServiceClient, context: str) -> None:
    for namespace in (["a", "b", "c"], ["a", "b", "d"], ["a", "x", "c"], ["q"]):
        write(bound_api, context, item(namespace, "k", {}))

    assert list_namespaces(bound_api, context) == ["a.b.c", "a.b.d", "a.x.c", "q"]
    assert list_namespaces(bound_api, context, prefixes=[["a", "*", "c"]]) == ["a.b.c", "a.x.c"]
    assert list_namespaces(bound_api, context, suffixes=[["c"]], limit=1, offset=1) == ["a.x.c"]
    assert list_namespaces(bound_api, context, max_depth=2) == ["a.b", "a.x", "q"]


def test_labels_and_keys_may_have_any_character_but_dots_in_labels(bound_api: ServiceClient, context: str) -> None:
    write(bound_api, context, item(["a/b %", "gruß\n"], "k/ü.%2F", {"n": 1}))

    found = read(bound_api, context, ["a/b %", "gruß\n"], "k/ü.%2F")

    assert (found["namespace"], found["key"], found["value"]) == (["a/b %", "gruß\n"], "k/ü.%2F", {"n": 1})
    assert read(bound_api, context, ["a", "b %", "gruß\n"], "k/ü.%2F") is None
    refused = bound_api.post(f"/contexts/{context}/items", {"items": [item(["a.b"], "k", {})]})
    assert refused.status_code == 400


def test_a_read_extends_the_life_of_an_item_if_it_asks_for_it(bound_api: ServiceClient, context: str) -> None:
    write(bound_api, context, item(["a"], "k", {"n": 1}, ttl_seconds=600))
    soon = timezone.now() + timedelta(seconds=60)
    ContextEntry.objects.update(expires_at=soon)

    read(bound_api, context, ["a"], "k")
    kept = ContextEntry.objects.get().expires_at
    read(bound_api, context, ["a"], "k", refresh_ttl=True)
    extended = ContextEntry.objects.get().expires_at

    assert kept == soon
    assert extended is not None
    assert extended > soon + timedelta(seconds=500)


def test_an_expired_item_is_gone_until_it_is_stored_again(bound_api: ServiceClient, context: str) -> None:
    write(bound_api, context, item(["a"], "k", {"n": 1}, ttl_seconds=600))
    ContextEntry.objects.update(expires_at=timezone.now() - timedelta(seconds=1))

    assert read(bound_api, context, ["a"], "k", refresh_ttl=True) is None
    assert search(bound_api, context) == []
    assert list_namespaces(bound_api, context) == []
    write(bound_api, context, item(["a"], "k", {"n": 1}))
    assert read(bound_api, context, ["a"], "k")["value"] == {"n": 1}
    assert ContextEntry.objects.get().expires_at is None


def test_context_rot_leaves_items_alone(bound_api: ServiceClient, context: str) -> None:
    write(bound_api, context, item(["a"], "k", {"n": 1}))
    for key in ("plain", "src/main.py"):
        bound_api.post(f"/contexts/{context}/entries", {"key": key, "value": 1})
    later = timezone.now() + timedelta(days=3_650)

    stale = find_stale_entries(after=None, limit=10, account_id=None, now=later).stale

    assert [ContextEntry.objects.get(id=each.entry_id).key for each in stale] == ["plain", "src/main.py"]


def test_a_stranger_finds_no_context(stranger_api: ServiceClient, bound_api: ServiceClient, context: str) -> None:
    for path, body in (("items", {"items": [item(["a"], "k", {})]}), ("items/query", {})):
        assert stranger_api.post(f"/contexts/{context}/{path}", body).status_code == 404


def test_vectors_that_are_given_later_replace_those_of_their_model(bound_api: ServiceClient, context: str) -> None:
    def scores(model: str) -> list[float]:
        body = {"embedding_model": model, "searches": [{"query_embedding": [1.0, 0.0]}]}
        found = bound_api.post(f"/contexts/{context}/items/query", body).json()["searches"][0]["items"]
        return [round(each["score"], 2) for each in found]

    def given(*vectors: Sequence[float]) -> dict[str, Any]:
        return item(["a"], "k", {"n": 1}, texts=["one", "two"], embeddings=[list(each) for each in vectors])

    write(bound_api, context, item(["a"], "k", {"n": 1}, texts=["one", "two"]))
    write(bound_api, context, given((0.0, 1.0), (0.0, 1.0)), embedding_model="own")
    write(bound_api, context, given((0.6, 0.8), (0.8, 0.6)), embedding_model="other")
    before = scores("own"), scores("other")
    write(bound_api, context, given((1.0, 0.0), (0.0, 1.0)), embedding_model="own")

    assert before == ([0.0], [0.8])
    assert (scores("own"), scores("other")) == ([1.0], [0.8])
    assert search(bound_api, context, query="one") == ["k"]


def test_given_vectors_stay_until_the_text_changes(bound_api: ServiceClient, context: str) -> None:
    def found() -> list[str]:
        body = {"embedding_model": "own", "searches": [{"query_embedding": [1.0, 0.0]}]}
        answer = bound_api.post(f"/contexts/{context}/items/query", body).json()
        return [each["key"] for each in answer["searches"][0]["items"]]

    write(bound_api, context, item(["a"], "k", {"n": 1}, texts=["one"], embeddings=[[1.0, 0.0]]), embedding_model="own")
    for number in (2, 3):
        write(bound_api, context, item(["a"], "k", {"n": number}, texts=["one"]))
    kept = found(), search(bound_api, context, query="one")
    write(bound_api, context, item(["a"], "k", {"n": 3}, texts=["two"]))

    assert kept == (["k"], ["k"])
    assert (found(), search(bound_api, context, query="two")) == ([], ["k"])


def test_items_are_written_at_the_expected_versions_or_not_at_all(bound_api: ServiceClient, context: str) -> None:
    def post(*items: dict[str, Any], **fields: Any) -> int:
        return int(bound_api.post(f"/contexts/{context}/items", {"items": list(items), **fields}).status_code)

    def version() -> int:
        return int(read(bound_api, context, ["a"], "k")["version"])

    path = {"namespace": ["a"], "key": "k"}
    assert post(item(["a"], "k", {"n": 1}, expected_version=0)) == 200
    first = version()
    stale = bound_api.post(f"/contexts/{context}/items", {"items": [item(["a"], "k", {"n": 2}, expected_version=0)]})
    assert (stale.status_code, stale.json()["code"]) == (412, "stale_version")
    assert post(item(["a"], "k", {"n": 2}, expected_version=first)) == 200
    second = version()
    assert second > first
    assert post(item(["a"], "other", {}), deleted=[path | {"expected_version": first}]) == 412
    assert read(bound_api, context, ["a"], "other") is None
    assert post(deleted=[path | {"expected_version": second}]) == 200
    assert post(deleted=[path | {"expected_version": second}]) == 412
    assert post(item(["a"], "k", {"n": 3}, expected_version=0)) == 200
    assert version() > second


def test_a_write_answers_the_versions_of_its_items(bound_api: ServiceClient, context: str) -> None:
    def post(*items: dict[str, Any], **fields: Any) -> list[int]:
        written = bound_api.post(f"/contexts/{context}/items", {"items": list(items), **fields}).json()
        found = [read(bound_api, context, each["namespace"], each["key"])["version"] for each in items]
        assert written["versions"] == found
        return found

    one, two = item(["a"], "k", {"n": 1}), item(["a"], "k", {"n": 2}, ttl_seconds=60)
    first = post(one, item(["a"], "other", {}))
    assert post(one) == first[:1]
    second = post(item(["b"], "third", {}), one, two)
    assert second[1] == second[2] > first[0]
    post(deleted=[{"namespace": ["a"], "key": "k"}])
    assert post(item(["a"], "k", {"n": 3}, texts=["three"]))[0] > second[2]


@pytest.mark.parametrize(
    ("versions", "deleted", "named"),
    [
        ((0, 1), None, "items"),
        ((0, None), None, "items"),
        ((None, 0), None, "items"),
        ((0,), 1, "items"),
        ((None,), 1, "deleted"),
    ],
)
def test_a_path_with_an_expected_version_occurs_once(
    bound_api: ServiceClient, context: str, versions: tuple[int | None, ...], deleted: int | None, named: str
) -> None:
    def expecting(version: int | None) -> dict[str, int]:
        return {} if version is None else {"expected_version": version}

    body: dict[str, Any] = {"items": [item(["a", "b"], "k", {}, **expecting(each)) for each in versions]}
    if deleted is not None:
        body["deleted"] = [{"namespace": ["a", "b"], "key": "k", **expecting(deleted)}]

    refused = bound_api.post(f"/contexts/{context}/items", body)

    assert (refused.status_code, list(refused.json()["errors"])) == (400, [named])
    assert "a.b/k has an `expected_version`" in refused.json()["errors"][named][0]
    assert read(bound_api, context, ["a", "b"], "k") is None


def test_a_request_reads_a_thousand_items_at_most(bound_api: ServiceClient, context: str) -> None:
    path = {"namespace": ["a"], "key": "k"}
    too_much: list[dict[str, Any]] = [
        {"searches": [{"limit": 600}, {"limit": 401}]},
        {"searches": [{"limit": 1_000}], "reads": [path]},
    ]
    for body in too_much:
        answer = bound_api.post(f"/contexts/{context}/items/query", body)
        assert (answer.status_code, "1000" in answer.json()["detail"]) == (422, True)
    enough = {"searches": [{"limit": 999}], "reads": [path]}
    assert bound_api.post(f"/contexts/{context}/items/query", enough).status_code == 200


@pytest.mark.parametrize("ttl", ["soon", 1e300, -1, None])
def test_a_life_span_that_is_none_extends_nothing(bound_api: ServiceClient, context: str, ttl: Any) -> None:
    write(bound_api, context, item(["a"], "k", {"n": 1}, ttl_seconds=600))
    until = ContextEntry.objects.get().expires_at
    ContextEntry.objects.update(metadata={"ttl_seconds": ttl})

    assert read(bound_api, context, ["a"], "k", refresh_ttl=True)["value"] == {"n": 1}
    assert ContextEntry.objects.get().expires_at == until


def test_an_empty_prefix_or_suffix_limits_nothing(bound_api: ServiceClient, context: str) -> None:
    write(bound_api, context, item(["a"], "k", {}))

    assert list_namespaces(bound_api, context, prefixes=[[]], suffixes=[[]]) == ["a"]


def test_a_search_says_which_vectors_are_missing(bound_api: ServiceClient, context: str) -> None:
    write(bound_api, context, item(["users"], "a", {"text": "The keel broke."}))
    search_of = {"namespace_prefix": [], "query": "keel"}
    asked = {"searches": [search_of]}
    path = f"/contexts/{context}/items/query"

    complete = bound_api.post(path, asked).json()["searches"][0]["degraded"]
    ContextEntry.objects.update(embed_after=timezone.now())
    pending = bound_api.post(path, asked).json()["searches"][0]["degraded"]
    own = {"searches": [search_of | {"query_embedding": [1.0, 0.0]}], "embedding_model": "unknown"}
    unknown = bound_api.post(path, own).json()["searches"][0]["degraded"]

    assert (complete, pending, unknown) == ([], ["embedding_pending"], ["embedding_model_unknown"])


def test_a_search_by_meaning_reads_each_item_once_however_badly_it_is_planned(
    bound_api: ServiceClient, context: str
) -> None:
    given = [{"texts": [f"Note {n}."], "embeddings": [[1.0, float(n)]]} for n in range(150)]
    notes = [item(["notes"], f"n{n}", {"n": n}, **each) for n, each in enumerate(given)]
    write(bound_api, context, *notes, embedding_model="own")
    asked = {"embedding_model": "own", "searches": [{"namespace_prefix": ["notes"], "query_embedding": [1.0, 0.0]}]}

    with CaptureQueriesContext(connection) as captured:
        answer = bound_api.post(f"/contexts/{context}/items/query", asked).json()

    assert answer["searches"][0]["items"][0]["key"] == "n0"
    [statement] = [each["sql"] for each in captured.captured_queries if "<=>" in each["sql"]]
    with connection.cursor() as cursor:
        # what the planner does while the tables have no statistics: it expects one row everywhere
        cursor.execute(
            "SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; SET LOCAL enable_material = off"
        )
        cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}")
        [(plans,)] = cursor.fetchall()
    # about 7 a vector; a join that goes through all items for each vector reads hundreds
    assert plans[0]["Plan"]["Shared Hit Blocks"] < 150 * 30
