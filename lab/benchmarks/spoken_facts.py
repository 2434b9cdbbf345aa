"""Facts like those that conversations leave, for benchmarks whose vectors must come from texts.

An index relies on what texts have in common, which random vectors do not have.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from random import Random

from django.db import connection
from pgvector import HalfVector
from psycopg.types.numeric import Int4

from memory.models.statements import Embedding
from memory.providers.embeddings import embedding_provider


def sql_list(text: str) -> Sequence[str]:
    return " ".join(text.split()).split(", ")


NAMES = sql_list(
    "Ana, Ben, Carla, Dmitri, Elena, Farid, Grace, Hiro, Ines, Jonas, Kavya, Liam, Mara, Nadia, Omar, Petra, Sven"
)
SURNAMES = sql_list(
    "Abbott, Baker, Castro, Diaz, Fischer, Garcia, Hughes, Ito, Jensen, Khan, Lopez, Meyer, Novak, Olsen, Park"
)
PLACES = sql_list(
    "Rome, Lisbon, Oslo, Kyoto, Lagos, Quito, Berlin, Denver, Cairo, Hanoi, Dublin, Milan, Porto, Seoul, Tunis"
)
THINGS = sql_list("""bicycle, piano, greenhouse, backend service, tax return, novel, marathon, puppy, kitchen,
    telescope, invoice parser, garden shed, data pipeline,
    violin, sailing boat, thesis, podcast, quilt, drone, coffee machine,
    search index, motorbike, chess club, login page, wedding cake, solar panel, aquarium, payment gateway""")
SORTS = sql_list("""old, new, broken, costly, tiny, noisy, favourite, unfinished, borrowed, blue, wooden, rented,
    shared, secret, slow""")
ACTIONS = sql_list("""repaired, sold, bought, painted, tested, redesigned, lost, found, lent, described, cleaned,
    moved, finished, inherited""")
REASONS = sql_list("""because the deadline moved, for a friend, after the storm, before the holidays, despite the cost,
    to save time, for the spring fair, as a birthday present, while the team was away, on a whim""")
TIMES = sql_list("""on Monday, last week, in March, two years ago, yesterday, in the summer of 2021, this morning,
    at the weekend, in late autumn, during the conference, every Friday, before lunch, in 2019""")
SENTENCES = (
    "{who} {did} the {sort} {thing} {why}.",
    "{who} {did} a {sort} {thing} in {place} {when}.",
    "{who} told us {when} about the {sort} {thing} in {place}.",
    "{who} works on a {sort} {thing} in {place} {why}.",
    "{who} prefers the {sort} {thing} to the {other} {thing}.",
    "{who} will need a {sort} {thing} {when} {why}.",
    "The {sort} {thing} of {who} was {did} in {place} {when}.",
    "{who} lives in {place} and keeps a {sort} {thing} there.",
)
MAX_TALK_TURNS = 30
AT_ONCE = 256
SEED = 7

TABLE = "CREATE TEMPORARY TABLE spoken_facts (number int PRIMARY KEY, text text, vector halfvec) ON COMMIT DROP"


def fill_spoken_facts(count: int, *, again_each: int) -> None:
    """Fill the table `spoken_facts` for the rest of the transaction, numbered from 1.

    Vectors are of the configured model. Embedding takes most of the time. One in `again_each` repeats what was said
    shortly before.
    """
    texts = list(islice(facts(), count))
    for number in range(again_each, count, again_each):
        texts[number] = texts[number - again_each // 2]
    with connection.cursor() as cursor:
        cursor.execute(TABLE)
        with cursor.copy("COPY spoken_facts FROM STDIN (FORMAT BINARY)") as copy:
            for start in range(0, count, AT_ONCE):
                some = tuple(texts[start : start + AT_ONCE])
                for number, (text, vector) in enumerate(zip(some, vectors_of(some), strict=True), start + 1):
                    copy.write_row((Int4(number), text, HalfVector(vector)))
        cursor.execute("ANALYZE spoken_facts")


def facts() -> Iterator[str]:
    """Yield distinct facts without end, the same ones each time. Successive ones are about one thing of one person."""
    random = Random(SEED)  # noqa: S311
    seen: set[str] = set()
    while True:
        who = f"{random.choice(NAMES)} {random.choice(SURNAMES)}"
        thing, place = random.choice(THINGS), random.choice(PLACES)
        for _ in range(random.randint(1, MAX_TALK_TURNS)):
            text = random.choice(SENTENCES).format(
                who=who,
                thing=thing,
                place=place,
                sort=random.choice(SORTS),
                other=random.choice(SORTS),
                did=random.choice(ACTIONS),
                why=random.choice(REASONS),
                when=random.choice(TIMES),
            )
            if text not in seen:
                seen.add(text)
                yield text


@cache
def vectors_of(texts: Sequence[str]) -> Embedding:
    """Embed the texts once, for all jobs that are measured over them."""
    return embedding_provider().embed(texts, deadline_seconds=None)
