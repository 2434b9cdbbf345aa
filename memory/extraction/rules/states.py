"""Rules for states and habits: homes, jobs, languages, belongings, and activities that somebody repeats."""

from memory.extraction.rules.addresses import NUMBERED
from memory.extraction.rules.grammar import A_THING, HABIT, ORGANIZATION, PLACE, rule, state
from memory.extraction.rules.verbs import Form
from memory.extraction.rules.words import LANGUAGES, POSSESSIONS

_NOUNS = "|".join(sorted(POSSESSIONS, key=len, reverse=True))
_INSTRUMENTS = (
    "piano|guitar|violin|cello|drums|flute|clarinet|saxophone|sax|trumpet|ukulele|bass|harp|keyboard|organ|accordion"
    "|banjo|mandolin|harmonica|viola|oboe|trombone|recorder|keyboards"
)
_GAMES = (
    "chess|tennis|soccer|football|basketball|baseball|volleyball|hockey|golf|rugby|cricket|badminton|softball|squash"
    "|video games|board games|cards|poker|pool|table tennis|ping pong|handball|water polo|lacrosse|bridge|darts"
)

STATES = (
    state("live", r"(?P<prep>in) ", "residence", makes=PLACE, refuses=(r"in (?:the (?:moment|present|past|now)"
         r"|peace|fear|harmony|a (?:world|society|dream|bubble|way)|my head|pain|denial|constant|hope)\b")),
    state("live", rf"at{NUMBERED}", "residence"),
    state("live", r"alone|with (?:(?:my|our|his|her|their|an?|the|two|three) \w|(?:me|us)$)", "home"),
    state("live", r"(?:near|on|at|by) ", "home", refuses=r"(?:on|with) (?:the edge|it|a|an|my|what)"),
    state("work", r"(?P<prep>for|at) ", "employer", makes=ORGANIZATION,
         refuses=(r"(?:for|at) (?:me|us|it|the (?:moment|same|best)|home|night|my(?:self)?|a while|free"
         r"|hours|\d)\b")),
    state("work", r"as an? ", "profession", refuses=r"as a (?:team|way|group|result|distraction)"),
    state("work", r"in (?:a|an|the|my)? ?[a-z]", "field",
         refuses=(r"in (?:the (?:morning|evening|end|same|past|right)|a (?:way|team)|progress|silence"
         r"|general|this)")),
    state("work", r"(?:night shifts|nights|evenings|mornings|weekends|shifts|part[- ]time|full[- ]time|remotely"
         r"|from home)\b", "working time", refuses=r"\w+ (?:off|away|on (?:it|this|that))\b"),
    rule("speak", "|".join(sorted(LANGUAGES)), "language", HABIT - {Form.PAST}),
    state("study", r"(?P<prep>at) (?:the )?[A-Z]|[a-z]", "studies", makes=("organization", ""),
         refuses=(r"(?:hard|all|a lot|late|together|with|for hours|every|real|really|so|very|the (?:map"
         r"|menu))\b")),
    state("play", rf"(?:the |some |acoustic |electric |classical )*(?:{_INSTRUMENTS})\b", "plays"),
    state("play", rf"(?:some |a lot of )?(?:{_GAMES})\b", "plays"),
    rule("own", r"(?:an?|two|three|\d+|several|my own) \w", "owns", HABIT - {Form.PROGRESSIVE, Form.LASTING}),
    rule("have", r"(?:an?|one|two|three|four|five|six|seven|\d+|some"
         rf"|several) (?:[\w'-]+ ){{0,3}}?(?:{_NOUNS})\b", "has",
         frozenset({Form.PRESENT, Form.NEGATED, Form.USED_TO, Form.NO_LONGER, Form.INTENT}),
         refuses=r".{0,40}\b(?:in common|on my mind|day|time|night)\b"),
    rule("have", r"an? (?:[\w-]+ )?(?:passion|love|soft spot|interest|talent|fear) (?:for|in|of) ", "passion",
         frozenset({Form.PRESENT, Form.PAST, Form.PERFECT})),
    rule("wear", r"(?:glasses|contact lenses|contacts|an? hearing aid|hearing aids|braces)\b", "wears",
         frozenset({Form.PRESENT, Form.USED_TO, Form.NO_LONGER})),
    rule("take", r"the (?:bus|train|tram|metro|subway|tube|ferry) (?:to|into|home)\b", "commute",
         frozenset({Form.PRESENT, Form.USED_TO, Form.NO_LONGER}), refuses=r"the \w+ to (?:the next|a whole)"),
    rule("drive", r"an? [\w-]+", "drives", frozenset({Form.PRESENT, Form.USED_TO}), refuses="a (?:lot|bit|hard)"),
)  # fmt: skip

