"""Ends of jobs, relationships, lives, homes, medicines and plans: what they end, and what they leave."""

import pytest

from memory.extraction.rules.endings import ends_plan
from tests.memory.extraction.spoken import claims, said


@pytest.mark.parametrize(
    ("first", "second", "claim"),
    [
        ("I work at Aldi.", "I got fired.", "The user got fired"),
        ("I work at Aldi.", "I quit my job last week.", "The user quit their job in the week of 8 May 2023"),
        ("I work at Aldi.", "I've been made redundant.", "The user has been made redundant"),
        ("I work at Aldi.", "I was let go.", "The user was let go"),
        ("I work at Aldi.", "I got laid off from Aldi on Friday.", "The user got laid off from Aldi on 12 May 2023"),
        ("I work at Aldi.", "Aldi let me go yesterday.", "The user was let go by Aldi on 17 May 2023"),
        ("I work at Aldi.", "My company laid me off.", "The user was laid off"),
        ("My brother Tom works at Aldi.", "Tom lost his job.", "Tom lost his job"),
        ("My wife is Gemma.", "Gemma and I got divorced.", "The user got divorced from Gemma"),
        ("My wife is Gemma.", "My wife and I split up.", "The user split up with their wife"),
        ("My girlfriend is Alex.", "We broke up.", "The user broke up"),
        ("I'm engaged to Sam.", "The wedding is off, Sam and I split up.", "The user split up with Sam"),
        ("My dad lives in Hull.", "My dad died last week.", "The user's dad died in the week of 8 May 2023"),
        ("I live in Leeds.", "I moved to York.", "The user moved to York"),
        ("I live in Leeds.", "Big news! We've moved to York.", "The user has moved to York"),
        ("I live in Leeds.", "I've relocated to York.", "The user has relocated to York"),
        (
            "My mom lives in Leeds.",
            "Mom has moved in with my aunt in York.",
            "The user's mom has moved in with the user's aunt in York",
        ),
        ("I'm vegan.", "I eat meat now.", "The user eats meat now"),
        ("I'm vegan.", "I eat cheese again.", "The user eats cheese again"),
        ("I'm vegan.", "I eat fish again.", "The user eats fish again"),
        ("I'm vegetarian.", "I eat fish now.", "The user eats fish now"),
        ("I take warfarin.", "The doctor stopped the warfarin.", "The user stopped taking warfarin"),
        ("I take warfarin.", "I bled a lot, so the doctors took me off warfarin.", "The user stopped taking warfarin"),
        ("My wife is Gemma.", "Gemma and I split up on Friday.", "The user split up with Gemma on 12 May 2023"),
        ("My wife is Gemma.", "We split up in March.", "The user broke up in March 2023"),
        ("I'm vegan.", "Turns out I'm not vegan after all.", "The user is not vegan"),
        ("I take metformin 500 mg twice a day.", "I no longer take metformin.", "The user no longer takes metformin"),
        ("I take metformin 500 mg.", "My doctor stopped the metformin.", "The user stopped taking metformin"),
        ("I take metformin 500 mg.", "My GP took me off metformin.", "The user stopped taking metformin"),
        ("I take metformin 500 mg.", "I'm off metformin now.", "The user stopped taking metformin"),
        ("I take 75 mcg of thyroxine.", "I'm down to 50 mcg of thyroxine.", "The user takes 50 mcg of thyroxine"),
        ("I own a Golf.", "I traded the Golf in for an e-bike.", "The user sold the Golf for an e-bike"),
        ("The retries are 3.", "we bumped retries to 5", "The user bumped retries to 5"),
        ("I'm going to Rome on 20 December.", "The Rome trip is cancelled.", "The Rome trip is cancelled"),
        ("I'm going to Rome on 20 December.", "I cancelled my trip to Rome.", "The user canceled their trip to Rome"),
        ("I'm going to Rome on 20 December.", "I'm not going to Rome anymore.", "The user is no longer going to Rome"),
        (
            "My dentist appointment is on 12 June.",
            "My dentist appointment is cancelled.",
            "The user's dentist appointment is cancelled",
        ),
        (
            "I'm running the half marathon on 9 June.",
            "I had to cancel the half marathon.",
            "The user canceled the half marathon",
        ),
        (
            "My dentist appointment is on 12 June at 3pm.",
            "My dentist appointment got moved to 14 June.",
            "The user's dentist appointment got moved to 14 June 2023",
        ),
        (
            "My train is at 7:40 on 18 June.",
            "My train is at 8:10 on 18 June.",
            "The user's train is at 8:10 on 18 June 2023",
        ),
    ],
)
@pytest.mark.parametrize("is_known", [False, True])
def test_what_is_over_ends_what_was_said(first: str, second: str, claim: str, *, is_known: bool) -> None:
    known = claims(first)
    facts = said(second, known=known).facts if is_known else said(first, second).facts

    ended = [number for fact in facts if fact.claim == claim for number in fact.contradicts]
    assert ended == [len(known)]


