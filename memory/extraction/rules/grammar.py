"""Which verbs make which claims: one line a rule.

Each is a verb, what has to follow it, what it says of its subject, and the forms in which it says so. To add one, add a
line, and a sentence to `test_rules.py` that it reads and one that it must not.
"""

import re
from dataclasses import dataclass

from memory.extraction.rules.names import NAME
from memory.extraction.rules.verbs import Form
from memory.extraction.rules.words import LANGUAGES, POSSESSIONS, PROFESSIONS

_A_THING = r"(?:an?|the|my|our|some|two|three|four|five|six|seven|eight|nine|ten|several|many|\d+) [\w'$-]|[A-Z]\w"
"""A noun behind an article or a number, or a name: not half an idiom ("took care of")."""

HAPPENED = frozenset({Form.PAST, Form.PERFECT, Form.FUTURE, Form.INTENT})
DONE = HAPPENED | {Form.PROGRESSIVE, Form.LASTING}
HABIT = DONE | {Form.PRESENT, Form.USED_TO, Form.NO_LONGER}
HELD = frozenset({Form.PRESENT, Form.PAST, Form.PERFECT, Form.LASTING, Form.PROGRESSIVE, Form.FUTURE, Form.INTENT}) | {
    Form.USED_TO,
    Form.NO_LONGER,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """`needs` matches the beginning of what follows the verb; `type` is that of a name that follows its preposition."""

    verb: str
    needs: re.Pattern[str]
    attribute: str
    forms: frozenset[Form]
    type: str = ""
    relationship: str = ""
    refuses: re.Pattern[str] | None = None
    is_state: bool = False


def _rule(
    verb: str,
    needs: str,
    attribute: str = "event",
    forms: frozenset[Form] = DONE,
    *,
    refuses: str = "",
    makes: tuple[str, str] = ("", ""),
) -> Rule:
    return Rule(
        verb=verb,
        needs=re.compile(f"(?:{needs})"),
        attribute=attribute,
        forms=forms,
        refuses=re.compile(f"(?:{refuses})") if refuses else None,
        type=makes[0],
        relationship=makes[1],
        is_state=forms is HELD,
    )


_PLACE, _ORGANIZATION = ("place", "LOCATED_IN"), ("organization", "WORKS_FOR")
_TO_PLACE = r"(?P<prep>in|to) "
_CAPITAL = rf"(?={NAME})"
_NOUNS = "|".join(sorted(POSSESSIONS, key=len, reverse=True))
_JOBS = "|".join(sorted(PROFESSIONS, key=len, reverse=True))
_INSTRUMENTS = (
    "piano|guitar|violin|cello|drums|flute|clarinet|saxophone|sax|trumpet|ukulele|bass|harp|keyboard|organ|accordion"
    "|banjo|mandolin|harmonica|viola|oboe|trombone|recorder|keyboards"
)
_GAMES = (
    "chess|tennis|soccer|football|basketball|baseball|volleyball|hockey|golf|rugby|cricket|badminton|softball|squash"
    "|video games|board games|cards|poker|pool|table tennis|ping pong|handball|water polo|lacrosse|bridge|darts"
)
_MADE = r"(?:an?|my|our|my first|my own|the|some) \w"

STATES = (
    _rule("live", r"(?P<prep>in) ", "residence", HELD, makes=_PLACE, refuses=r"in (?:the (?:moment|present|past|now)"
          r"|peace|fear|harmony|a (?:world|society|dream|bubble|way)|my head|pain|denial|constant|hope)\b"),
    _rule("live", r"alone|with (?:my|an?|the|two|three) \w", "home", HELD),
    _rule("live", r"(?:near|on|at|by) ", "home", HELD, refuses=r"(?:on|with) (?:the edge|it|a|an|my|what)"),
    _rule("work", r"(?P<prep>for|at) ", "employer", HELD, makes=_ORGANIZATION,
          refuses=r"(?:for|at) (?:me|us|it|the (?:moment|same|best)|home|night|my(?:self)?|a while|free|hours|\d)\b"),
    _rule("work", r"as an? ", "profession", HELD, refuses=r"as a (?:team|way|group|result|distraction)"),
    _rule("work", r"in (?:a|an|the|my)? ?[a-z]", "field", HELD,
          refuses=r"in (?:the (?:morning|evening|end|same|past|right)|a (?:way|team)|progress|silence|general|this)"),
    _rule("speak", "|".join(sorted(LANGUAGES)), "language", HELD - {Form.PAST}),
    _rule("study", r"(?P<prep>at) (?:the )?[A-Z]|[a-z]", "studies", HELD, makes=("organization", ""),
          refuses=r"(?:hard|all|a lot|late|together|with|for hours|every|real|really|so|very|the (?:map|menu))\b"),
    _rule("play", rf"(?:the |some |acoustic |electric |classical )*(?:{_INSTRUMENTS})\b", "plays", HELD),
    _rule("play", rf"(?:some |a lot of )?(?:{_GAMES})\b", "plays", HELD),
    _rule("own", r"(?:an?|two|three|\d+|several|my own) \w", "owns", HELD - {Form.PROGRESSIVE, Form.LASTING}),
    _rule("have", rf"(?:an?|one|two|three|four|five|six|seven|\d+|some|several) (?:[\w'-]+ ){{0,3}}?(?:{_NOUNS})\b",
          "has", frozenset({Form.PRESENT, Form.USED_TO, Form.NO_LONGER, Form.INTENT}),
          refuses=r".{0,40}\b(?:in common|on my mind|day|time|night)\b"),
    _rule("have", r"an? (?:[\w-]+ )?(?:passion|love|soft spot|interest|talent|fear) (?:for|in|of) ", "passion",
          frozenset({Form.PRESENT, Form.PAST, Form.PERFECT})),
    _rule("drive", r"an? [\w-]+", "drives", frozenset({Form.PRESENT, Form.USED_TO}), refuses="a (?:lot|bit|hard)"),
)  # fmt: skip

HABITS = (
    _rule("collect", r"[a-z]{3,}", "hobby", HABIT, refuses="data|my thoughts|myself|dust"),
    _rule("teach", r"(?:an?|the|my|our|[a-z]+(?: [a-z]+)? (?:class|classes|to|at|in)|[A-Z]|yoga|math|science|kids|children)\b",
          "event", HABIT, refuses="(?:me|us|the importance|my(?:self)? (?:a|to|that))"),
    _rule("coach", r"(?:an?|the|my|our|kids|youth|girls|boys) ?\w", "event", HABIT),
    _rule("run", rf"(?:{_A_THING}|for (?:office|mayor|\w+ council)|in (?:a|the))", "event", HABIT,
          refuses=r"(?:some|a (?:lot|bit|risk|few|tight|fever)|the (?:risk|show|other)|in the (?:same|family))"),
    _rule("volunteer", r"(?:at|in|for|with|to|as) (?:an?|the|my|our|[a-z])", "event", HABIT),
    _rule("attend", _A_THING, "event", HABIT),
    _rule("practice", r"[a-z]{3,}", "event", HABIT, refuses="self-|what|gratitude|more|every"),
    _rule("practise", r"[a-z]{3,}", "event", HABIT, refuses="self-|what|more|every"),
    _rule("mentor", _A_THING, "event", HABIT),
    _rule("foster", _A_THING, "event", HABIT, refuses="a (?:sense|love|culture|connection)"),
    _rule("manage", r"(?:an?|the|my|our) \w", "event", HABIT, refuses="the (?:stress|pain|situation)|my (?:time|stress)"),
    _rule("write", rf"(?:{_A_THING}|poems|poetry|songs|music|fiction|novels|articles|stories|about my)", "event", HABIT,
          refuses="(?:the (?:rest|end|way)|my (?:thoughts|feelings)|a lot)"),
    _rule("garden", "$|in ", "event", HABIT),
    _rule("go", r"(?:to (?:the gym|church|college|school|university|therapy)|(?:hiking|camping|running|swimming|jogging"
          r"|biking|cycling|climbing|surfing|skiing|fishing|dancing|kayaking|sailing|snowboarding|birdwatching)\b)",
          "event", HABIT),
)  # fmt: skip

EVENTS = (
    _rule("move", r"(?:from .{2,40} )?(?:back )?(?P<prep>to) (?:an?|the|my|our|[A-Z])", "residence", makes=_PLACE,
          refuses=r"(?:.{0,40} )?to (?:the (?:next|beat|music|top|rhythm|front|side|left|right)|tears)"),
    _rule("move", r"(?:in with|into|out of|away from) (?:an?|the|my|our)", "event", refuses=r"out of the way|into the next"),
    _rule("visit", rf"{_A_THING}|[a-z]+ (?:shelters|museums|parks|centers|galleries)", forms=DONE | {Form.PRESENT}),
    _rule("travel", rf"(?P<prep>to|around|through|across) (?:an?|the|my|our|[A-Z])", makes=("place", ""),
          refuses="through time"),
    _rule("fly", r"(?P<prep>to|back to) (?:an?|the|my|our|[A-Z])", makes=("place", "")),
    _rule("go", rf"(?:back )?(?:(?P<prep>to) (?!the (?:next|same|bottom|top|heart|point|gym|effort|trouble)\b)(?:an?|the|my|our|[A-Z]|college|therapy)"
          r"|on (?:an?|my|our) (?:[\w-]+ ){0,3}(?:trip|hike|walk|vacation|cruise|tour|date|retreat|road trip|ride|run"
          r"|safari|honeymoon|holiday|camping|adventure|hunt)"
          r"|(?:camping|hiking|swimming|shopping|fishing|surfing|skiing|running|biking|kayaking|dancing|bowling|sailing"
          r"|climbing|snorkeling|diving|jogging|cycling|sightseeing|snowboarding|canoeing|stargazing|skating)\b)",
          refuses=r"to (?:an? (?:lot|place|point|whole)|my (?:head|happy))"),
    _rule("go", r"to (?:an?|the|my|our) ", forms=frozenset({Form.PERFECT, Form.PAST})),
    _rule("join", _A_THING, refuses="the (?:fun|conversation|club!)"),
    _rule("start", r"(?:an?|my|our|the|[a-z]+ing) ?\w", refuses=r"(?:feeling|being|getting|going|to (?:feel|get|see)|the (?:day"
          r"|week|year|process|conversation)|my (?:day|week|morning)|thinking|realizing|making|seeing|something|coming|having"
          r"|noticing|a (?:conversation|new chapter|chat|fire)|looking|putting|becoming|an? (?:amazing|awesome) )"),
    _rule("finish", rf"(?:{_A_THING}|[a-z]+ing \w)", refuses="(?:the (?:day|week)|up)"),
    _rule("complete", _A_THING, refuses="the (?:picture|look)"),
    _rule("adopt", r"(?:an?|two|three|my|our|\d+|[A-Z]|the) ?\w", refuses="a (?:new|positive|mindset|healthier|more|different)"),
    _rule("rescue", _A_THING),
    _rule("paint", rf"{_MADE}|[a-z]+ (?:with|for|on)", refuses="a (?:picture of|clear)"),
    _rule("bake", rf"{_MADE}|[a-z]+s\b"),
    _rule("cook", r"(?:an?|some|my|the|[a-z]+) \w|dinner|lunch|breakfast", refuses="for|up|with"),
    _rule("watch", _A_THING, refuses="the (?:way|kids|clouds|world)|my (?:kids|step|weight|back|little)"),
    _rule("try", rf"(?:out )?(?:an?|some|the|my) \w|[a-z]+ing\b|[A-Z]\w", refuses=r"(?:my (?:best|hardest|luck)|being|doing|getting"
          r"|making|finding|the best|focusing|keeping|putting|a (?:lot|bit|few)|some new|some different|out (?:new|some))"),
    _rule("hike", r"(?:an?|the|up|to|in|[A-Z]) ?\w"),
    _rule("camp", r"(?:at|in|near|by) "),
    _rule("organize", _A_THING, refuses="(?:my|the) (?:thoughts|time|day|schedule)"),
    _rule("organise", _A_THING, refuses="(?:my|the) (?:thoughts|time|day|schedule)"),
    _rule("host", _A_THING),
    _rule("apply", r"(?:to|for) (?:an?|the|my|some|several|[A-Z]|adoption|\w+ (?:jobs|agencies|programs|schools))",
          refuses="to (?:my|the) (?:life|situation)"),
    _rule("graduate", r"(?:from|with|in) \w|$", makes=("", "")),
    _rule("pass", r"(?:an?|the|my) (?:[\w'-]+ ){0,3}(?:exam|exams|test|tests|interview|inspection|interviews|course|class|bar)\b"),
    _rule("pass", r"away", forms=frozenset({Form.PAST})),
    _rule("receive", _A_THING, refuses=r"(?:so|the (?:support|love)|a (?:lot|message|warm))"),
    _rule("donate", r"(?:an?|the|my|our|some|[a-z]+) \w"),
    _rule("plant", r"(?:an?|some|my|the|[a-z]+s|two|three|\d+)\b", refuses="(?:a seed of|the seeds? of)"),
    _rule("celebrate", r"(?:my|our|the|[A-Z])\w* ?\w"),
    _rule("perform", r"(?:at|in|with|an?|my|the) "),
    _rule("launch", _MADE),
    _rule("open", _MADE, refuses=r"(?:an?|my|the) (?:door|window|eyes?|heart|mind|mail|world|new (?:door|world|chapter)|letter|way)s?\b"),
    _rule("create", r"(?:an?|my|our|the) \w", "created", refuses=r"(?:an?|my|our|the) (?:[\w-]+ ){0,2}(?:space|environment|sense|place"
          r"|atmosphere|impact|world|memor\w+|balance|difference|change|bond|opportunit\w+|connection|moments?|future|home"
          r"|life|feeling|vibe|experiences?|mood|community|family)\b"),
    _rule("design", _MADE, "created"),
    _rule("invent", _MADE, "created"),
    _rule("compose", _MADE, "created"),
    _rule("publish", _MADE, "created"),
    _rule("record", _MADE, "created", refuses="the (?:moment|whole)"),
    _rule("found", rf"(?:(?P<prep>){_CAPITAL}|an? \w)", "created", HAPPENED, makes=("organization", "CREATED_BY")),
    _rule("turn", r"\d{1,2}$", forms=frozenset({Form.PAST})),
    _rule("develop", r"an? (?:[\w-]+ )?(?:app|game|website|program|tool|library|course|curriculum|prototype|product|plan|recipe)\b", "created"),
    _rule("build", r"(?:an?|my|our|some|the) \w", "created", refuses=r"(?:an?|my|our|the|some) (?:[\w-]+ ){0,2}(?:relationships?|trust|confidence"
          r"|life|connection|community|bond|network|family|future|strength|portfolio|career|brand|foundation|environment|muscle)\b"),
    _rule("make", r"(?:an?|some|my own|our own) (?!(?:[\w-]+ )?(?:difference|decision|mistake|point|list|impact|change|lot|living|effort|choice|plan|deal"
          r"|habit|wish|move|friend|friends|memories|mess|progress|connections?|comeback|bit|name|good|note|contribution|family|life|new friends|place"
          r"|career|space|positive|world|changes|call|promise|home|fuss|donation|commitment|statement|adjustments|bond|trip|fresh|difference)\b)\w"),
    _rule("buy", _A_THING, refuses="(?:some time|the idea|a (?:lot|bit|few things))"),
    _rule("purchase", _A_THING),
    _rule("order", _A_THING),
    _rule("rent", _A_THING),
    _rule("sell", _A_THING),
    _rule("get", r"back from (?:an?|the|my|our) \w", forms=frozenset({Form.PAST, Form.PERFECT})),
    _rule("get", r"(?:engaged|married|divorced|promoted|laid off|fired|accepted (?:in)?to|hired)\b", "event"),
    _rule("get", r"(?:an?|my|our|two|three|some|this|the) (?:[\w'-]+ ){0,3}?(?:job|dog|cat|puppy|kitten|car|bike|house|apartment|degree|license|promotion"
          r"|raise|scholarship|tattoo|haircut|piano|guitar|laptop|phone|camera|ticket|tickets|internship|offer|certificate|diploma|plant|plants|bed"
          r"|necklace|ring|console|dress|bouquet|book|books|tank|fish|pet|pets|visa|passport|grant|award|medal|trophy|ticket|concert tickets|shoes|jacket)\b",
          refuses=r"a (?:good|great|better) (?:feeling|idea)"),
    _rule("take", r"(?:an?|the|my|our|some|two|several|[a-z]+) (?:[\w'-]+ ){0,4}?(?:class|classes|course|courses|trip|vacation|test|exam|lesson|lessons|workshop"
          r"|workshops|photo|photos|picture|pictures|pics|pic|train|flight|ferry|bus|hike|walk|cruise|tour|sabbatical|job)\b",
          refuses=r"(?:a look|the job|pictures of you|a moment)"),
    _rule("take", r"(?:my|our|the) (?:[\w'-]+ ){0,2}(?:kids|family|son|daughter|dog|cat|mom|mum|dad|grandma|children|kid|wife|husband|car|parents|dogs|sister|brother|niece|nephew|fam|pup|puppy) (?:to|on|for|camping|hiking)\b"),
    _rule("take up", r"[a-z]"),
    _rule("win", _A_THING, refuses="(?:the (?:day|hearts)|a (?:lot|few))"),
    _rule("lose", r"(?:an?|my|the|our|\d+|some|two|three) \w", refuses=r"(?:my (?:mind|temper|cool|way|head|voice|balance|focus|passion|spark|confidence|motivation|train)"
          r"|the (?:ability|spark|will|battle)|an? (?:lot|bit)|some (?:confidence|motivation|sleep|of)|track|sight|our way)"),
    _rule("meet", rf"(?:an?|my|our|some|the|two|three) \w|{_CAPITAL}|with (?:an?|my|the|our) \w", refuses=r"(?:my (?:needs|goals?|expectations)|the (?:needs|deadline|requirements|goal)"
          r"|a (?:lot|few|bunch)|my match|some (?:amazing|awesome|great|really|incredible|inspiring))"),
    _rule("see", r"an? (?:[\w-]+ ){0,3}(?:concert|movie|film|show|play|musical|therapist|doctor|band|exhibit|exhibition|performance|game|match|counselor|meteor shower|sunset|whale|bear|deer)\b"),
    _rule("ride", r"(?:an?|my|the|our) \w|horses", refuses="the (?:wave|storm)"),
    _rule("drive", r"(?:to|through|from|across|down|up|along) (?:an?|the|my|our|[A-Z])", refuses="to the point"),
    _rule("climb", _A_THING, refuses="the (?:ladder|ranks)"),
    _rule("surf", r"[a-z]|$", refuses="the (?:web|internet|net)"),
    _rule("lead", r"(?:an?|the|our) \w", refuses="a (?:happy|healthy|full|good|better|more|balanced|double)|the way"),
    _rule("hold", r"(?:an?|our|some) \w", refuses="a (?:special|grudge|lot|place|certain|conversation)"),
    _rule("raise", r"(?:money|funds|awareness|\$?\d|an? \w|two|three|\w+ dollars)", refuses="a (?:question|point|good|toast|lot|hand|glass)"),
    _rule("enroll", r"in "),
    _rule("enter", r"(?:an?|the) (?:[\w-]+ ){0,4}(?:contest|competition|tournament|race|program|marathon|raffle|art show|show|workforce)\b"),
    _rule("compete", r"(?:in|at) "),
    _rule("participate", r"in (?:an?|the|our|my|[A-Z])", refuses="in the (?:conversation|discussion)"),
    _rule("retire", r"(?:from|as|in) \w|$"),
    _rule("explore", r"(?:an?|the|my|our|[A-Z])\w* ?\w", refuses="(?:my (?:feelings|identity|creativity|emotions|passions?|options|interests|own|gender)|the (?:idea|possib\\w+|world|options))"),
    _rule("spend", r"(?:an?|the|two|three|four|five|some|my|last|all|\$?\d+|most of|yesterday) (?:[\w'-]+ ){0,4}(?:day|days|weekend|week|weeks|month|months|year|years|night|afternoon|morning|evening"
          r"|summer|time|hours|holidays?|vacation|christmas|dollars) (?:with|at|in|on|hiking|camping|reading|playing|painting|working|volunteering|exploring|studying|writing)\b",
          refuses="some (?:time in my head)"),
    _rule("have", r"(?:an?|my|our|the) (?:[\w'-]+ ){0,4}?(?:baby|party|picnic|surgery|operation|accident|interview|miscarriage|wedding|honeymoon|setback|barbecue|bbq|cookout|dinner|lunch|brunch|breakfast"
          r"|concert|recital|competition|exhibition|show|performance|appointment|check-up|checkup|exam|injury|heart attack|reunion|sleepover|breakup|fundraiser|breakthrough|milestone|trip|vacation|retreat|meeting|date night|workshop|campfire|bonfire|family dinner)\b",
          "event", frozenset({Form.PAST, Form.PERFECT, Form.PROGRESSIVE, Form.FUTURE})),
    _rule("give", r"(?:an?|my|the|some|several|two|three|a few) (?:[\w-]+ ){0,3}(?:talk|speech|presentation|lecture|concert|performance|workshop|interview|tour)s?\b",
          refuses="(?:a speech to you)"),
    _rule("find", r"(?:an?|my|the|some) (?:[\w'-]+ ){0,3}(?:job|house|apartment|flat|dog|cat|puppy|kitten|recipe|book|park|church|gym|studio|group|shelter|agency|therapist|roommate|trail|concert|cafe|café|restaurant|beach|spot|store|shop)\b",
          refuses="the (?:book|park) (?:so|really)"),
    _rule("quit", r"(?:my|the|our|smoking|drinking|a|an) ?\w"),
    _rule("leave", r"(?:my|our|the) (?:[\w-]+ ){0,3}(?:job|company|house|home|country|church|team|band|apartment|husband|wife|city|school)\b"),
    _rule("break", r"(?:my|an?) (?:[\w-]+ )?(?:leg|arm|ankle|wrist|foot|toe|finger|nose|rib|collarbone|hip|hand|elbow|shoulder|phone|laptop|glasses|record)\b"),
    _rule("use", r"(?:an?|the|my|[a-z-]+) \w", "uses", frozenset({Form.PRESENT, Form.PROGRESSIVE, Form.LASTING}), refuses="(?:to|my (?:voice|platform|time|power|talents?|skills)|the (?:word|time|opportunity)|a lot)"),
    _rule("struggle", r"with (?:an?|my|[a-z]+)", forms=frozenset({Form.PAST, Form.LASTING, Form.PERFECT})),
    _rule("knit", _MADE), _rule("crochet", _MADE), _rule("sew", _MADE), _rule("sculpt", _MADE), _rule("carve", _MADE), _rule("draw", _MADE, refuses="the line|a line"),
    _rule("renovate", _A_THING), _rule("restore", _A_THING, refuses="my (?:faith|energy)|the balance"), _rule("decorate", _A_THING), _rule("repair", _A_THING, refuses="my relation"),
    _rule("grow", r"(?:an?|some|my own|vegetables|tomatoes|flowers|herbs|[a-z]+s\b)", refuses="(?:a lot|a bit|some|as|my own (?:person|way)|[a-z]+(?:ness|ss)\\b)"),
    _rule("grow", r"up (?P<prep>in) (?:an?|the|[A-Z])", "childhood", frozenset({Form.PAST}), makes=("place", "")),
    _rule("grow", r"up (?:with|on) (?:an?|the|two|three|my)", "childhood", frozenset({Form.PAST})),
    _rule("catch", r"an? (?:[\w-]+ ){0,2}(?:fish|cold|flu|bus|train|flight|trout|bass|wave)\b"),
    _rule("sign", r"up for (?:an?|the|my|some|two|\d+|[a-z]+ (?:class|classes|lessons))", refuses="up for (?:the (?:long|same))"),
    _rule("stop", r"(?:[a-z]+ing) \w|(?:smoking|drinking|working|dancing|running)\b", refuses="(?:being|thinking|worrying|feeling|doing|having|caring|believing|seeing|making|going|getting|comparing|trying|letting)"),
    _rule("switch", r"(?:from|to|jobs|careers|majors)\b"),
    _rule("become", r"an? ", "becomes", refuses="a (?:bit|lot|better|part|way|more|stronger|big|huge|great|source|reality|good|habit|tradition|kind)"),
    _rule("interview", r"(?:for|at|with) (?:an?|the|[A-Z])"),
    _rule("present", r"(?:an?|my|at|the) "),
    _rule("support", r"(?:an?|the|my|our) (?:[\w-]+ ){0,3}(?:charity|shelter|organization|campaign|cause|foundation|fundraiser|school|team)\b"),
    _rule("help", r"(?:out )?(?:at|with) (?:an?|the|my|our)|(?:my|an?|the) (?:[\w'-]+ ){0,2}(?:neighbou?r|friend|kid|student|brother|sister|mom|mum|dad|cousin|family|colleague|teammate|community)\b",
          refuses="with the (?:same|process)"),
    _rule("marry", r"(?:my|an?|[A-Z])\w* ?\w*"),
    _rule("bring", r"(?:my|our|some|a) (?:[\w'-]+ ){0,3}(?:kids|dog|dogs|cat|family|son|daughter|mom|friend) (?:to|on|along)", refuses="my mind"),
    _rule("exhibit", _MADE), _rule("produce", _MADE),
    _rule("research", r"(?:an?|the|my|[a-z]+) \w", forms=frozenset({Form.PAST, Form.PROGRESSIVE, Form.LASTING})),
    _rule("discover", r"an? \w", refuses="a (?:lot|way|new (?:way|love|sense|passion))"),
    _rule("tour", _A_THING),
    _rule("pursue", r"(?:an?|my|our|the|[a-z]+) \w?", refuses="my (?:dreams?|passions?|goals)|the (?:things|dream)|what"),
    _rule("sing", r"(?:in|at|with|an?) (?:an?|the|my|choir|[a-z])"),
    _rule("dance", r"(?:in|at|with|since) "),
    _rule("swim", r"(?:in|at|with) "),
)  # fmt: skip

_YOGA = r"yoga|pilates|karate|judo|taekwondo|kickboxing|ballet|aerobics|crossfit|gymnastics|meditation|pottery|aerial yoga|volunteer work"
MORE = (
    _rule("do", rf"(?:{_YOGA})\b|(?:an?|my|some) (?:[\w-]+ ){{0,3}}?(?:retreat|class|course|event|workshop|marathon|race|triathlon|charity|fundraiser|painting|presentation|internship|project"
          r"|performance|experiment|survey|interview|yoga|meditation|volunteering|show|degree|PhD|run|walk|hike|puzzle|drawing|sculpture)\b", forms=HABIT),
    _rule("look", r"into (?:an?|the|my|some|[a-z]+) \w", forms=frozenset({Form.PROGRESSIVE, Form.LASTING, Form.INTENT})),
    _rule("set", r"up (?:an?|the|my|our) \w", refuses="up (?:a time)"),
    _rule("check", rf"out (?:{_A_THING})", "event", frozenset({Form.PAST, Form.PERFECT})),
    _rule("have", r"(?:an?|my|so much) (?:[\w-]+ )?(?:great|good|awesome|amazing|wonderful|fun|fantastic|lovely|blast|nice|fun|tough|hard|rough|bad|terrible)?(?: ?(?:time|experience|day|weekend|evening|night|blast|fun)) (?:at|in|on|visiting|exploring|hiking|camping) (?:an?|the|my|our|[A-Z])",
          forms=frozenset({Form.PAST})),
    _rule("have", r"(?:an?|some) (?:[\w-]+ ){0,3}(?:event|class|meetup|show|exam|deadline|trip|party|wedding|appointment|conference|tournament|competition|gig|concert|meeting)s?\b.{0,40}", "plan", frozenset({Form.FUTURE, Form.PROGRESSIVE})),
    *(_rule(verb, rf"(?:{_A_THING})", forms=frozenset({Form.PAST, Form.PERFECT})) for verb in (
        "contact invite upload install fix clean schedule book reserve cancel borrow hire submit edit film assemble "
        "replace upgrade harvest trim deliver injure sprain fracture share".split())),
    *(_rule(verb, r"(?:with|to|for|from|in|at|on|out|up) (?:an?|the|my|our|[A-Z]) ?\w", forms=frozenset({Form.PAST, Form.PERFECT}),
            refuses=r"(?:to|for|in|on) (?:the (?:point|conclusion|best|way)|my (?:head|mind))|.{0,20}my (?:journey|struggles)") for verb in (
        "reconnect bond collaborate register subscribe campaign protest march vote lecture tutor audition rehearse arrive settle relocate "
        "immigrate emigrate qualify dive backpack stroll cycle paddle snorkel chat talk serve contribute speak".split())),
    _rule("keep", r"[a-z]+ing \w", "goal", frozenset({Form.INTENT}), refuses="(?:going|pushing|trying|improving)\\b"),
    _rule("help", r"(?:people|kids|others who|children|my|our|students|animals|the|an?|more|folks|those) ?\w|make (?:an?|the|my|our) \w", "goal", frozenset({Form.INTENT})),
    *(_rule(verb, r"[a-z]{3,}", "habit", frozenset({Form.PRESENT, Form.USED_TO}), refuses="(?:for|up|out|away|the (?:way|line)|on and on|myself|along|down|over)\\b") for verb in (
        "bake cook paint hike swim ride draw sing dance knit sew meditate photograph grow brew sail ski surf watch jog cycle write read".split())),
    *(_rule(verb, r"(?:about|on) [a-z]", forms=frozenset({Form.LASTING, Form.PROGRESSIVE})) for verb in ("blog", "write")),
    *(_rule(verb, r"(?!you\b|ya\b|it\b|my best|me\b|more$|a lot$)[\w$]", "goal", frozenset({Form.INTENT})) for verb in (
        "make create build start work teach learn find improve inspire spread raise support become be get give provide "
        "contribute volunteer advocate continue encourage motivate promote change turn open study serve travel visit try "
        "explore write paint go buy have join run organize host move adopt develop design focus pursue expand grow add".split())),
)  # fmt: skip

ONGOING = (
    _rule("learn", r"(?:an?|the|to|how to|about|some|[a-z]+|[A-Z]\w+)\b", "learning", refuses=r"(?:so much|a lot|more|that|to (?:be|love|let|accept|trust|appreciate|take|say|find|just|embrace)"
          r"|how (?:important|much)|about (?:you|my|the importance)|the (?:importance|value|hard|ropes)|as|from|not|new|and|what|something|things|some|a (?:few|bunch|ton|thing|valuable))"),
    _rule("work", r"on (?:an?|my|our|the) \w", "project", frozenset({Form.PROGRESSIVE, Form.LASTING}), refuses=r"on (?:my(?:self)?|our) ?(?:self|mental|confidence|skills|relationship|communication)|on (?:the|a) (?:same)"),
    _rule("train", r"(?:for|my|to|at|with|our) ?\w", refuses="my mind|to be"),
    _rule("read", r"(?:an?|the|my|about|some|[a-z]+) \w|[A-Z]\w+", "reading", frozenset({Form.PROGRESSIVE, Form.PERFECT, Form.LASTING, Form.INTENT, Form.FUTURE}), refuses="the (?:room|comments)|a lot|your|about your"),
    _rule("write", r"(?:an?|my|about|songs|poetry)\b", "event", frozenset({Form.PROGRESSIVE, Form.LASTING})),
    _rule("study", r"(?:for|to) (?:an?|my|the|be|become)", "event"),
    _rule("watch", r"(?:an?|the|[A-Z]\w+) ?\w", "event", frozenset({Form.PROGRESSIVE, Form.LASTING})),
)  # fmt: skip

RULES: dict[str, list[Rule]] = {}
for _each in (*STATES, *HABITS, *EVENTS, *ONGOING, *MORE):
    RULES.setdefault(_each.verb, []).append(_each)

PROFESSION = re.compile(
    rf"(?P<all>an? (?:(?!great|good|bad|terrible|better|natural|true|real)[\w'-]+ ){{0,3}}?(?:{_JOBS}))\b"
    rf"(?: (?:for|at) (?P<org>.+))?"
)