HABITS = (
    rule("collect", r"[a-z]{3,}", "hobby", HABIT, refuses="data|my thoughts|myself|dust"),
    rule("teach", r"(?:an?|the|my|our|[a-z]+(?: [a-z]+)? (?:class|classes|to|at|in)|[A-Z]|math|science"
         r"|kids|children)\b", "event", HABIT, refuses="(?:me|us|the importance|my(?:self)? (?:a|to|that))"),
    rule("coach", r"(?:an?|the|my|our|kids|youth|girls|boys) ?\w", "event", HABIT),
    rule("run", rf"(?:{A_THING}|for (?:office|mayor)|in (?:a|the))", "event", HABIT,
         refuses=(r"(?:some|a (?:lot|bit|risk|few|tight|fever)|the (?:risk|show|other)|in the (?:same|family))")),
    rule("volunteer", r"(?:at|in|for|with|to|as) (?:an?|the|my|our|[a-z])", "event", HABIT),
    rule("attend", A_THING, "event", HABIT),
    rule("practice", r"[a-z]{3,}", "event", HABIT, refuses="self-|what|gratitude|more|every"),
    rule("practise", r"[a-z]{3,}", "event", HABIT, refuses="self-|what|more|every"),
    rule("mentor", A_THING, "event", HABIT),
    rule("foster", A_THING, "event", HABIT, refuses="a (?:sense|love|culture|connection)"),
    rule("manage", r"(?:an?|the|my|our) \w", "event", HABIT,
         refuses="the (?:stress|pain|situation)|my (?:time|stress)"),
    rule("write", rf"(?:{A_THING}|poems|poetry|songs|music|fiction|novels|articles|stories|about my)", "event",
         HABIT, refuses="(?:the (?:rest|end|way)|my (?:thoughts|feelings)|a lot)"),
    rule("garden", "$|in ", "event", HABIT),
    rule("go", r"(?:to (?:the gym|church|college|school|university|therapy)|(?:hiking|camping|running"
         r"|swimming|jogging|biking|cycling|climbing|surfing|skiing|fishing|dancing|kayaking|sailing|snowboarding"
         r"|birdwatching)\b)", "event", HABIT),
)  # fmt: skip

ONGOING = (
    rule("learn", r"(?:an?|the|to|how to|about|some|[a-z]+|[A-Z]\w+)\b", "learning",
         refuses=(r"(?:so much|a lot|more|that|to (?:be|love|let|accept|trust|appreciate|take|say|find"
         r"|just|embrace)|how (?:important|much)|about (?:you|my|the importance)|the (?:importance|value"
         r"|hard|ropes)|as|from|not|new|and|what|something|things|some|a (?:few|bunch|ton|thing|valuable))")),
    rule("work", r"on (?:an?|my|our|the) \w", "project", frozenset({Form.PROGRESSIVE, Form.LASTING}),
         refuses=(r"on (?:my(?:self)?|our) ?(?:self|mental|confidence|skills|relationship"
         r"|communication)|on (?:the|a) (?:same)")),
    rule("train", r"(?:for|my|to|at|with|our) ?\w", refuses="my mind|to be"),
    rule("read", r"(?:an?|the|my|about|some|[a-z]+) \w|[A-Z]\w+", "reading",
         frozenset({Form.PROGRESSIVE, Form.PERFECT, Form.LASTING, Form.INTENT, Form.FUTURE}),
         refuses="the (?:room|comments)|a lot|your|about your"),
    rule("write", r"(?:an?|my|about|songs|poetry)\b", "event", frozenset({Form.PROGRESSIVE, Form.LASTING})),
    rule("study", r"(?:for|to) (?:an?|my|the|be|become)", "event"),
    rule("watch", r"(?:an?|the|[A-Z]\w+) ?\w", "event", frozenset({Form.PROGRESSIVE, Form.LASTING})),
)  # fmt: skip
