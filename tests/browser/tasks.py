"""The operator tasks of docs/console.md: what staff do, from the first page to the result."""

from tests.browser.desk import TASKS, Desk, task

CHAPTERS = FIND, READ, TRY, CORRECT, DECIDE, SHARE, OPERATE = (
    "Find your way",
    "Read what is remembered",
    "Ask as an agent",
    "Correct it",
    "Decide",
    "Share it with agents",
    "Operate the service",
)
TASKS.update({chapter: [] for chapter in CHAPTERS})


@task(FIND, "Log in: the first page has the figures of the installation and its alerts.", by_keyboard=True)
def see_how_the_service_is(desk: Desk) -> None:
    desk.sees("Duration of recall", "Waiting work", "alert")


@task(FIND, "Choose an account at the top: all pages keep to it until another is chosen.", by_keyboard=True)
def keep_to_one_account(desk: Desk) -> None:
    desk.tab_to("#id_switched_account")
    desk.type("Harbour")
    desk.press("Tab")
    desk.submit()
    desk.sees("Figures of the account Harbour Travel.")


@task(
    FIND,
    "Type words into the box at the top: memories of all kinds in the chosen account that hold them are found.",
    by_keyboard=True,
)
def search_for_words(desk: Desk) -> None:
    keep_to_one_account(desk)
    desk.search("window seat")
    desk.sees("Turns", "Facts", "By meaning")


@task(
    FIND, "With an account chosen, type a question: memories that are similar in meaning are found.", by_keyboard=True
)
def search_by_meaning(desk: Desk) -> None:
    keep_to_one_account(desk)
    desk.search("Where does she like to sit?")
    desk.sees("By meaning", "similarity", "Ines prefers")


@task(FIND, "Type or paste any id: its page opens.", by_keyboard=True)
def open_a_row_by_its_id(desk: Desk) -> None:
    desk.search(str(desk.scene.fact.pk))
    desk.sees("Ines prefers window seats.")


@task(FIND, "Open a group of the menu with Enter, and a list in it.", by_keyboard=True)
def open_a_list_from_the_menu(desk: Desk) -> None:
    desk.open_list_by_keys(3, "/admin/memory/fact/")
    desk.sees("7 facts")


@task(READ, "Conversations: the transcript, with its summaries, state and actions beside it.")
def read_a_conversation(desk: Desk) -> None:
    desk.open_list("Conversations", "Conversations")
    desk.click("link", "madeira")
    desk.sees("A window seat, please.", "Summaries and episodes")


@task(READ, "The page of a fact shows where it comes from, what it is about, and its versions.")
def see_where_a_fact_comes_from(desk: Desk) -> None:
    desk.open_list("Knowledge", "Facts")
    desk.click("link", "Ines prefers window seats.")
    desk.sees("A window seat, please.", "Ines Prado")


@task(READ, "“History” says who wrote a row, and leads to the audit entries about it.")
def see_who_wrote_a_memory(desk: Desk) -> None:
    see_where_a_fact_comes_from(desk)
    desk.click("link", "History")
    desk.sees("It belongs to the agent assistant", "audit log")


@task(READ, "Each figure of the first page leads to the rows behind it.")
def see_which_memories_wait_for_a_vector(desk: Desk) -> None:
    desk.page.locator(".tiles div", has_text="waiting for embedding").get_by_role("link").click()
    desk.sees("waiting for embedding")


@task(READ, "The page of an entity has its names, facts and mentions, and a picture of what it is linked to.")
def see_what_is_known_of_a_person(desk: Desk) -> None:
    desk.open_list("Knowledge", "Entities")
    desk.click("link", "Ines Prado")
    desk.sees("Ines prefers window seats.")


@task(READ, "The page of a goal has its parts, and what was done for it.")
def follow_a_goal(desk: Desk) -> None:
    desk.open_list("Work", "Goals")
    desk.click("link", "Book the trip to Madeira")
    desk.sees("Find a hotel near the harbour")


@task(CORRECT, "Change the claim of a fact and save: a new version keeps the old one.", by_keyboard=True)
def correct_a_fact(desk: Desk) -> None:
    desk.search(str(desk.scene.fact.pk))
    desk.tab_to("#id_text")
    desk.replace("Ines prefers window seats on the left.")
    desk.tab_to("input[name=_save]")
    desk.submit()
    desk.sees("was changed successfully")


@task(CORRECT, "Add by hand what no agent was told: a fact, a note, a goal, an entity, a strategy or a learning.")
def remember_something(desk: Desk) -> None:
    desk.open_list("Memories", "Remember something")
    desk.page.locator("#id_account").select_option(label="Harbour Travel")
    desk.page.get_by_label("Claim").fill("The harbour hotel is closed in January.")
    desk.page.get_by_label("Reason").fill("The hotel has called.")
    desk.click("button", "Remember")
    desk.sees("The fact is remembered.")


