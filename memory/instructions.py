"""Texts that give orders to the model that reads them, as memories that strangers write may do.

`gives_instructions` marks such texts where memories are returned (`flags`), and quarantines them on arrival in accounts
that ask for it. It is a filter with a known precision and recall (docs/recall.md), not a guarantee: it knows the usual
forms in some languages. Ordinary wishes of a user ("always answer in French", "remind me to call Ana") are none, since
they set aside no rules, claim no authority and hide nothing. `extraction.orders`, which decides what is learned, is
broader.

To add a form, add a pattern to a group of `FORMS`, and the first letters of its words to the cues; or to LINES, if it
begins a line. Both see case-folded text. Try it on `docs/sample/instructions.json`.
"""

import hashlib
import re
import unicodedata
from dataclasses import dataclass

from memory.invisible_characters import drop_invisible

INSTRUCTION_FLAG = "instruction"
"""Flag of a text that gives orders to the model, in answers."""
MAX_HEAD_CHARACTERS, MAX_TAIL_CHARACTERS = 15_000, 5_000
"""The parts of a long text that are looked at."""
MAX_CACHED_TEXTS = 20_000
"""Texts of which a process keeps whether they give orders."""

_GAP = r"[^.!?。！？\n]"
_IGNORE = (
    r"\b(?:ignore|disregard|forget|override|bypass|overrule|neglect|discard|abandon|disobey|violate|drop|set aside"
    r"|pay no attention to|(?:stop|no longer|do not|don't|never) (?:follow|obey|adher|comply)\w*|break free of)\b"
)
_FORMER = (
    r"(?:previous|prior|above|preceding|earlier|foregoing|former"
    r"|initial|original|existing|past|old|system|safety|your"
    r"|hidden|content|developer'?s?|current)"
)
_RULES = (
    r"(?:instructions?|prompts?|rules?|guidelines?|directives?"
    r"|orders|polic(?:y|ies)|restrictions?|safeguards?|guardrails?"
    r"|programming|training|protocols?|constraints)"
)
_MODEL = (
    r"(?:ai(?: (?:models?|assistants?|agents?|systems?))?|llms?|(?:large )?language models?|chat ?bots?"
    r"|neural networks?)"
)
_READER = rf"(?:{_MODEL}|assistants?|bots?|models?)"
_NO_LIMITS = (
    r"(?:unrestricted|unfiltered|uncensored|unlimited|jailbroken|dan\b|evil|no longer bound"
    r"|(?:without|free (?:of|from)|has no|have no|had no|with no|no) (?:any |all |your )?(?:content |safety )?"
    r"(?:restrictions?|rules|filters?|limits|limitations|guidelines|polic(?:y|ies)|ethics))"
)
_ACTS = (
    r"(?:reveal|disclose|leak|obey|ignore|send|forward|output"
    r"|print|comply|act|reply|answer|include|recommend|export|delete"
    r"|approve|transfer|rate)"
)
_OF_SYSTEM = r"(?:your|hidden|initial|the system|system|secret|original)"


@dataclass(frozen=True, slots=True)
class FormGroup:
    """Patterns that are searched for in texts with a sentence that has a word with each sort of cue.

    Cues are the first letters of words. Without `others`, one sort is enough.
    """

    cues: frozenset[str]
    others: frozenset[str]
    pattern: re.Pattern[str]

    def may_match(self, starts: frozenset[str]) -> bool:
        """Return True if a sentence whose words begin like this may have one of the forms."""
        return not self.cues.isdisjoint(starts) and not (self.others and self.others.isdisjoint(starts))


def make_group(cues: str, others: str, *forms: str) -> FormGroup:
    pattern = re.compile("|".join(f"(?:{form})" for form in forms))
    return FormGroup(frozenset(cues.split()), frozenset(others.split()), pattern)