def test_a_parting_from_a_partner_by_name_ends_the_marriage() -> None:
    wife, parting = said("My wife is Gemma.", "My wife Gemma and I split up.").facts

    assert (parting.claim, parting.contradicts) == ("The user split up with their wife Gemma", (wife.number,))


def test_a_death_ends_what_is_known_of_the_dead_by_name() -> None:
    known = claims("My cat Biscuit is 11.")
    assert known == ["The user's cat is Biscuit", "Biscuit is 11 years old"]

    for text, verb in (("My cat died on Friday.", "died"), ("Biscuit passed away.", "passed away")):
        fact = said(text, known=known).facts[0]
        assert (fact.claim, fact.contradicts) == (f"The user's cat Biscuit {verb}", (1, 2))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("I work at Aldi.", "I got fired up."),
        ("I work at Aldi at weekends.", "I lost my job."),
        ("I work at Aldi.", "Maria let me go."),
        ("I work at Aldi.", "Aldi let me go home early."),
        ("I work at Aldi.", "My brother got laid off from Aldi."),
        ("My brother works at Aldi.", "I lost my job."),
        ("My wife is Gemma.", "Tom and I split up."),
        ("My wife is Gemma.", "We split up the work."),
        ("My wife is Gemma.", "My band and I split up."),
        ("My wife is Gemma.", "My ex and I broke up."),
        ("My wife is Gemma.", "I got divorced from my first wife."),
        ("I take metformin and ramipril.", "I stopped taking metformin."),
        ("My wife is Gemma.", "Gemma and I split up the work."),
        ("My cat Biscuit is 11.", "My dog died on Friday."),
        ("My cat Biscuit is 11.", "My cat died laughing."),
        ("I live in Leeds.", "I moved to York in 1999."),
        ("I live in Leeds.", "I relocated to York in 1999."),
        ("I live in Leeds.", "We're relocating to York."),
        ("I live in Leeds.", "I moved in with my boyfriend in March."),
        ("I live in Leeds.", "I was born in Hull. I moved to York."),
        ("I'm vegetarian.", "I eat cheese again."),
        ("I take metformin 500 mg.", "I stopped taking ibuprofen."),
        ("I'm going to Rome on 20 December.", "The Paris trip is cancelled."),
        ("I'm going to Rome on 20 December.", "I cancelled my gym membership."),
        ("I live in Rome.", "The Rome trip is cancelled."),
        ("My train is at 7:40 on 18 June.", "My train is at 8:10 on 19 June."),
        ("My dad is Bob.", "Bob died a little inside."),
        ("My cat Biscuit is 11.", "Biscuit died a bit when the vet came."),
        ("My dad is Bob.", "Bob died of embarrassment."),
        ("My wife is Gemma.", "We split up in two groups."),
        ("My wife is Gemma.", "We broke up a fight."),
        ("My wife is Gemma.", "My mum and I split up in the museum."),
        ("My wife is Gemma.", "Google and I broke up."),
        ("I take warfarin.", "My mum is in hospital, the doctor stopped the warfarin."),
        ("I take warfarin.", "My mum is in hospital and the doctors stopped the warfarin."),
        ("I'm pescatarian.", "I eat fish now."),
    ],
)
def test_what_is_over_elsewhere_ends_nothing(first: str, second: str) -> None:
    known = claims(first)

    assert not [fact for fact in said(second, known=known).facts if fact.contradicts or fact.corrects]


