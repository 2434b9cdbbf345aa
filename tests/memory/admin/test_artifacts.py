"""Artifacts in the admin: their URIs, sources and revisions; corrected, marked, erased."""

import pytest
from django.test import Client

from memory.models import Account, Artifact
from memory.owner import Owner
from tests.memory.admin.chats import allow
from tests.memory.admin.pages import choose, form_values, list_url, page_url, queries_of, shown
from tests.memory.goals import aim
from tests.memory.records import add_record
from tests.memory.stories import make_artifact


@pytest.fixture
def plan(owner: Owner) -> Artifact:
    record = add_record(owner).record
    return make_artifact(
        owner, "docs/plan.md", title="Plan", source_record=record, for_goal=aim(owner), is_latest=False
    )


def test_an_artifacts_page_links_to_its_record_goal_and_revisions(staff: Client, owner: Owner, plan: Artifact) -> None:
    later = make_artifact(owner, "docs/plan.md", title="Plan", revision=2, digest="sha256:1")
    make_artifact(owner, "docs/other.md")

    page = shown(staff.get(page_url("artifact", plan.pk)))

    for text in (page_url("turnrecord", plan.source_record_id), page_url("goal", plan.for_goal_id),
                 page_url("artifact", later.pk), "revision 1, superseded", "revision 2"):  # fmt: skip
        assert text in page
    assert page.count("revision ") == 3


def test_revisions_of_another_agent_are_not_listed(staff: Client, account: Account, plan: Artifact) -> None:
    theirs = make_artifact(Owner(account_id=account.id, agent_id="critic"), "docs/plan.md", revision=2)

    assert page_url("artifact", theirs.pk) not in shown(staff.get(page_url("artifact", plan.pk)))


@pytest.mark.parametrize("words", ["plan", "docs/plan.md", "assistant"])
def test_an_artifact_is_found_by_its_words(staff: Client, account: Account, plan: Artifact, words: str) -> None:
    make_artifact(Owner(account_id=account.id, agent_id="critic"), "src/main.rs")

    found = staff.get(list_url("artifact", q=words)).context["cl"].result_list

    assert [row.pk for row in found] == [plan.pk]


def test_the_latest_revisions_are_listed_on_demand(staff: Client, owner: Owner, plan: Artifact) -> None:
    later = make_artifact(owner, "docs/plan.md", revision=2)

    found = staff.get(list_url("artifact", is_latest__exact=1)).context["cl"].result_list

    assert [row.pk for row in found] == [later.pk]


def test_an_artifact_is_corrected_except_for_its_uri(staff: Client, plan: Artifact) -> None:
    url = page_url("artifact", plan.pk)
    values = form_values(staff.get(url)) | {"title": "Our plan", "artifact_type": "file", "uri": "javascript:alert(1)"}

    staff.post(url, values)

    plan.refresh_from_db()
    assert (plan.title, plan.artifact_type, plan.uri, plan.version) == ("Our plan", "file", "docs/plan.md", 2)


def test_an_artifact_is_marked_and_erased(staff: Client, plan: Artifact) -> None:
    choose(staff, list_url("artifact"), "quarantine", plan.pk)
    plan.refresh_from_db()

    choose(staff, list_url("artifact"), "delete_selected", plan.pk, post="yes")

    assert plan.quarantined
    assert not Artifact.objects.exists()


def test_a_page_costs_few_queries(staff: Client, owner: Owner, plan: Artifact) -> None:
    few = queries_of(staff, page_url("artifact", plan.pk))
    for revision in range(2, 9):
        make_artifact(owner, "docs/plan.md", revision=revision)

    assert queries_of(staff, page_url("artifact", plan.pk)) == few <= 10


def test_the_view_permission_alone_allows_no_corrections(newcomer: Client, plan: Artifact) -> None:
    allow("newcomer", "view_artifact")

    assert newcomer.get(page_url("artifact", plan.pk)).status_code == 200
    assert newcomer.post(page_url("artifact", plan.pk), {"title": "x"}).status_code == 403
