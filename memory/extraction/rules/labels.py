"""Labels in front of a colon that are the speaker's own words, and no name of another speaker: "retries: 5".

The name of a speaker in a transcript looks like a label. What follows a label of somebody's own is a value or about a
thing, and speaks of neither "I" nor "you".
"""

import re

from memory.extraction.rules.words import MACHINE_NAMES, PERSON_RELATIONS, PLURAL_RELATIONS, PROFESSIONS, words

_LABEL = re.compile(
    r"\s*(?:(?:so|and|also|ok|okay|then|now|oh|btw|plus|but)[,:]? )*(?P<label>(?:[A-Z]?[a-z0-9][\w'/-]*|[A-Z]{2,5}s?)"
    r"(?: (?:[a-z0-9][\w'/-]*|(?<=(?:to|of|in|on|at|by) )[A-Z][\w-]*|[A-Z]{2,5}s?)){0,5}): (?P<value>\S.*)",
)
_SPOKEN = re.compile(
    r"\b(?:I|i|I'm|im|me|my|mine|we|our|us|you|your|u|yes|no way|yeah|hi|hey|hello|lol|haha|thanks|thank|sorry|please"
    r" help|oh|well|ok|okay)\b|[!?]\s*$|[\"“”]"
)
TOPICS = words(
    "retries retry timeout timeouts limit limits port ports seed metric metrics format formats prefix suffix "
    "schedule archive release releases deadline deadlines budget owner owners reviewer reviewers database databases "
    "db staging production prod hosting region regions bucket buckets branch branches backend frontend logging "
    "caching cache caches storage emails email mails mail exports export imports import backups backup deploys "
    "deploy deployments deployment migrations secrets tests testing linting formatting versions version naming "
    "pagination auth authentication permissions encoding encryption monitoring alerts alerting rollout rollouts "
    "support billing payments invoices pricing tracing metrics uploads downloads notifications dates currency "
    "currencies timezone timezones units language languages colour colours color colors font fonts size sizes "
    "resolution threshold thresholds retention concurrency workers replicas queue queues topic topics endpoint "
    "endpoints host hosts server servers domain domains url urls path paths folder folders table tables schema "
    "schemas column columns index indexes label labels target targets goal stack framework license licence style "
    "commits reviews approvals approval cadence standup retro demo launch freeze venue location date time budget "
    "capacity headcount quota quotas"
)
_PERSONS = (
    PERSON_RELATIONS | PLURAL_RELATIONS | PROFESSIONS | MACHINE_NAMES
    | words(
        "man woman boy girl guy friend voice speaker narrator interviewer host guest caller reply answer question "
        "him her them he she they kid child lady customer client patient chat subject sender quote note notes "
        "thanks thank e.g everyone somebody someone said says wrote told asked tells asks writes"
    )
)  # fmt: skip
_KIND = re.compile(
    r"\b(?:name|names|format|limit|size|length|timeout|rate|level|key|keys|time|date|policy|rule|number|numbers|type"
    r"|version|count|window|range|interval|budget|threshold|price|deadline|schedule|owner|channel|branch|bucket|table"
    r"|db|database|server|port|host|region|url|path|folder|strategy|backend|frontend|mode|style|order|address|prefix"
    r"|suffix|colou?r|code|id|ids|train|plan|stage|target|goal)s?$"
)
_LED = re.compile(r"(?:the|our|all|for|in|on) |.* (?:to|of|for|per|in|on|by|from|with|between) ", re.IGNORECASE)


def is_own_label(line: str) -> bool:
    """Return True if a line begins with a label of the speaker's own: "Timeouts to Stripe: 10 seconds"."""
    match = _LABEL.match(line[:400])
    if match is None or _SPOKEN.search(match["value"]):
        return False
    label = match["label"].lower()
    tokens = label.split()
    if not _PERSONS.isdisjoint(tokens):
        return False
    is_topic = tokens[-1] in TOPICS or tokens[0] in TOPICS
    return is_topic or (len(tokens) > 1 and (_LED.match(label) is not None or _KIND.search(label) is not None))