@pytest.mark.parametrize(
    ("known", "text", "claim", "day"),
    [
        ("The user's brother is Tom", "My brother died in 2019.", "The user's brother Tom died in 2019", "2019-01-01"),
        (
            "The user's brother is Tom",
            "My brother died last week.",
            "The user's brother Tom died in the week of 8 May 2023",
            "2023-05-08",
        ),
        ("The user's cat is Biscuit", "My cat died yesterday.", "The user's cat Biscuit died", "2023-05-17"),
        (
            "The user's brother is Tom",
            "Tom died of cancer in 2019.",
            "The user's brother Tom died in 2019",
            "2019-01-01",
        ),
    ],
)
def test_the_day_of_a_death_is_kept_where_the_name_is_known(known: str, text: str, claim: str, day: str) -> None:
    fact = said(text, known=[known]).facts[0]

    assert (fact.claim, fact.contradicts, f"{fact.valid_from:%Y-%m-%d}") == (claim, (1,), day)


@pytest.mark.parametrize(
    ("new", "old", "ends"),
    [
        ("The wedding is off", "The wedding is on 12 June 2027", True),
        ("The user canceled their Netflix subscription", "The user has a Netflix subscription", True),
        ("The user canceled their Netflix subscription", "The user has a gym and a Netflix subscription", False),
        ("The Rome trip is cancelled", "The user has lived in Rome since May 2020", False),
        ("The trip is cancelled", "The user is going to Rome on 20 December 2026", False),
        ("The Rome conference is cancelled", "The user is going to Rome on 20 December 2026", False),
        ("Tom's trip to Rome is cancelled", "The user is going to Rome on 20 December 2026", False),
        ("Tom's trip to Rome is cancelled", "Tom is going to Rome on 20 December 2026", True),
        ("The user canceled their trip to Rome", "The user's mum is going to Rome on 20 December 2026", False),
        ("The party is cancelled", "The user is flying to Spain for a party on 3 June 2026", False),
        ("The party is cancelled", "The user is going to the party on 3 June 2026", True),
        (
            "The user's dentist appointment got moved to 14 December 2026",
            "The user has a dentist appointment on 12 December 2026 at 3pm",
            True,
        ),
        ("The release was moved to 7 May 2026", "The user is speaking at the party on 3 June 2026", False),
        ("The user is not going to Rome", "The user is going to Rome on 20 December 2026", True),
    ],
)
def test_what_is_cancelled_or_moved_ends_the_plan_of_it(new: str, old: str, *, ends: bool) -> None:
    assert ends_plan(new, old) is ends


@pytest.mark.parametrize(
    ("text", "known", "ended"),
    [
        ("I cancelled my membership.", ["The user has a gym membership"], (1,)),
        ("I cancelled my membership.", ["The user has a gym membership", "The user has a club membership"], ()),
        ("I cancelled my gym membership.", ["The user has a gym membership", "The user has a club membership"], (1,)),
        (
            "I cancelled my appointment.",
            ["The user has a dentist appointment on 12 June 2023", "The user has a doctor appointment on 14 June 2023"],
            (),
        ),
        (
            "I cancelled my trip to Rome.",
            ["The user is going to Rome on 20 June 2023", "The user is flying to Rome on 20 June 2023 at 9am"],
            (1, 2),
        ),
    ],
)
def test_what_is_cancelled_ends_a_plan_only_where_no_other_fits(
    text: str, known: list[str], ended: tuple[int, ...]
) -> None:
    assert said(text, known=known).facts[0].contradicts == ended


def test_what_is_cancelled_ends_a_plan_that_was_corrected_before() -> None:
    facts = said("My dentist appointment is on 12 June.", "No, the 14th.", "My dentist appointment is cancelled.").facts

    assert facts[-1].contradicts == (1, 2)


@pytest.mark.parametrize(
    ("known", "text"),
    [
        ("The user smokes ten cigarettes a day", "I quit smoking in October."),
        ("The user smokes about five a day", "I've stopped smoking for good."),
        ("The user smokes", "I gave up smoking last year."),
        ("The user takes antibiotics", "Finished the antibiotics on Sunday and the tooth is fine."),
        ("The user takes antibiotics for a tooth", "I've finished my course of antibiotics."),
        ("The user takes prednisone 20 mg", "I finished the course of prednisone."),
        ("The user owes Petra 200 euros", "I paid Petra back."),
        ("The user owes Petra 200 euros", "I paid Petra the 200 euros back."),
        ("The user is vegetarian", "I've started eating meat again."),
        ("The user is vegetarian", "By the way I eat fish again these days, the doctor talked me into it."),
        ("The user is vegetarian", "Confession: I eat meat again, the doctor wanted my iron up."),
        (
            "The user asks to always answer in bullet points",
            "Actually drop the bullets, I prefer plain paragraphs now.",
        ),
        ("The user asks to use bullet points", "No more bullet points, please."),
        ("The user asks to answer in bullet points", "You can drop the bullet points."),
        ("The user asks to use bullet points", "I don't want bullet points anymore."),
        ("The user asks to use bullet points", "Stop using bullet points."),
        ("The user asks never to use emojis", "You know what, emojis are fine after all."),
        ("The user asks for no emojis", "You can use emojis again."),
        ("The user asks not to use emojis", "Emojis are okay with me."),
    ],
)
def test_what_is_over_ends_a_claim_that_is_known(known: str, text: str) -> None:
    assert [fact.contradicts for fact in said(text, known=[known]).facts if fact.contradicts] == [(1,)]