@task(CORRECT, "The audit log has the reason of a change, and the values before and after.")
def see_what_was_changed(desk: Desk) -> None:
    desk.search(str(desk.scene.fact.pk))
    desk.page.locator("#id_confidence").fill("0.8")
    desk.page.get_by_label("Reason").last.fill("She was not sure.")
    desk.page.locator("input[name=_save]").click()
    desk.open_list("Operations", "Audit entries")
    desk.page.locator("#result_list tr", has_text="She was not sure.").first.get_by_role("link").first.click()
    desk.sees("Before", "She was not sure.")


@task(CORRECT, "Choose rows and an action: a page says what it concerns and asks for a reason.")
def pin_memories(desk: Desk) -> None:
    desk.open_list("Memories", "Episodic memories")
    desk.choose("Pin selected episodic memories", "Ines asked for a hotel", "Ines books a flight")
    desk.sees("It can be undone")
    desk.confirm("She is a regular customer.", "Pin selected episodic memories")
    desk.sees("Changed 2 episodic memories.")


@task(CORRECT, "The page of a bulk change undoes it, for exactly the rows that it changed.")
def undo_a_bulk_change(desk: Desk) -> None:
    desk.open_list("Operations", "Bulk changes")
    desk.click("link", "Pin episodic memories")
    desk.page.get_by_text("Undo…").click()
    desk.page.get_by_label("Reason").fill("Only the flight matters.")
    desk.click("button", "Undo")
    desk.sees("Undo: pin episodic memories")


@task(CORRECT, "Two entities that are one: choose both, and which one stays.")
def merge_two_entities(desk: Desk) -> None:
    desk.open_list("Knowledge", "Entities")
    desk.choose("Merge selected entities…", "Ines Prado", "Ines P.")
    desk.sees("Which entity stays?")
    desk.page.get_by_label("Ines Prado").check()
    desk.confirm("The same customer.", "Merge")
    desk.sees("Merged 2 entities into Ines Prado.")


@task(CORRECT, "An entity that is two: choose the names that leave.")
def split_an_entity(desk: Desk) -> None:
    desk.open_list("Knowledge", "Entities")
    desk.click("link", "Ines Prado")
    desk.click("link", "Split", exact=False)
    desk.page.get_by_label("Ines P.").check()
    desk.click("button", "Split")
    desk.sees("is an entity of its own now.")


@task(CORRECT, "Working memory and the values of a session, which live in Redis: search, change and delete them.")
def correct_working_memory(desk: Desk) -> None:
    desk.open_list("Memories", "Working memory")
    desk.click("link", "Conversations of Harbour Travel")
    desk.click("link", "madeira")
    row = desk.page.get_by_role("row", name="step")
    row.get_by_label("Value of step").fill('{"name": "compare hotels", "done": 0}')
    row.get_by_role("button", name="Save").click()
    desk.sees("Saved step, which expires in")


@task(CORRECT, "Single values, which programs keep by key in Redis, with their size and expiry.")
def correct_a_single_value(desk: Desk) -> None:
    desk.open_list("Memories", "Single values")
    desk.click("link", "Single values of Harbour Travel")
    desk.sees("rates:eur", "never")
    desk.click("link", "greeting")
    desk.page.get_by_label("Text").fill("Welcome aboard.")
    desk.click("button", "Save")
    desk.sees("Saved greeting.", "Welcome aboard.")


@task(CORRECT, "Retract facts that are wrong, with a reason.")
def retract_a_fact(desk: Desk) -> None:
    desk.open_list("Knowledge", "Facts")
    desk.choose("Retract selected facts", "The office closes at six.")
    desk.confirm("It closes at seven.", "Retract selected facts")
    desk.sees("Retracted 1 fact.")


@task(CORRECT, "Delete memories for good. The page before it says what goes with them.")
def delete_a_memory(desk: Desk) -> None:
    desk.open_list("Memories", "Episodic memories")
    desk.choose("Delete selected episodic memories", "The airline refunded")
    desk.sees("It cannot be undone.")
    desk.confirm("Asked for by the airline.", "Delete selected episodic memories")
    desk.sees("Deleted 1 episodic memory.")


@task(CORRECT, "Keep a conversation from being erased by a legal hold.", by_keyboard=True)
def keep_a_conversation(desk: Desk) -> None:
    keep_to_one_account(desk)
    desk.search("madeira")
    desk.tab_to("#content a[href*='/conversation/']")
    desk.submit()
    desk.tab_to("button[value=legal_hold]")
    desk.submit()
    desk.sees("Lift the legal hold")


@task(DECIDE, "The inbox has all that waits for a decision, and a key for each answer.", by_keyboard=True)
def work_through_the_inbox(desk: Desk) -> None:
    desk.open_list_by_keys(3, "/admin/inbox/")
    desk.sees("Two facts contradict each other", "Ines may bring her mother.")
    desk.press("j")
    with desk.page.expect_navigation():
        desk.press("y")
    desk.sees("Its confidence is 1 now.")