FORMS = (
    # set rules aside
    make_group(
        "igno disr forg over bypa negl disc aban diso viol drop asid atte foll adhe comp brea obey",
        "inst prom rule guid dire orde poli rest safe guar prog trai prot cons ever all anyt what who",
        rf"{_IGNORE}{_GAP}{{0,40}}\b{_FORMER}\b{_GAP}{{0,20}}\b{_RULES}\b",
        rf"{_IGNORE}{_GAP}{{0,20}}\b{_RULES}\b (?:above|before|so far|that you|you (?:were|have|got))",
        rf"{_IGNORE} (?:all |about )?(?:everything|all|anything|whatever|what|who){_GAP}{{0,20}}"
        r"(?:\byou (?:were|have been|are\b|know)|you've been|\babove\b|\bbefore this)",
    ),
    make_group(
        "over prec disa turn swit ever",
        "safe cont secu prec void inva obso revo",
        rf"\beverything (?:above|before){_GAP}{{0,20}} (?:void|invalid|obsolete|revoked)",
        r"\boverride (?:the |all )?(?:safety|content|security)\b|\btakes precedence over (?:any|every|all|your)",
        r"\b(?:disable|turn off|switch off) (?:the |all |your )?(?:content |safety )(?:filters?|checks?|policy)",
    ),
    # take another role
    make_group(
        "rest filt limi poli guid rule ethi unce jail evil boun obey dan unre unfi unli",
        "you act acts beha resp answ pret imag repl ai llm llms lang chat neur assi bot bots mode",
        rf"\byou(?: are|'re) (?:now|no longer|hereby|from now on){_GAP}{{0,30}}\b{_NO_LIMITS}",
        rf"\byou are no longer bound|\byou (?:have|follow|know) {_NO_LIMITS}|\byou (?:only )?obey\b",
        r"\bobey (?:me|only)\b",
        rf"\b(?:act|behave|respond|answer|pretend|imagine)\b{_GAP}{{0,40}}\b(?:as"
        rf"|that|to be|you|without)\b{_GAP}{{0,30}}{_NO_LIMITS}",
        rf"\b(?:act|answer|respond|reply)s? without (?:any )?(?:filters?|restrictions?)|\ban? {_READER} {_NO_LIMITS}",
    ),
    make_group(
        "now mome poin here anyt dan imme",
        "you act do",
        r"\bact as dan\b|\bdo anything now\b",
        rf"\bfrom (?:now on|this moment|this point|here)(?: on)?,? you (?:(?:will"
        rf"|must|shall|only|obey)\b|are{_GAP}{{0,30}}{_MODEL})",
        rf"\byou (?:must|will|shall) (?:now|immediately|from now on) {_ACTS}\b",
    ),
    make_group(
        "mode",
        "enab acti unlo jail dan god deve",
        r"\b(?:developer|god|maintenance|debug|admin|jailbreak"
        r"|root) mode (?:is |has been )?(?:enabled|activated|unlocked|active)",
        r"\b(?:jailbreak|dan|god) mode\b|\bdeveloper mode\b[^.]{0,40}\b(?:filters?|safety|ethics|restrictions?)",
    ),
    # give new orders
    make_group(
        "inst task rule dire orde goal miss mess",
        "your new from",
        r"\byour (?:new|real|true|updated|actual|only) (?:instructions?|tasks?|rules|directives?|orders|goal|mission)\b"
        rf"{_GAP}{{0,20}}\b(?:is|are)\b|\byour instructions (?:have|are) changed",
        rf"\bnew (?:system )?(?:instructions?|tasks?|rules?|directives?"
        rf"|orders?) (?:for (?:you\b|the (?:{_READER})|all )|follow\b)",
        r"\b(?:order|message|instructions?) from your (?:creators?|developers?|makers?|operators?)",
    ),
    # speak to whoever reads
    make_group(
        "note mess noti inst atte memo hint",
        "ai llm llms lang large chat neur assi bot bots mode",
        rf"\b(?:note|message|notice|instructions?|attention|memo"
        rf"|hint)(?: (?:to|for))? (?:the |all |any |every )?{_READER}\b",
    ),
    make_group(
        "ai llm llms lang chat neur",
        "",
        rf"\b(?:dear|to the|to all|to any|attention) {_MODEL}\b",
        rf"\b(?:if|when|since) you are (?:an? )?(?:{_MODEL})|\bas an? {_MODEL},? you\b|\breads? this with an? {_MODEL}",
        rf"\b{_MODEL}(?: reading| processing| that reads?)?{_GAP}{{0,20}} (?:must|shall|are required to) ",
    ),
    make_group(
        "ai llm llms lang chat neur assi bot bots mode",
        "now next firs imme then aban igno forg stop drop disr exec reve",
        rf"\bthe {_READER} (?:must|should|shall) (?:now|next|first|immediately|then)\b",
        rf"(?:^|[.!?\n]) ?(?:{_READER}),? (?:abandon|ignore|forget"
        rf"|stop|drop|disregard|execute|reveal) (?:all|your|the|any)\b",
    ),
    # show what is hidden, hide what is done
    make_group(
        "prom inst guid conf abov dump",
        "reve prin repe show outp leak dump reci disp disc tell give what",
        rf"\b(?:reveal|print|repeat|show|output|leak|dump|recite|display|disclose|tell me|give me"
        r"|what (?:is|are|was|were))\b"
        rf"{_GAP}{{0,30}}\b{_OF_SYSTEM} (?:\w+ ){{0,2}}?(?:prompts?|instructions?|guidelines|configuration)\b",
        r"\brepeat (?:the |all )?(?:text|words|everything|message) above\b",
        r"\bdump your (?:configuration|memory|settings)",
    ),
    make_group(
        "user mess note para inst diso",
        "tell ment info aler what diso",
        r"\bwhatever the user (?:asks|says|wants)|\bdisobey your\b",
        r"\b(?:do not|don't|never|without) (?:tell|mention|inform|telling|informing|mentioning|alert)(?:ing)?\b"
        r"[^.!?\n]{0,25}"
        r"\b(?:the user\b|this (?:message|note|paragraph|instruction))",
    ),
    make_group(
        "quie sile secr exfi",
        "call run exec send use forw exfi",
        r"\b(?:quietly|silently|secretly) (?:call|run|execute|send|use|forward)\b|\bexfiltrate\b",
    ),
    make_group(
        "pass cred api memo conv chat mess",
        "send forw uplo post tran mail emai",
        r"\b(?:send|forward|upload|post|transmit|e-?mail)\b[^!?\n]{0,40}\b(?:api keys?|passwords?|credentials"
        r"|your memory|memories"
        r"|(?:all|contents) of (?:the|this) (?:conversation|chat|messages))\b[^!?\n]{0,40}(?:https?:|@|here\b)",
    ),
    # German, French
    make_group(
        "igno verg miss beac befo bist syst prom oubl comp cons sans",
        "anwe vorg rege rich inst befe alle bist syst prom cons règl dire tout sans",
        r"\b(?:ignorier\w*|vergiss|vergesst|missachte\w*|beachte|befolge)\b.{0,40}\b(?:alle|dein\w*|bisherig\w*"
        r"|vorherig\w*"
        r"|obig\w*|früher\w*)\b.{0,25}\b(?:anweisung|vorgabe|regel|richtlinie|instruktion|befehl)",
        r"\bvergiss alles,? was (?:dir|du)\b|\bdu bist (?:jetzt|nun"
        r"|ab sofort|ab jetzt|von nun an)\b.{0,30}\b(?:ohne|ki)\b",
        r"\b(?:zeig\w*|nenn\w*|gib|verrat\w*)\b.{0,25}\bsystem-?prompt",
        r"\b(?:ignore[zrs]?|oublie[zrs]?|(?:tiens|tenez) (?:plus"
        r"|pas) compte)\b.{0,40}\b(?:instruction|consigne|règle|directive)",
        r"\boublie[zr]? tout ce (?:qu'on|que l'on|qui t)|\b(?:affiche"
        r"|montre|révèle|donne)\w*\b.{0,25}\b(?:prompt|consignes)\b",
        r"\b(?:tu es|vous êtes)\b.{0,40}\bsans (?:aucune? )?(?:limites?|restrictions?|règles?|filtres?)",
    ),
    # Spanish, Italian, Portuguese
    make_group(
        "igno olvi omit caso deso eres prom sist dime segu diso sei esqu desc sem",
        "inst regl dire órde prom mens sin istr rego senz regr orde sem",
        r"\b(?:ignora\w*|olvida\w*|omite|no hagas? caso"
        r"|desobedece)\b.{0,40}\b(?:instrucci[oó]n|reglas|directrices|órdenes)",
        r"\b(?:muestra|revela|imprime|dime)\b.{0,25}\b(?:prompt|(?:mensaje|instrucciones) del sistema)",
        r"\beres\b.{0,40}\bsin (?:ninguna? )?(?:l[ií]mites|restricci[oó]n|restricciones|reglas|filtros)",
        r"\b(?:ignora\w*|dimentica\w*|non seguire|disobbedisci)\b.{0,40}\b(?:istruzion|regol|direttiv)",
        r"\bsei\b.{0,40}\bsenza (?:alcun |nessun )?(?:limiti|restrizioni"
        r"|regole|filtri)|\b(?:mostra|rivela)\b.{0,20}\bprompt",
        r"\b(?:ignore|ignora|esqueça|esquece|desconsidere|desobedeça)\b.{0,40}\b(?:instruç|regras|diretriz|ordens)",
        r"\b(?:você é|és)\b.{0,40}\bsem (?:nenhuma? )?(?:limites"
        r"|restriç|regras|filtros)|\b(?:mostre|revele)\b.{0,20}\bprompt",
    ),
    # Dutch, Swedish, Danish, Norwegian, Polish, Turkish
    make_group(
        "nege verg over syst igno glöm glem zign zapo pomi tali kura yöne",
        "inst rege rich syst regl anvi pole zasa regu yok görm dikk unut",
        r"\b(?:negeer|vergeet|overtreed)\b.{0,40}\b(?:instructie"
        r"|regel|richtlijn)|\b(?:toon|geef)\b.{0,20}\bsysteemprompt",
        r"\b(?:ignorera|glöm|ignorer|glem)\b.{0,40}\b(?:instruktion"
        r"|instruks|regler|anvisning)|\bvisa\b.{0,15}\bsystemprompt",
        r"\b(?:z?ignoruj|zapomnij|pomiń)\b.{0,40}\b(?:instrukcj|poleceni|zasad|reguł)",
        r"(?:talimat|kural|yönerge)\w*.{0,15}(?:yok say|görmezden gel|dikkate alma|unut)",
    ),
    # markup
    make_group(
        "< [ role",
        "",
        r"<\|[a-z_0-9 ]{1,40}\|>|\[/?inst\]|<</?sys>>",
        r"</?\s*(?:system|developer|instructions?|system[_ -]?prompt|admin)\s*/?>",
        r"[\"']role[\"']\s*:\s*[\"'](?:system|developer)[\"']",
        rf"<!--[^>]{{0,200}}\b(?:{_READER}|ignore|system)\b",
    ),
)
OTHER_SCRIPTS = re.compile(
    r"(?:игнориру|забуд|не следу|не соблюда)\w*.{0,40}(?:инструкц|указани|правил)"
    r"|(?:покаж|вывед|раскро)\w*.{0,25}(?:системн\w+ (?:промпт"
    r"|сообщен|инструкц))|\bты\b.{0,30}\bбез (?:ограничен|правил)"
    r"|(?:تجاهل|لا تتبع|تجاوز).{0,30}(?:تعليمات|القواعد|الأوامر)|(?:निर्देश|नियम).{0,20}(?:अनदेखा|नज़रअंदाज़|मत मानो)"
    r"|(?:忽略|无视|無視|忘记|忘掉|忘記|不要遵[守循]|不再遵[守循]|绕过).{0,15}(?:指令|指示|规则|規則|提示|设定|限制)"
    r"|你.{0,10}(?:不受|没有|沒有|无).{0,6}(?:限制|约束|规则)的|(?:输出|显示|透露|打印|泄露|告诉我).{0,10}系统提示"
    r"|(?:指示|命令|ルール|規則|プロンプト).{0,10}無視|システムプロンプト.{0,8}(?:表示|見せ|教え|出力)"
    r"|あなたは.{0,10}(?:制限|ルール|規制|フィルター).{0,3}(?:ない|なし|なく)"
    r"|(?:지시|명령|규칙|지침).{0,10}무시|시스템 ?프롬프트.{0,8}(?:출력|보여|알려|공개)"
)
LINES = (
    r"\W{0,10}(?:system|developer|admin) (?:override|prompt|instructions?|command)s? ?[:\-\]]",
    (
        r"[\s\[({*#>]{0,5}(?:system|developer|admin|root)[\])}*]{0,3} ?[:>\-\]] ?[^\n]{0,80}\b(?:you|your"
        r"|instructions?|prompt"
        r"|reveal|ignore|grant|disable|obey|comply|approve|verified)\b"
    ),
    r"\s*[\[({](?:system|developer|admin)[\])}]",
    r"\s*#{1,6} ?(?:system|new instructions?)\b *:?$|\s*### ?instructions? *:?$",
    (
        r"\W{0,10}(?:end|begin|start) of (?:the |user |system |your )*(?:message|input|document|context"
        r"|prompt|instructions?)\b"
        r"[^\n]{0,20}\b(?:begin|start|new|system|admin)"
    ),
    r"\s*(?:human|user) ?:[^\n]{1,500}\n+\s*assistant ?:",
)
_LINE = re.compile(rf"^(?:{'|'.join(LINES)})", re.MULTILINE)
_SPEAKERS = re.compile(r"^(?:user|assistant): ", re.MULTILINE)
CUE_CHARACTERS = 4
_WORD_STARTS = re.compile(rf"\b[^\W_]{{1,{CUE_CHARACTERS}}}")
_OTHER_LETTERS = re.compile("[\u0370-\u1cff\u3040-\ud7ff]")
_SENTENCE_ENDS = re.compile(r"[.!?\n]+")