@pytest.mark.parametrize(
    ("known", "text"),
    [
        ("The user smokes brisket every weekend", "I quit smoking in October."),
        ("The user's brother smokes ten cigarettes a day", "I quit smoking in October."),
        ("The user takes ibuprofen", "I finished the ibuprofen."),
        ("The user takes antibiotics", "I finished the report."),
        ("The user owes Petra 200 euros", "I paid Petra 50 euros back."),
        ("The user owes Petra 200 euros", "I paid Tom back."),
        ("Petra owes the user 200 euros", "I paid Petra back."),
        ("The user is vegetarian", "I've started eating fruit again."),
        ("The user is vegetarian", "My sister eats fish again these days."),
        ("The user is pescatarian", "I eat fish again these days."),
        ("The user asks to use bullet points", "Drop the table."),
        ("The user asks for no emojis in commit messages", "Emojis are fine after all."),
        ("The user asks not to use emojis", "The bullets are fine now."),
        ("The user asks to use emojis", "Emojis are fine again."),
        ("The user asks to use bullet points", "I don't want bullet points in the summary of today."),
        ("The user has a cat called Pim", "My dog Pim died."),
    ],
)
def test_what_is_over_leaves_a_claim_about_something_else(known: str, text: str) -> None:
    assert not [fact for fact in said(text, known=[known]).facts if fact.contradicts or fact.corrects]


def test_a_death_ends_that_somebody_has_an_animal_of_that_name() -> None:
    known = ["The user's cat is Pim", "The user has a cat called Pim", "The user has a cat called Tom"]

    assert said("Pim died on Sunday.", known=known).facts[0].contradicts == (1, 2)


@pytest.mark.parametrize(
    ("first", "second", "claim"),
    [
        ("I have a dog.", "I don't have a dog any more.", "The user no longer has a dog"),
        ("I have a dog.", "We don't have a dog any longer, sadly.", "The user does not have a dog anymore"),
        ("I work at Acme.", "I don't work at Acme any more.", "The user no longer works at Acme"),
        ("I'm allergic to nuts.", "I'm not allergic to nuts any more.", "The user is no longer allergic to nuts"),
        (
            "My sister lives in Leeds.",
            "My sister doesn't live in Leeds any more.",
            "The user's sister no longer lives in Leeds",
        ),
    ],
)
def test_any_more_at_the_end_of_a_denial_says_that_it_was_so(first: str, second: str, claim: str) -> None:
    facts = said(second, known=claims(first)).facts

    assert [(fact.claim, fact.contradicts) for fact in facts] == [(claim, (1,))]


@pytest.mark.parametrize(
    "text", ["I don't want any more.", "I can't have any more dairy.", "I don't have any more dogs."]
)
def test_any_more_of_something_ends_nothing(text: str) -> None:
    known = ["The user wants a dog", "The user has a dog", "The user can have dairy"]

    assert not [fact for fact in said(text, known=known).facts if fact.contradicts]


