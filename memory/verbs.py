"""English verbs and their forms, for rules that read statements and rules that turn questions into statements."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Verb:
    """The four forms of a verb."""

    base: str
    past: str
    participle: str
    gerund: str

    @property
    def present(self) -> str:
        """The form of the third person."""
        return {"be": "is", "have": "has"}.get(self.base) or _with_s(self.base)


def _with_s(base: str) -> str:
    first, _, rest = base.partition(" ")
    if first.endswith(("s", "x", "z", "ch", "sh", "o")):
        form = f"{first}es"
    else:
        form = f"{first[:-1]}ies" if first.endswith("y") and first[-2] not in "aeiou" else f"{first}s"
    return f"{form} {rest}".strip()


_IRREGULAR = """
be was been being|become became become becoming|begin began begun beginning|break broke broken breaking
bring brought brought bringing|build built built building|buy bought bought buying|catch caught caught catching
choose chose chosen choosing|come came come coming|dig dug dug digging|draw drew drawn drawing
drink drank drunk drinking|drive drove driven driving|eat ate eaten eating|feed fed fed feeding
find found found finding|fly flew flown flying|get got gotten getting|give gave given giving|go went gone going
grow grew grown growing|have had had having|hold held held holding|keep kept kept keeping|lead led led leading
leave left left leaving|lose lost lost losing|make made made making|meet met met meeting|quit quit quit quitting
ride rode ridden riding|run ran run running|see saw seen seeing|sell sold sold selling|sew sewed sewn sewing
speak spoke spoken speaking|spend spent spent spending|swim swam swum swimming|take took taken taking
teach taught taught teaching|throw threw thrown throwing|wear wore worn wearing|win won won winning
write wrote written writing|sing sang sung singing
do did done doing|set set set setting
hang hung hung hanging|miss missed missed missing
worry worried worried worrying|read read read reading|put put put putting
plan planned planned planning|knit knitted knitted knitting|hate hated hated hating|jog jogged jogged jogging
"""
_REGULAR = """
meditate brew sail struggle live work like love enjoy prefer adore dislike own study play move visit travel join
start finish complete attend adopt paint bake cook watch try hike camp volunteer organize organise host apply
graduate pass receive donate plant celebrate perform launch open create design publish compose record produce invent
found develop learn collect practice practise train coach garden drive sign rescue marry retire explore climb surf
ski skate dance photograph order rent renovate decorate repair restore sponsor mentor foster raise help support
teach research interview present compete enroll enter exhibit sculpt carve program code need want use manage direct
look check contact reconnect invite bond collaborate upload post install fix clean schedule book reserve cancel
borrow hire register subscribe submit revise edit film assemble replace upgrade harvest trim deliver fundraise
campaign protest march vote demonstrate lecture tutor audition rehearse arrive settle relocate immigrate emigrate
transition challenge injure sprain fracture recover qualify score row dive backpack roam stroll cycle paddle snorkel
blog chat talk advocate improve inspire spread capture show express share continue focus motivate encourage promote
bring change turn provide address serve contribute babysit crochet pursue tour discover purchase stop switch
transfer participate
"""
_DOUBLED = frozenset(["plan", "stop", "prefer", "program", "transfer", "chat", "shop", "hop"])


def regular_verb(base: str) -> Verb:
    """Return a verb with -ed and -ing, spelled by the rules."""
    stem = base + base[-1] if base in _DOUBLED else base
    if base.endswith("e"):
        return Verb(base, f"{base}d", f"{base}d", f"{base[:-1]}ing")
    if base.endswith("y") and base[-2] not in "aeiou":
        return Verb(base, f"{base[:-1]}ied", f"{base[:-1]}ied", f"{base}ing")
    return Verb(base, f"{stem}ed", f"{stem}ed", f"{stem}ing")


def _verbs() -> Iterator[Verb]:
    yield from map(regular_verb, _REGULAR.split())
    for line in _IRREGULAR.replace("\n", "|").split("|"):
        if line:
            yield Verb(*line.split())


VERBS = {verb.base: verb for verb in _verbs()} | {"babysit": Verb("babysit", "babysat", "babysat", "babysitting")}
"""Verbs by base. The list is closed: rules read only statements with verbs that they know."""