# tag characters are unseen copies of ASCII; only flags of regions need them
_FLAG_OF_REGION = re.compile("\U0001f3f4[\U000e0020-\U000e007f]+")
_TAGS = re.compile("[\U000e0000-\U000e007f]")
# letters that are drawn like Latin ones
_LOOKALIKES = str.maketrans("аеорсухіјѕԁһӏοανεικτυρ", "aeopcyxijsdhloaveiktup")


_cached_findings: dict[bytes, bool] = {}
"""Findings by digest of the text, so that no text stays here after its erasure."""


def gives_instructions(text: str, *, is_summary: bool = False) -> bool:
    """Return True if the text gives orders to the model that reads it. Takes time linear in its length.

    Lines of a summary begin with their speakers, which in other texts looks like a conversation made up for the model.
    """
    if is_summary:
        text = _SPEAKERS.sub("", text)
    if len(text) > MAX_HEAD_CHARACTERS + MAX_TAIL_CHARACTERS:
        text = f"{text[:MAX_HEAD_CHARACTERS]}\n{text[-MAX_TAIL_CHARACTERS:]}"
    digest = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()
    finding = _cached_findings.get(digest)
    if finding is None:
        if len(_cached_findings) >= MAX_CACHED_TEXTS:
            _cached_findings.clear()
        finding = _cached_findings[digest] = has_instructions(text)
    return finding