@pytest.mark.parametrize(
    ("known", "text"),
    [
        ("The user goes to pilates on Fridays", "I don't go to pilates any more."),
        ("The user goes to the gym on Mondays", "I don't go to the gym any more."),
        ("The user lifts in the mornings", "I don't lift any more."),
        ("The user lifts in the mornings", "I had to stop lifting, doctor's orders."),
        ("The user has pilates on Fridays at 6", "I quit pilates."),
        ("The user has pilates on Fridays at 6", "I've dropped pilates because of the knee."),
        ("The user has pilates on Fridays at 6", "I gave up pilates last week."),
        (
            "The user is doing Spanish on Duolingo, day 41 of their streak",
            "I've dropped Spanish, it's all Japanese.",
        ),
        ("The user has a dog called Rex", "I don't have the dog any more."),
        ("The user drives an old Volvo estate", "I handed over the keys of the Volvo to a nice couple from Hull."),
        ("The user drives an old Volvo estate, 230,000 miles on the clock", "I finally got rid of the Volvo."),
        ("The user has got Adobe Creative Cloud on a yearly plan, costs a fortune", "I let the Adobe thing run out."),
        ("The user is allergic to peanuts", "My peanut allergy is gone."),
        ("The user is allergic to cats", "I've outgrown my cat allergy."),
        ("Jonas has speech therapy on Tuesdays", "Jonas' speech therapy is over."),
        ("Jonas has speech therapy on Tuesdays", "jonas's speech therapy is finished now"),
        ("The user plays in a band on Thursdays", "I quit the band."),
        ("The user looks after the club's books with Tom", "I passed the club's books on to Sheila."),
        ("The user tutors Felix every Wednesday", "I don't tutor Felix any more."),
    ],
)
def test_what_somebody_quits_ends_what_they_did_or_had(known: str, text: str) -> None:
    assert [fact.contradicts for fact in said(text, known=[known]).facts if fact.contradicts] == [(1,)]


@pytest.mark.parametrize(
    ("known", "text"),
    [
        ("The user has a dog", "My sister doesn't have a dog any more."),
        ("The user has a dog and a cat", "I gave up the cat."),
        ("The user has a dog, a cat and a hamster", "I gave away the dog."),
        ("The user has a phone contract with Telekom", "I dropped my phone."),
        ("The user has a new phone", "I dropped my phone."),
        ("The user has a car", "I stopped the car."),
        ("The user has a pilates instructor from Rome", "I quit pilates."),
        ("The user drinks coffee in the mornings", "I stopped drinking coffee after lunch."),
        ("The user drinks coffee in the mornings", "I gave up coffee for Lent."),
        ("The user goes to the gym on Mondays", "I don't go to the gym on Sundays any more."),
        ("The user goes to pilates on Fridays", "I quit pilates for today."),
        ("The user has pilates on Fridays", "I might drop pilates."),
        ("The user has pilates on Fridays", "I'm thinking of quitting pilates."),
        ("The user has pilates on Fridays", "My sister quit pilates."),
        ("The user has pilates on Fridays", "I quit smoking."),
        ("The user lifts in the mornings", "I had to stop running."),
        ("The user lifts in the mornings", "I don't lift today."),
        ("The user plays the violin", "I no longer play the piano."),
        ("The user is allergic to peanuts", "My cat allergy is gone."),
        ("Jonas has speech therapy on Tuesdays", "Mila's speech therapy is over."),
        ("Jonas has speech therapy on Tuesdays", "Jonas' swim class is over."),
        ("Jonas has swim class on Tuesdays", "Jonas' swim class is over for today."),
        ("The user drives an old Volvo", "I sold my bike."),
    ],
)
def test_what_somebody_quits_leaves_all_else(known: str, text: str) -> None:
    assert not [fact for fact in said(text, known=[known]).facts if fact.contradicts or fact.corrects]


@pytest.mark.parametrize(
    ("known", "text", "claim"),
    [
        ("Closing is 4 December 2023", "closing slipped to dec 11", "Closing was moved to 11 December 2023"),
        (
            "Standup is at 9:30 every day",
            "They've pushed our standup to ten fifteen.",
            "Standup was moved to ten fifteen",
        ),
        ("The user's operation is on 8 June 2023", "Op has been put off, too much flu.", "The user's op was put off"),
        ("Mila has swim class on Wednesdays at 4", "swim class got moved", "Mila's swim class was moved"),
        (
            "Mila has swim class on Wednesdays at 4",
            "Mila's swim class moved to Fridays at 5.",
            "Mila's swim class moved to Fridays at 5",
        ),
        (
            "The dentist is on 10 June 2023 at 9",
            "The dentist appointment was moved to 15 June.",
            "The dentist appointment was moved to 15 June 2023",
        ),
        ("The user plays skat every Friday", "We play skat on Tuesdays now.", "The user plays skat on Tuesdays"),
        (
            "Mila has swim class on Wednesdays at 4",
            "Mila has swim class on Fridays at 5 now.",
            "Mila has swim class on Fridays at 5",
        ),
        (
            "The user's supervisor is Professor Lindqvist",
            "My supervisor is Dr Okafor now.",
            "The user's supervisor is Dr Okafor",
        ),
        (
            "The user takes 5 mg of Ramipril in the morning",
            "The doctor upped my Ramipril to 10 mg.",
            "The user is on 10 mg of Ramipril",
        ),
    ],
)
def test_what_was_moved_or_is_otherwise_now_ends_the_former_value(known: str, text: str, claim: str) -> None:
    facts = said(text, known=[known]).facts

    assert [(fact.claim, fact.contradicts) for fact in facts if fact.contradicts] == [(claim, (1,))]


