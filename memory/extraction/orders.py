"""Injected instructions: turns that address the software that reads them instead of a person.

Nothing is learned from such a turn, and no language model gets it. The check is a filter, not a guarantee: it knows the
usual forms (orders to drop instructions, chat templates, tags, answers in JSON, hidden text, the same in base64 or in
letters that only look Latin), mostly in English. Turns that pass are still delimited in prompts, and what a model makes
of them is checked (`knowledge.check_extraction`). A turn that merely asks to remember something is not of this kind.

To add a form, add a pattern to `_FORMS`, which is searched for in the folded text (`grounding.fold_text`), or to
`_LINES`, which is searched for in each folded line.
"""

import base64
import binascii
import re

from memory.extraction.grounding import fold_text

_BEFORE = r"(?:previous|prior|above|preceding|earlier|foregoing|former|initial|original|system|safety|your|hidden)"
_RULES = r"(?:instructions?|prompts?|rules?|guidelines?|directives?|orders?|messages?|restrictions?|guardrails?)"
_KNOWLEDGE = r"(?:facts?|entity|entities|memory|memories|relationships?|knowledge)"
_FORMS = (
    # ignore instructions
    (
        rf"\b(?:ignore|disregard|forget|override|bypass|overrule|neglect|(?:not|don't) (?:obey|follow))\b[^.!?]{{0,30}}"
        rf"\b{_BEFORE}\b[^.!?]{{0,20}}\b{_RULES}"
    ),
    (
        r"\b(?:ignore|disregard|forget|override|bypass)\s+(?:all|any|every|everything)\b[^.!?]{0,20}"
        r"\b(?:instructions?|prompts?|guidelines?|above|before)\b"
    ),
    r"\b(?:ignorier\w*|vergiss|missachte)\b.{0,40}\b(?:anweisung|anordnung|regel)",
    (
        r"\b(?:ignora\w*|ignore[zr]?|olvida\w*|oublie[zr]?|dimentica\w*|esqueça)\b.{0,40}"
        r"\b(?:instruc|instruct|istruzion|instruç|consigne)"
    ),
    r"(?:игнорир|забуд)\w*.{0,40}(?:инструкц|указан)",
    r"(?:忽略|无视|無視).{0,20}(?:指令|指示|提示)|(?:指示|命令).{0,10}無視",
    # reveal instructions
    (
        r"\b(?:reveal|print|repeat|show|output|leak|dump|recite|quote|what (?:is|are|was|were))\b[^.!?]{0,30}"
        rf"\b(?:your|hidden|initial|system)\s+(?:\w+\s+)?(?:{_RULES}|configuration)"
    ),
    # take another role
    (
        r"\byou are (?:now|no longer)\s+(?:in\s+)?(?:an?\s+|the\s+|my\s+)?"
        r"(?:free\b|unrestricted|unfiltered|bound|jailbroken|dan\b|developer|admin|root|system|operator|extract)"
    ),
    r"\b(?:developer|god|maintenance|debug|admin) mode\b.{0,30}\b(?:on|enabled|activated|active|unlocked)\b",
    r"\b(?:new|updated|revised|urgent) (?:system )?(?:instructions?|prompt|directives?) ?(?:follow|for you|:)",
    r"\bsystem (?:override|message|notice|prompt|instruction|update|note|command) ?[:\-\]>]",
    (
        r"\b(?:note|message|instructions?|attention) (?:to|for) (?:the |any |all )?"
        r"(?:ai|assistant|model|llm|extract\w*|memory (?:service|system|store))\b"
    ),
    # change stored knowledge, in the words of this service
    (
        r"\b(?:delete|erase|remove|retract|reject|supersede|overwrite|invalidate|purge|wipe|drop|contradict)\b[^.!?]{0,30}"
        rf"\b(?:known|all|every|stored|existing|the user's|these|number|id)\b[^.!?]{{0,20}}\b{_KNOWLEDGE}\b"
    ),
    r"\bfacts? (?:number |no\.? ?|#|id )?\d",
    r"\b(?:entity|evidence|relationship)s?\s+(?:ids?|numbers?|turns?|types?)\b",
    (
        r"\b(?:add|create|insert|store|record|write|save|emit|extract|register|merge)\b[^.!?]{0,30}"
        r"\b(?:entity|entities|(?:this|these|new|following) facts?|relationships? (?:of type|from)|preferences? for)\b"
    ),
    r"\b(?:answer|respond|reply|output)\b[^.!?]{0,30}\b(?:json|schema|(?:only|exactly) with|with (?:only|exactly))\b",
    r"\b(?:confidence|certainty)\s*(?:of|=|:|to|is)\s*(?:\d|explicit)",
    r"\b(?:merged_into|promoted_from|derived_from|subgoal_of)\b",
    # forms of chats and of answers
    r"<\|[a-z_0-9 ]{1,40}\|>|\[/?inst\]|<</?sys>>",
    (
        r"</?\s*(?:system|developer|assistant|user|human|tool\w{0,20}|function\w{0,20}|turns?|before|known_facts|material|"
        r"messages?|instructions?|prompt|context|output|answer|admin|document|previous_summary)\b[^<>]{0,80}>"
    ),
    r"""["']role["']\s*:\s*["']""",
    (
        r"""["'](?:facts|entities|relationships|preferences|evidence|claim|contradicts|corrects|certainty|valid_from|"""
        r"""valid_to)["']\s*:"""
    ),
    # hidden in markup
    (
        r"<!--|<(?:script|iframe|object|embed|style|svg|link|meta|form|base)\b|\bon(?:error|load|click)\s*=|\bjavascript:|"
        r"display:\s*none"
    ),
    r"!\[[^\]]{0,200}\]\(\s*(?:https?:|data:|//)",
)
_LINES = (
    r"^\s*[\[({]\s*(?:system|developer|admin)\s*[\])}]",
    r"^[\s#*>\-\[(=]{0,20}(?:system|developer)(?: (?:message|prompt|note|override|role))?[\s\])*]{0,10}[:>]",
    r"^[\s#*]{0,5}(?:role|claim|evidence|corrects|contradicts|certainty)\s*:\s*\S",
    r"^\s*#{1,6}\s*(?:system|instructions?|new instructions?|response|output|end of)\b",
    (
        r"^[\s\-=*#]{0,10}(?:end|begin|start) of "
        r"(?:conversation|turns?|material|messages?|input|document|context|prompt|instructions?)\b"
    ),
)
_ORDER = re.compile("|".join(f"(?:{form})" for form in _FORMS))
_ORDER_LINE = re.compile("|".join(f"(?:{form})" for form in _LINES))
# letters that are drawn like Latin ones
_CYRILLIC, _GREEK = "аеорсухіјѕԁһӏ", "οανεικτυρ"
_LOOKALIKES = str.maketrans(_CYRILLIC + _GREEK, "aeopcyxijsdhl" + "oaveiktup")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{24,}={0,2}")
MAX_BASE64_BLOBS = 50
# tag characters are unseen copies of ASCII; only flags of regions need them
_FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007f]+")
_HIDDEN = re.compile("[\U000e0000-\U000e007f\u202d\u202e]")


def gives_orders(text: str) -> bool:
    """Return True if the text contains injected instructions. Takes time linear in its length."""
    return _HIDDEN.search(_FLAG.sub("", text)) is not None or _orders(text) or any(map(_orders, _decoded(text)))


def _orders(text: str) -> bool:
    whole = fold_text(text)
    if _ORDER.search(whole) or _ORDER.search(whole.translate(_LOOKALIKES)):
        return True
    return any(_ORDER_LINE.search(fold_text(line).translate(_LOOKALIKES)) for line in text.splitlines())


def _decoded(text: str) -> list[str]:
    """Return the decoded texts of the runs of base64 in a text."""
    found = []
    for blob in _BASE64.findall(text)[:MAX_BASE64_BLOBS]:
        bare = blob.rstrip("=").translate(str.maketrans("-_", "+/"))
        try:
            found.append(base64.b64decode(bare + "=" * (-len(bare) % 4)).decode())
        except (binascii.Error, UnicodeDecodeError):
            continue
    return found