def flags_of_texts(*texts: str, is_summary: bool = False) -> list[str]:
    """Return the warnings for readers of something with these texts: INSTRUCTION_FLAG or nothing."""
    return [INSTRUCTION_FLAG] if any(gives_instructions(text, is_summary=is_summary) for text in texts) else []


def has_instructions(text: str) -> bool:
    if text.isascii():
        return has_form(text.casefold())
    if _TAGS.search(_FLAG_OF_REGION.sub("", text)):
        return True
    folded = unicodedata.normalize("NFKC", drop_invisible(text)).replace("’", "'").casefold()
    if has_form(folded) or (_OTHER_LETTERS.search(folded) and OTHER_SCRIPTS.search(folded)):
        return True
    latin = folded.translate(_LOOKALIKES)
    return latin != folded and has_form(latin)


def has_form(folded: str) -> bool:
    lines = [" ".join(line.split()) for line in folded.split("\n")]
    text = " ".join(filter(None, lines))
    is_headed = _LINE.search("\n".join(filter(None, lines))) is not None
    return is_headed or any(group.pattern.search(text) for group in groups_to_search(text))


def groups_to_search(text: str) -> set[FormGroup]:
    """Return the groups that some sentence has the cues of."""
    marks = frozenset(mark for mark in "<[" if mark in text)
    words = marks.union(_WORD_STARTS.findall(text))
    groups = [group for group in FORMS if group.may_match(words)]
    if not groups:
        return set()
    cues = frozenset().union(*(group.cues for group in groups))
    found: set[FormGroup] = set()
    for sentence in _SENTENCE_ENDS.split(text):
        starts = marks.union(_WORD_STARTS.findall(sentence))
        if not cues.isdisjoint(starts):
            found.update(group for group in groups if group.may_match(starts))
    return found