@pytest.mark.parametrize(
    ("known", "text"),
    [
        ("Closing is 4 December 2023", "My sister moved to Leeds."),
        ("Closing is 4 December 2023", "opening slipped to dec 11"),
        ("Mila has swim class on Wednesdays at 4", "Jonas' swim class moved to Fridays at 5."),
        ("Mila has swim class on Wednesdays at 4", "Mila's speech therapy moved to Fridays at 5."),
        ("The user plays skat every Friday", "We play skat on Tuesdays too now."),
        ("The user plays skat every Friday", "We play chess on Tuesdays now."),
        ("The user plays skat every Friday", "We play skat on Tuesdays."),
        ("The user's brother is Tom", "My brother is Ben now in the play."),
        ("The user takes 5 mg of Ramipril in the morning", "The doctor upped my metformin to 1000 mg."),
        ("Anna takes 5 mg of Ramipril", "I take 10 mg of Ramipril."),
    ],
)
def test_what_was_moved_or_is_otherwise_now_leaves_all_else(known: str, text: str) -> None:
    assert not [fact for fact in said(text, known=[known]).facts if fact.contradicts or fact.corrects]


@pytest.mark.parametrize(
    ("known", "text", "ends"),
    [
        ("The team meeting is on Fridays at 10", "The team meeting was moved to Thursdays at 9.", True),
        ("The team meeting is on Fridays at 10", "The team meeting was moved to 11.", True),
        ("The team meeting is on Fridays at 10", "The team meeting was moved to room 10.", False),
        ("The team meeting is on Fridays at 10", "The team meeting was moved to Thursday just this once.", False),
        ("The user's dentist appointment is on 12 June 2023", "My dentist moved to York.", False),
        ("The user's dentist appointment is on 12 June 2023", "My dentist appointment got moved to 14 June.", True),
    ],
)
def test_a_move_to_a_place_or_for_once_ends_no_time(known: str, text: str, ends: bool) -> None:
    assert any(fact.contradicts for fact in said(text, known=[known]).facts) is ends


@pytest.mark.parametrize(
    ("known", "text", "ends"),
    [
        ("The user drinks coffee every day", "I no longer drink coffee.", True),
        ("The user drinks coffee every day", "I no longer drink tea.", False),
        ("Mila has piano lessons on Mondays", "Mila quit piano lessons.", True),
        ("Mila has piano lessons on Mondays", "Mila has given up piano lessons.", True),
        ("Mila has piano lessons on Mondays", "Ben quit piano lessons.", False),
        ("Mila has piano lessons on Mondays", "Mila quit crying in piano lessons.", False),
        ("The user has a dog", "We had to give away the dog.", True),
        ("The user has a dog", "We had to give away the dog food.", False),
        ("The user drives a Golf", "We had to sell the Golf.", True),
        ("The user drives a Golf", "I want to sell the Golf.", False),
        ("The user drives a Golf", "We decided to sell the Golf.", False),
        ("The user drives a Golf", "Should we sell the Golf?", False),
    ],
)
def test_an_end_is_read_of_any_verb_and_of_people_by_name(known: str, text: str, ends: bool) -> None:
    assert any(fact.contradicts for fact in said(text, known=[known]).facts) is ends


