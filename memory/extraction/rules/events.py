"""Rules for events, activities and plans: journeys, purchases, new and lost jobs, things that somebody made."""

from memory.extraction.numbers import NUMBER
from memory.extraction.rules.grammar import A_THING, CAPITAL, DONE, HABIT, HAPPENED, MADE, PLACE, rule, verbs
from memory.extraction.rules.verbs import Form

_EXERCISE = "yoga|pilates|karate|judo|ballet|aerobics|gymnastics|archery|fencing|boxing|athletics|wrestling|calligraphy"

EVENTS = (
    *(rule(verb, A_THING) for verb in verbs("rescue host purchase order rent sell renovate decorate tour")),
    *(rule(verb, MADE) for verb in verbs("launch knit crochet sew sculpt carve exhibit produce")),
    *(rule(verb, MADE, "created") for verb in verbs("design invent compose publish")),
    *(
        rule(verb, A_THING, refuses="(?:my|the) (?:thoughts|time|day|schedule)")
        for verb in verbs("organize organise")
    ),
    *(
        rule(verb, r"(?:from .{2,40} )?(?:back )?(?P<prep>to) (?:an?|the|my|our|[A-Z]|\d+\w? [A-Z])", "residence",
             makes=PLACE,
             refuses=r"(?:.{0,40} )?to (?:the (?:next|beat|music|top|rhythm|front|side|left|right)|tears)")
        for verb in verbs("move relocate")
    ),
    rule("move", r"(?:in with|into|out of|away from) (?:an?|the|my|our)", "event",
         refuses=r"out of the way|into the next"),
    rule("visit", rf"{A_THING}|[a-z]+ (?:museums|parks|galleries|castles|churches)", forms=DONE | {Form.PRESENT}),
    rule("travel", r"(?P<prep>to|around|through|across) (?:an?|the|my|our|[A-Z])", makes=("place", ""),
         refuses="through time"),
    rule("fly", r"(?P<prep>to|back to) (?:an?|the|my|our|[A-Z])", makes=("place", "")),
    rule("go", r"(?:back )?(?:(?P<prep>to) (?!the (?:next|same|bottom|top|heart|point|gym|effort"
         r"|trouble)\b)(?:an?|the|my|our|[A-Z]|college|therapy)"
         r"|on (?:an?|my|our) (?:[\w-]+ ){0,3}(?:trip|hike|walk|vacation|cruise|tour|date"
         r"|road trip|ride|run|safari|honeymoon|holiday|camping|adventure|hunt)"
         r"|(?:camping|hiking|swimming|shopping|fishing|surfing|skiing|running|biking|kayaking"
         r"|dancing|bowling|sailing|climbing|snorkeling|diving|jogging|cycling|sightseeing|snowboarding|canoeing"
         r"|stargazing|skating)\b)", refuses=r"to (?:an? (?:lot|place|point|whole)|my (?:head|happy))"),
    rule("go", r"to (?:an?|the|my|our) ", forms=frozenset({Form.PERFECT, Form.PAST})),
    rule("join", A_THING, refuses="the (?:fun|conversation|club!)"),
    rule("start", r"(?:an?|my|our|the|[a-z]+ing) ?\w",
         refuses=(r"(?:feeling|being|getting|going|to (?:feel|get|see)|the (?:day"
         r"|week|year|process|conversation)|my (?:day|week|morning)|thinking|realizing|making"
         r"|seeing|something|coming|having"
         r"|noticing|a (?:conversation|new chapter|chat|fire)|looking|putting|becoming"
         r"|an? (?:amazing|awesome) )")),
    rule("finish", rf"(?:{A_THING}|[a-z]+ing \w)", refuses="(?:the (?:day|week)|up)"),
    rule("complete", A_THING, refuses="the (?:picture|look)"),
    rule("adopt", r"(?:an?|two|three|my|our|\d+|[A-Z]|the) ?\w",
         refuses="a (?:new|positive|mindset|healthier|more|different)"),
    rule("paint", rf"{MADE}|[a-z]+ (?:with|for|on)", refuses="a (?:picture of|clear)"),
    rule("bake", rf"{MADE}|[a-z]+s\b"),
    rule("cook", r"(?:an?|some|my|the|[a-z]+) \w|dinner|lunch|breakfast", refuses="for|up|with"),
    rule("watch", A_THING, refuses="the (?:way|kids|clouds|world)|my (?:kids|step|weight|back|little)"),
    rule("try", r"(?:out )?(?:an?|some|the|my) \w|[a-z]+ing\b|[A-Z]\w",
         refuses=(r"(?:my (?:best|hardest|luck)|being|doing|getting"
         r"|making|finding|the best|focusing|keeping|putting|a (?:lot|bit|few)|some new"
         r"|some different|out (?:new|some))")),
    rule("hike", r"(?:an?|the|up|to|in|[A-Z]) ?\w"),
    rule("camp", r"(?:at|in|near|by) "),
    rule("apply", r"(?:to|for) (?:an?|the|my|some|several|[A-Z]|\w+ (?:jobs|positions|programs|schools|grants))",
         refuses="to (?:my|the) (?:life|situation)"),
    rule("graduate", r"(?:from|with|in) \w|$", makes=("", "")),
    rule("pass", r"(?:an?|the|my) (?:[\w'-]+ ){0,3}(?:exam|exams|test|tests|interview|inspection"
         r"|interviews|course|class|bar)\b"),
    rule("pass", r"away", forms=frozenset({Form.PAST})),
    rule("receive", A_THING, refuses=r"(?:so|the (?:support|love)|a (?:lot|message|warm))"),
    rule("donate", r"(?:an?|the|my|our|some|[a-z]+) \w"),
    rule("plant", r"(?:an?|some|my|the|[a-z]+s|two|three|\d+)\b", refuses="(?:a seed of|the seeds? of)"),
    rule("celebrate", r"(?:my|our|the|[A-Z])\w* ?\w"),
    rule("perform", r"(?:at|in|with|an?|my|the) "),
    rule("open", MADE, refuses=(r"(?:an?|my|the) (?:door|window|eyes?|heart|mind|mail|world|new (?:door|world"
         r"|chapter)|letter|way)s?\b")),
    rule("create", r"(?:an?|my|our|the) \w", "created",
         refuses=(r"(?:an?|my|our|the) (?:[\w-]+ ){0,2}(?:space|environment|sense|place"
         r"|atmosphere|impact|world|memor\w+|balance|difference|change|bond|opportunit\w+"
         r"|connection|moments?|future|home|life|feeling|vibe|experiences?|mood|community|family)\b")),
    rule("record", MADE, "created", refuses="the (?:moment|whole)"),
    rule("found", rf"(?:(?P<prep>){CAPITAL}|an? \w)", "created", HAPPENED, makes=("organization", "CREATED_BY")),
    rule("turn", rf"{NUMBER}$", forms=frozenset({Form.PAST})),
    rule("develop", r"an? (?:[\w-]+ )?(?:app|game|website|program|tool|library|course|curriculum|prototype"
         r"|product|plan|recipe)\b", "created"),
    rule("build", r"(?:an?|my|our|some|the) \w", "created",
         refuses=(r"(?:an?|my|our|the|some) (?:[\w-]+ ){0,2}(?:relationships?|trust|confidence"
         r"|life|connection|community|bond|network|family|future|strength|portfolio|career"
         r"|brand|foundation|environment|muscle)\b")),
    rule("make", r"(?:an?|some|my own|our own) (?!(?:[\w-]+ )?(?:difference|decision|mistake"
         r"|branch|commit|request|point|list"
         r"|impact|change|lot|living|effort|choice|plan|deal"
         r"|habit|wish|move|friend|friends|memories|mess|progress|connections?|comeback|bit|name"
         r"|good|note|contribution|family|life|new friends|place"
         r"|career|space|positive|world|changes|call|promise|home|fuss|donation|commitment"
         r"|statement|adjustments|bond|trip|fresh|difference)\b)\w"),
    rule("buy", A_THING, refuses="(?:some time|the idea|a (?:lot|bit|few things))"),
    rule("get", r"back from (?:an?|the|my|our) \w", forms=frozenset({Form.PAST, Form.PERFECT})),
    rule("get", r"(?:engaged|married|divorced|promoted|laid off|fired|sacked|made redundant|let go(?! of)"
         r"|accepted (?:in)?to|hired)\b", "event"),
    rule("get", r"(?:an?|my|our|two|three|some|this|the) (?:[\w'-]+ ){0,3}?(?:job|dog|cat|puppy|kitten"
         r"|car|bike|house|apartment|degree|license|promotion"
         r"|raise|scholarship|tattoo|haircut|piano|guitar|laptop|phone|camera|ticket|tickets"
         r"|internship|offer|certificate|diploma|plant|plants|bed"
         r"|ring|book|books|fish|pet|pets|visa|passport|grant"
         r"|award|medal|trophy|ticket|shoes|jacket)\b",
         refuses=r"a (?:good|great|better) (?:feeling|idea)"),
    rule("take", r"(?:an?|the|my|our|some|two|several|[a-z]+) (?:[\w'-]+ ){0,4}?(?:class|classes|course"
         r"|courses|trip|vacation|test|exam|lesson|lessons|workshop"
         r"|workshops|photo|photos|picture|pictures|pics|pic|train|flight|ferry|bus|hike|walk"
         r"|cruise|tour|sabbatical|job)\b", refuses=r"(?:a look|the job|pictures of you|a moment)"),
    rule("take", r"(?:my|our|the) (?:[\w'-]+ ){0,2}(?:kids|family|son|daughter|dog|cat|mom|mum|dad|grandma"
         r"|children|kid|wife|husband|car|parents|dogs|sister|brother|niece|nephew|pup"
         r"|puppy) (?:to|on|for|camping|hiking)\b"),
    rule("take up", r"[a-z]"),
    rule("win", A_THING, refuses="(?:the (?:day|hearts)|a (?:lot|few))"),
    rule("lose", r"(?:his|her) job\b"),
    rule("lose", r"(?:an?|my|the|our|\d+|some|two|three) \w",
         refuses=(r"(?:my (?:mind|temper|cool|way|head|voice|balance|focus|passion|spark|confidence"
         r"|motivation|train)|the (?:ability|spark|will|battle)|an? (?:lot|bit)|some (?:confidence|motivation"
         r"|sleep|of)|track|sight|our way)")),
    rule("meet", rf"(?:an?|my|our|some|the|two|three) \w|{CAPITAL}|with (?:an?|my|the|our) \w",
         refuses=(r"(?:my (?:needs|goals?|expectations)|the (?:needs|deadline|requirements|goal)"
         r"|a (?:lot|few|bunch)|my match|some (?:amazing|awesome|great|really|incredible|inspiring))")),
    rule("see", r"an? (?:[\w-]+ ){0,3}(?:concert|movie|film|show|play|musical|therapist|doctor|band"
         r"|exhibit|exhibition|performance|game|match|sunset)\b"),
    rule("ride", r"(?:an?|my|the|our) \w|horses", refuses="the (?:wave|storm)"),
    rule("drive", r"(?:to|through|from|across|down|up|along) (?:an?|the|my|our|[A-Z])", refuses="to the point"),
    rule("climb", A_THING, refuses="the (?:ladder|ranks)"),
    rule("surf", r"[a-z]|$", refuses="the (?:web|internet|net)"),
    rule("lead", r"(?:an?|the|our) \w", refuses="a (?:happy|healthy|full|good|better|more|balanced|double)|the way"),
    rule("hold", r"(?:an?|our|some) \w", refuses="a (?:special|grudge|lot|place|certain|conversation)"),
    rule("raise", r"(?:money|funds|\$?\d|an? \w|two|three|\w+ dollars)",
         refuses="a (?:question|point|good|toast|lot|hand|glass)"),
    rule("enroll", r"in "),
    rule("enter", r"(?:an?|the) (?:[\w-]+ ){0,4}(?:contest|competition|tournament|race|program|marathon"
         r"|raffle|show|workforce)\b"),
    rule("compete", r"(?:in|at) "),
    rule("participate", r"in (?:an?|the|our|my|[A-Z])", refuses="in the (?:conversation|discussion)"),
    rule("retire", r"(?:from|as|in) \w|$"),
    rule("explore", r"(?:an?|the|my|our|[A-Z])\w* ?\w",
         refuses=("(?:my (?:feelings|identity|creativity|emotions|passions?|options|interests|own"
         "|gender)|the (?:idea|possib\\w+|world|options))")),
    rule("spend", r"(?:an?|the|two|three|four|five|some|my|last|all|\$?\d+|most of"
         r"|yesterday) (?:[\w'-]+ ){0,4}(?:day|days|weekend|week|weeks|month|months|year|years"
         r"|night|afternoon|morning|evening"
         r"|summer|time|hours|holidays?|vacation|christmas|dollars) (?:with|at|in|on|hiking"
         r"|camping|reading|playing|painting|working|exploring|studying|writing)\b",
         refuses="some (?:time in my head)"),
    rule("have", r"(?:an?|my|our|the) (?:[\w'-]+ ){0,4}?(?:baby|party|picnic|surgery|operation|accident"
         r"|interview|wedding|honeymoon|barbecue|bbq|cookout|dinner|lunch|brunch|breakfast"
         r"|concert|recital|competition|exhibition|show|performance|appointment|check-up|checkup"
         r"|exam|injury|heart attack|reunion|breakup|fundraiser"
         r"|trip|vacation|meeting|workshop)\b", "event",
         frozenset({Form.PAST, Form.PERFECT, Form.PROGRESSIVE, Form.FUTURE})),
    rule("give", r"(?:an?|my|the|some|several|two|three|a few) (?:[\w-]+ ){0,3}(?:talk|speech|presentation"
         r"|lecture|concert|performance|workshop|interview|tour)s?\b", refuses="(?:a speech to you)"),
    rule("find", r"(?:an?|my|the|some) (?:[\w'-]+ ){0,3}(?:job|house|apartment|flat|dog|cat|puppy|kitten"
         r"|recipe|book|park|church|gym|studio|group|therapist|roommate|trail"
         r"|concert|cafe|café|restaurant|beach|store|shop)\b", refuses="the (?:book|park) (?:so|really)"),
    rule("quit", rf"(?:my|the|our|a|an) \w|(?:smoking|drinking|sugar|coffee|alcohol)\b|{CAPITAL}"),
    rule("give", r"up (?:smoking|drinking|sugar|coffee|alcohol|caffeine|meat|dairy|gluten|cigarettes"
         r"|(?:my|our|the) \w)",
         refuses=r"up (?:my|our|the) (?:seat|hope|fight|search|ghost|chance)"),
    rule("leave", rf"{CAPITAL}\S+(?: [A-Z]\S+)*$"),
    rule("leave", r"(?:my|our|the) (?:[\w-]+ ){0,3}(?:job|company|house|home|country|church|team|band"
         r"|apartment|husband|wife|city|school)\b"),
    rule("break", r"(?:my|an?) (?:[\w-]+ )?(?:leg|arm|ankle|wrist|foot|toe|finger|nose|rib|collarbone|hip"
         r"|hand|elbow|shoulder|phone|laptop|glasses|record)\b"),
    rule("use", r"(?:an?|the|my|[a-z-]+) \w", "uses", frozenset({Form.PRESENT, Form.PROGRESSIVE, Form.LASTING}),
         refuses=("(?:to|my (?:voice|platform|time|power|talents?|skills)|the (?:word|time|opportunity)|a lot)")),
    rule("struggle", r"with (?:an?|my|[a-z]+)", forms=frozenset({Form.PAST, Form.LASTING, Form.PERFECT})),
    rule("draw", MADE, refuses="the line|a line"),
    rule("restore", A_THING, refuses="my (?:faith|energy)|the balance"),
    rule("repair", A_THING, refuses="my relation"),
    rule("grow", r"(?:an?|some|my own|vegetables|tomatoes|flowers|herbs|[a-z]+s\b)",
         refuses="(?:a lot|a bit|some|as|my own (?:person|way)|[a-z]+(?:ness|ss)\\b)"),
    rule("grow", r"up (?P<prep>in) (?:an?|the|[A-Z])", "childhood", frozenset({Form.PAST}), makes=("place", "")),
    rule("grow", r"up (?:with|on) (?:an?|the|two|three|my)", "childhood", frozenset({Form.PAST})),
    rule("catch", r"an? (?:[\w-]+ ){0,2}(?:fish|cold|flu|bus|train|flight|wave)\b"),
    rule("sign", r"up for (?:an?|the|my|some|two|\d+|[a-z]+ (?:class|classes|lessons))",
         refuses="up for (?:the (?:long|same))"),
    rule("stop", r"(?:[a-z]+ing) \w|(?:smoking|drinking|working|dancing|running)\b",
         refuses=("(?:being|thinking|worrying|feeling|doing|having|caring|believing|seeing|making"
         "|going|getting|comparing|trying|letting)")),
    rule("switch", r"(?:from|to|jobs|careers|majors)\b"),
    rule("become", r"an? ", "becomes",
         refuses=("a (?:bit|lot|better|part|way|more|stronger|big|huge|great|source|reality|good|habit"
         "|tradition|kind)")),
    rule("interview", r"(?:for|at|with) (?:an?|the|[A-Z])"),
    rule("present", r"(?:an?|my|at|the) "),
    rule("support", r"(?:an?|the|my|our) (?:[\w-]+ ){0,3}(?:charity|organization|campaign|cause"
         r"|foundation|fundraiser|school|team)\b"),
    rule("help", r"(?:out )?(?:at|with) (?:an?|the|my|our)|(?:my|an?|the) (?:[\w'-]+ ){0,2}(?:neighbou?r"
         r"|friend|kid|student|brother|sister|mom|mum|dad|cousin|family|colleague|teammate|community)\b",
         refuses="with the (?:same|process)"),
    rule("marry", r"(?:my|an?|[A-Z])\w* ?\w*"),
    rule("bring", r"(?:my|our|some|a) (?:[\w'-]+ ){0,3}(?:kids|dog|dogs|cat|family|son|daughter|mom"
         r"|friend) (?:to|on|along)", refuses="my mind"),
    rule("research", r"(?:an?|the|my|[a-z]+) \w", forms=frozenset({Form.PAST, Form.PROGRESSIVE, Form.LASTING})),
    rule("discover", r"an? \w", refuses="a (?:lot|way|new (?:way|love|sense|passion))"),
    rule("pursue", r"(?:an?|my|our|the|[a-z]+) \w?",
         refuses="my (?:dreams?|passions?|goals)|the (?:things|dream)|what"),
    rule("sing", r"(?:in|at|with|an?) (?:an?|the|my|choir|[a-z])"),
    rule("dance", r"(?:in|at|with|since) "),
    rule("swim", r"(?:in|at|with) "),
)  # fmt: skip

