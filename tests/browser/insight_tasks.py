"""The operator tasks that ask why: the playground, where a memory comes from, its graph, access, exports and erasure.

They stand behind those of `tasks`, in the same chapters.
"""

from pathlib import Path

from tests.browser.desk import Desk, task
from tests.browser.tasks import (
    OPERATE,
    READ,
    SHARE,
    TRY,
    keep_to_one_account,
    read_a_conversation,
    see_what_is_known_of_a_person,
    see_where_a_fact_comes_from,
)

QUESTION = "Where does Ines like to sit?"


def ask(desk: Desk) -> None:
    """Fill in the form of the playground as the agent of the scene."""
    desk.open_list("Memories", "Playground")
    desk.page.locator("#id_account").select_option(label="Harbour Travel")
    for name, text in (("agent", "assistant"), ("user", "ines"), ("query", QUESTION)):
        desk.page.locator(f"#id_{name}").fill(text)


def show_from(desk: Desk, selector: str) -> None:
    """Scroll so that the element is at the top of the window."""
    desk.page.locator(selector).first.evaluate("(element) => element.scrollIntoView()")


@task(READ, "“Why do you know this?” says where a memory comes from, what became of it, and who has read it.")
def ask_why_a_memory_is_known(desk: Desk) -> None:
    see_where_a_fact_comes_from(desk)
    desk.click("link", "Why do you know this?")
    desk.sees("Who said it", "A window seat, please.", "What replaced it", "Where it was injected")


@task(READ, "The graph of a memory shows what is linked to it over one to three links. A mark adds its own links.")
def walk_the_graph(desk: Desk) -> None:
    see_what_is_known_of_a_person(desk)
    desk.click("link", "Graph")
    desk.page.locator("svg.neighbourhood a[aria-label^=Expand]").first.click()
    desk.sees("Collapse all")
    desk.page.get_by_label("Depth").select_option("2")
    desk.click("button", "Show")
    desk.sees("The mark of a memory adds what is linked to it.")
    desk.page.get_by_text("As a table").click()
    desk.sees("DERIVED_FROM")


@task(READ, "The timeline of a conversation has its turns, memories, injections, tools, recalls and jobs in one order.")
def follow_a_conversation_in_time(desk: Desk) -> None:
    read_a_conversation(desk)
    desk.click("link", "Timeline")
    desk.sees("Turn 0", "Tool search_flights", "Stored fact")
    desk.click("link", "Tools")
    desk.sees("failed after 790 ms")


@task(TRY, "Ask in the playground: results with their reasons, what was left out and why, and the text for the prompt.")
def ask_as_an_agent(desk: Desk) -> None:
    ask(desk)
    desk.click("button", "Ask")
    desk.sees("Ines prefers window seats.", "Left out", "not believed", "Text for the prompt", "curl")
    show_from(desk, "section.plan")


@task(TRY, "Compare two plans side by side: each result says its place in the other one.")
def compare_two_plans(desk: Desk) -> None:
    ask(desk)
    desk.page.get_by_text("Second plan", exact=True).click()
    desk.page.get_by_label("Compare with a second plan").check()
    desk.page.locator("#id_techniques_2").fill("-lexical")
    desk.click("button", "Ask")
    desk.sees("Plan A", "Plan B", "in the other plan")
    show_from(desk, "div.plans")


@task(TRY, "Pin a result from the playground, so that its salience stays.")
def pin_a_result(desk: Desk) -> None:
    ask(desk)
    desk.click("button", "Ask")
    card = desk.page.locator("li.card", has_text="Ines prefers window seats.").first
    card.get_by_text("Change", exact=True).click()
    card.get_by_role("button", name="Pin…").click()
    desk.confirm("She always asks for it.", "Pin selected memories")
    desk.sees("Changed 1 memory.")


@task(SHARE, "“Access” of an account is a matrix of agents, pools and contexts, with the API keys below it.")
def see_who_may_do_what(desk: Desk) -> None:
    desk.open_list("Access", "Accounts")
    desk.click("link", "Harbour Travel")
    desk.click("link", "Access")
    desk.sees("Pools and contexts", "owns", "website")


@task(OPERATE, "Export what a list shows, as JSON Lines or CSV. The audit log says who did.")
def export_a_list(desk: Desk) -> None:
    keep_to_one_account(desk)
    desk.open_list("Knowledge", "Facts")
    with desk.page.expect_download() as begun:
        desk.click("link", "CSV")
    assert "Ines prefers window seats." in Path(begun.value.path()).read_text()
    show_from(desk, ".exports")


@task(OPERATE, "Rotate a key: the new one is shown once, and the old one stays valid for a while.")
def rotate_a_key(desk: Desk) -> None:
    desk.open_list("Access", "API keys")
    desk.page.locator("#result_list tr", has_text="usable").first.get_by_role("link").first.click()
    desk.click("link", "Rotate…")
    desk.click("button", "Rotate")
    desk.sees("It is shown only now")


@task(OPERATE, "Erase a user: the page counts what goes, asks for a reason, and leads to the progress and the receipt.")
def erase_a_user(desk: Desk) -> None:
    desk.open_list("Operations", "Erasures")
    desk.click("link", "Erase a user…")
    desk.page.locator("#id_account").select_option(label="Harbour Travel")
    desk.page.locator("#id_user").fill("ines")
    desk.click("button", "Preview")
    desk.sees("What would be erased of")
    desk.page.get_by_label("Reason").fill("Request 4711 of 3 May.")
    desk.click("button", "Erase for good")
    desk.sees("Subject digest", "Request 4711 of 3 May.")


@task(OPERATE, "Delete an account with all that is in it: its name is typed again, and a worker does the rest.")
def delete_an_account(desk: Desk) -> None:
    desk.open_list("Access", "Accounts")
    desk.click("link", "Bakery Lima")
    desk.click("link", "Delete…")
    desk.page.get_by_label("Name of the account").fill("Bakery Lima")
    desk.page.get_by_label("Reason").fill("The contract has ended.")
    desk.click("button", "Delete for good")
    desk.sees("the account itself", "The contract has ended.")