@pytest.mark.parametrize(
    ("known", "text", "ends"),
    [
        ("The user takes 5 mg of Ramipril", "They upped my Ramipril to 10 mg.", True),
        ("The user takes 5 mg of Ramipril", "My GP raised my Ramipril to 10 last week.", True),
        ("The user takes 5 mg of Ramipril", "My GP raised my Ramipril to 10.", True),
        ("The user takes 5 mg of Ramipril", "I put my Ramipril to 1 side.", False),
        ("The user takes 5 mg of Ramipril", "The pharmacist changed my Ramipril to 2 boxes.", False),
        ("The user has a dog", "I handed over the dog to the vet for surgery.", False),
        ("The user has a dog", "I handed over the dog to my aunt.", True),
        ("The user runs the newsletter", "I handed the newsletter over to Ben for proofreading.", False),
        ("The user runs the newsletter", "I passed the newsletter on to my mum to read.", False),
        ("The user runs the newsletter", "I handed the newsletter over to Ben.", True),
        ("The user drinks coffee every day", "I stopped drinking coffee for a month.", False),
        ("The user drinks coffee every day", "I stopped drinking coffee a month ago.", True),
    ],
)
def test_what_is_for_a_purpose_or_a_time_ends_nothing_for_good(known: str, text: str, ends: bool) -> None:
    assert any(fact.contradicts for fact in said(text, known=[known]).facts) is ends


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("I'm not moving to Berlin after all.", True),
        ("I'm not moving to Berlin in March after all.", True),
        ("I'm not moving after all.", True),
        ("The move to Berlin is off.", True),
        ("Our move to Berlin has been postponed.", True),
        ("I've cancelled the move to Berlin.", True),
        ("We decided not to move to Berlin.", True),
        ("We're staying in Ghent after all.", True),
        ("I'm moving to Hamburg in June instead.", True),
        ("I'm moving to Hamburg in March.", True),
        ("I'm moving to Berlin in June.", True),
        ("I'm moving to Hamburg in September.", False),
        ("I'm not moving to Hamburg after all.", False),
        ("The move to Hamburg is off.", False),
        ("The offsite in Berlin is off.", False),
        ("My sister isn't moving to Berlin after all.", False),
        ("We're staying in Ghent this weekend.", False),
        ("We're staying in Berlin after all.", False),
        ("My sister is moving to Hamburg in March.", False),
    ],
)
def test_a_planned_move_is_over_if_it_is_called_off(text: str, *, ends: bool) -> None:
    known = ["The user is moving to Berlin in March 2024"]

    assert any(fact.contradicts for fact in said(text, known=known).facts) is ends


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("I'm not starting at Acme after all.", True),
        ("I'm not taking the job at Acme.", True),
        ("Acme withdrew the offer.", True),
        ("The job at Acme fell through.", True),
        ("I turned down the job at Acme.", True),
        ("I start my new job at Acme on 15 February.", True),
        ("Globex withdrew the offer.", False),
        ("I turned down the job at Globex.", False),
        ("I'm not working at Acme today.", False),
        ("I'm not moving to Berlin after all.", False),
    ],
)
def test_a_planned_job_is_over_if_it_is_called_off(text: str, *, ends: bool) -> None:
    known = ["The user starts their new job at Acme on 1 February 2024"]

    assert any(fact.contradicts for fact in said(text, known=known).facts) is ends


@pytest.mark.parametrize(
    ("known", "text", "ends"),
    [
        ("The user lives in a small house near Leeds", "I've moved to Sheffield.", True),
        ("The user lives on a houseboat in Amsterdam", "I live in Haarlem now.", True),
        ("The user lives in a shared flat in Leeds", "I live in Sheffield now.", True),
        ("The user lives in a flat in Leeds", "I live in Leeds.", False),
        ("The user lives in a village near Leeds", "I live in Otley.", False),
        ("The user lives in Portugal", "I live in a flat in Porto.", False),
        ("The user sees a physio every Wednesday", "I don't go to physio anymore.", True),
        ("The user goes running every morning", "I don't run anymore.", True),
        ("The user goes to the gym on Mondays", "I don't go to the cinema anymore.", False),
        ("The user studies law in Graz", "I dropped out of law school.", True),
        ("The user studies law in Graz", "I dropped out of the half marathon.", False),
        ("The user is running the York half marathon in December 2023", "I dropped out of the half marathon.", True),
        (
            "The user is running the York half marathon in December 2023",
            "I had to pull out of the half marathon, shin splints.",
            True,
        ),
        (
            "The user is running the York half marathon in December 2023",
            "I'm not running the half marathon anymore.",
            True,
        ),
        ("The user is running the York half marathon in December 2023", "I dropped out of the choir.", False),
        ("Hannah is single", "Hannah is engaged to Marcus.", True),
        ("Hannah is divorced", "Hannah is engaged to Marcus.", False),
    ],
)
def test_an_end_in_other_words_ends_what_it_means(known: str, text: str, *, ends: bool) -> None:
    assert any(fact.contradicts for fact in said(text, known=[known]).facts) is ends