# idioms that report no event: "had a look", "took a break"
_IDIOM = (
    r"(?:an?|the|my|our|some|two|three|several|many) (?:[\w'-]+ )?(?:look|breaks?|breath"
    r"|breather|steps?|care|while|moments?|minute|chances?"
    r"|turns?|lot|time|times|toll|risks?|nap|stand|part|place|point|idea|ideas|feelings?"
    r"|sense|hang|best|most|message|hint|way|kick|glimpse|hold"
    r"|opportunity|impact|effect|laugh|say|hand|bit|few|blast|ball|heart|eye|back|way"
    r"|work|thoughts?|thing|memories|memory|fun|luck|trouble"
    r"|problems?|issues?|doubts?|questions?|answers?|reason|need|urge|hope|clue|hunch"
    r"|rest|experiences?|day|week|weekend|year|life|strength"
    r"|courage|confidence|energy|support|help|love|news|stuff|influence|role|word|note"
    r"|grip|edge|upper hand|talk|chat|difference|response|errors?|bugs?|warnings?|exceptions?"
    r"|messages?|results?|outputs?|files?|functions?|scripts?|tests?|build|\d+)\b"
)
MORE = (
    *(rule(verb, A_THING, forms=frozenset({Form.PAST}), refuses=_IDIOM) for verb in verbs("take get find see")),
    rule("have", A_THING, forms=frozenset({Form.PAST, Form.FUTURE}), refuses=_IDIOM),
    rule("do", A_THING, forms=frozenset({Form.PAST}), refuses=rf"{_IDIOM}|an? (?:\w+ )?(?:job|favou?r|good)"),
    rule("give", r"(?:my|our) [\w'-]+ (?:an?|the|my|some) \w",
         forms=frozenset({Form.PAST}), refuses=r".{0,30}\b(?:hug|chance|hand)\b"),
    rule("plan", A_THING,
         forms=frozenset({Form.PRESENT, Form.PROGRESSIVE, Form.LASTING, Form.PAST, Form.PERFECT}), refuses=_IDIOM),
    rule("plan", r"to [a-z]+ (?:an?|the|my|our|some|[A-Z])", forms=frozenset({Form.PAST})),
    rule("work", r"(?:on|with) (?:an?|the|my|our) \w", "event", frozenset({Form.PAST, Form.PERFECT})),
    rule("talk", r"(?:to|with) (?:an?|my|our|the) \w", forms=frozenset({Form.PAST}), refuses="to the point"),
    rule("put", r"together (?:an?|the|my|our) \w|on (?:an?|the) (?:show|play|concert|exhibition)",
         forms=DONE - {Form.PAST}),
    rule("come", r"(?:back )?from (?:an?|the|my|our|[A-Z])",
         forms=frozenset({Form.PAST}), refuses=r"from (?:the (?:idea|heart)|a place)"),
    rule("come", r"up with (?:an?|the|some) \w", forms=frozenset({Form.PAST})),
    rule("come", r"across (?:an?|the|some) \w", forms=frozenset({Form.PAST})),
    rule("hang", r"out (?:with|at) (?:an?|the|my|our|some|[A-Z])", forms=DONE),
    rule("feed", r"(?:my|the|our) \w", forms=frozenset({Form.PAST})),
    rule("worry", r"about (?:my|the|our) \w", forms=frozenset({Form.PRESENT, Form.LASTING})),
    rule("miss", r"(?:my|our) \w", "misses", frozenset({Form.PRESENT}), refuses="my (?:point|chance)"),
    rule("do", rf"(?:{_EXERCISE})\b|(?:an?|my|some) (?:[\w-]+ ){{0,3}}?(?:retreat|class|course|event|workshop"
         r"|marathon|race|triathlon|fundraiser|painting|presentation|internship|project"
         r"|performance|experiment|survey|interview|show|degree|PhD"
         r"|run|walk|hike|drawing|sculpture)\b", forms=HABIT),
    rule("look", r"into (?:an?|the|my|some|[a-z]+) \w",
         forms=frozenset({Form.PROGRESSIVE, Form.LASTING, Form.INTENT})),
    rule("set", r"up (?:an?|the|my|our) \w", refuses="up (?:a time)"),
    rule("check", rf"out (?:{A_THING})", "event", frozenset({Form.PAST, Form.PERFECT})),
    rule("have", r"(?:an?|my|so much) (?:[\w-]+ )?(?:great|good|awesome|amazing|wonderful|fun|fantastic"
         r"|lovely|blast|nice|fun|tough|hard|rough|bad|terrible)?(?: ?(?:time|experience|day"
         r"|weekend|evening|night|blast|fun)) (?:at|in|on|visiting|exploring|hiking"
         r"|camping) (?:an?|the|my|our|[A-Z])", forms=frozenset({Form.PAST})),
    rule("have", r"(?:an?|some) (?:[\w-]+ ){0,3}(?:event|class|meetup|show|exam|deadline|trip|party"
         r"|wedding|appointment|conference|tournament|competition|gig|concert|meeting)s?\b.{0,40}", "plan",
         frozenset({Form.FUTURE, Form.PROGRESSIVE})),
    *(
        rule(verb, rf"(?:{A_THING})", forms=frozenset({Form.PAST, Form.PERFECT}))
        for verb in verbs(
            "contact invite upload install fix clean schedule book reserve cancel borrow hire submit edit "
            "film assemble replace upgrade harvest trim deliver injure sprain fracture share"
        )
    ),
    *(
        rule(verb, r"(?:with|to|for|from|in|at|on|out|up|about) (?:an?|the|my|our|[A-Z]) ?\w",
             forms=frozenset({Form.PAST, Form.PERFECT}),
             refuses=r"(?:to|for|in|on) (?:the (?:point|conclusion|best|way)|my (?:head|mind))")
        for verb in verbs(
            "reconnect bond collaborate register subscribe campaign protest march vote lecture tutor "
            "audition rehearse arrive settle relocate immigrate emigrate qualify dive backpack stroll cycle "
            "paddle snorkel chat talk serve contribute speak"
        )
    ),
    rule("keep", r"[a-z]+ing \w", "goal", frozenset({Form.INTENT}), refuses="(?:going|pushing|trying|improving)\\b"),
    rule("help", r"(?:people|kids|others who|children|my|our|students|animals|the|an?|more|folks"
         r"|those) ?\w|make (?:an?|the|my|our) \w", "goal", frozenset({Form.INTENT})),
    *(
        rule(verb, r"[a-z]{3,}", "habit", frozenset({Form.PRESENT, Form.USED_TO}),
             refuses="(?:for|up|out|away|the (?:way|line)|on and on|myself|along|down|over)\\b")
        for verb in verbs(
            "bake cook paint hike swim ride draw sing dance knit sew meditate photograph grow brew sail ski "
            "surf watch jog cycle write read"
        )
    ),
    *(
        rule(verb, r"(?:about|on) [a-z]", forms=frozenset({Form.LASTING, Form.PROGRESSIVE}))
        for verb in verbs("blog write")
    ),
    *(
        rule(verb, r"(?!you\b|ya\b|as\b|sure\b|it\b|my best|me\b|more$|a lot$)[\w$]", "goal", frozenset({Form.INTENT}))
        for verb in verbs(
            "make create build start work teach learn find improve inspire spread raise support become be "
            "get give provide contribute volunteer advocate continue encourage motivate promote change turn "
            "open study serve travel visit try explore write paint go buy have join run organize host move "
            "adopt develop design focus pursue expand grow add"
        )
    ),
)  # fmt: skip