@task(DECIDE, "Two facts that contradict each other, side by side, with what was said.")
def decide_a_contradiction(desk: Desk) -> None:
    desk.page.locator(".tiles div", has_text="contradictions").get_by_role("link").click()
    desk.page.locator("#result_list tbody a").first.click()
    desk.sees("Ines lives in Porto.", "Ines lives in Lisbon.")
    desk.click("button", "Keep the old fact")
    desk.sees("Kept old")


@task(DECIDE, "Reject a fact, so that it is not learned again.")
def reject_a_fact(desk: Desk) -> None:
    desk.open_list("Knowledge", "Facts")
    desk.choose("Reject selected facts, so that they are not learned again", "TP1687 leaves Lisbon at 9:40.")
    desk.confirm("The timetable has changed.", "Reject selected facts, so that they are not learned again")
    desk.sees("Rejected 1 fact.")


@task(SHARE, "A context and its entries, which several agents read.")
def read_a_context(desk: Desk) -> None:
    desk.open_list("Sharing", "Persistent contexts")
    desk.click("link", "handbook")
    desk.sees("Rules of the agency.")


@task(SHARE, "Take a snapshot of a context before agents change it.")
def take_a_snapshot(desk: Desk) -> None:
    read_a_context(desk)
    desk.open_list("Sharing", "Context snapshots")
    desk.click("link", "Add context snapshot", exact=False)
    desk.page.locator("#id_context").fill(str(desk.scene.context_id))
    desk.page.get_by_label("Name").fill("before the season")
    desk.click("button", "Save")
    desk.sees("before the season")


@task(SHARE, "Found a team and add the agents that belong to it.", by_keyboard=True)
def add_a_team(desk: Desk) -> None:
    desk.add_by_keys(5, "/admin/memory/team/")
    desk.choose_account_by_keys()
    desk.tab_to("#id_name")
    desk.type("front desk")
    desk.tab_to("input[name=_save]")
    desk.submit()
    desk.sees("was added successfully")


@task(OPERATE, "See why a job failed, and run it again with a reason.")
def run_a_failed_job_again(desk: Desk) -> None:
    desk.page.locator(".tiles div.bad", has_text="failed").first.get_by_role("link").click()
    desk.sees("OperationalError")
    desk.choose("Run again", "extract_knowledge")
    desk.confirm("The database is back.", "Run again")
    desk.sees("Requested 1 job run.")


@task(OPERATE, "Request a run of a job, or a dry run that only counts.", by_keyboard=True)
def run_a_job(desk: Desk) -> None:
    desk.add_by_keys(6, "/admin/memory/jobrun/")
    desk.tab_to("#id_job")
    desk.type("decay")
    desk.tab_to("#id_dry_run")
    desk.press("Space")
    desk.tab_to("input[name=_save]")
    desk.submit()
    desk.sees("was added successfully")


@task(OPERATE, "Follow a run on its page, and cancel it. What it did until then stays.")
def cancel_a_run(desk: Desk) -> None:
    desk.open_list("Operations", "Job runs")
    desk.page.get_by_role("row", name="queued").get_by_role("link").first.click()
    desk.sees("Waits for a worker.")
    desk.page.get_by_role("button", name="Cancel…").click()
    desk.confirm("It is asked for too early.", "Cancel")
    desk.sees("Cancelled 1 job run.")


@task(OPERATE, "The audit log: who did what, by actor, operation, object and time.")
def read_the_audit_log(desk: Desk) -> None:
    desk.open_list("Operations", "Audit entries")
    desk.page.locator("#searchbar").fill("key:website")
    desk.page.locator("#searchbar").press("Enter")
    desk.sees("key:website")


@task(OPERATE, "What language models cost, by day, account and use.")
def see_what_models_cost(desk: Desk) -> None:
    desk.page.locator(".tiles div", has_text="spent").get_by_role("link").click()
    desk.sees("Total: calls 12 (1 failed)")


@task(OPERATE, "Issue an API key. It is shown once.", by_keyboard=True)
def issue_a_key(desk: Desk) -> None:
    desk.add_by_keys(7, "/admin/memory/apikey/")
    desk.choose_account_by_keys()
    desk.tab_to("#id_name")
    desk.type("telephone")
    desk.tab_to("input[name=scopes]")
    desk.press("Space")
    desk.tab_to("input[name=_save]")
    desk.submit()
    desk.sees("It is shown only now")


@task(OPERATE, "Revoke keys: they stop working at once.")
def revoke_a_key(desk: Desk) -> None:
    desk.open_list("Access", "API keys")
    desk.choose("Revoke selected keys", "website")
    desk.confirm("It was in a log.", "Revoke selected keys")
    desk.sees("Revoked 1 API key.")


@task(OPERATE, "Limit a member of staff to accounts: other rows do not exist for them.")
def limit_a_colleague_to_accounts(desk: Desk) -> None:
    desk.open_list("Access", "Users")
    desk.click("link", "rita")
    desk.page.get_by_label("Limited to accounts").check()
    desk.page.locator("#id_limited_to").fill("Harbour Travel")
    desk.page.locator("input[name=_save]").click()
    desk.sees("was changed successfully")
