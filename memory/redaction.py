"""Masks secrets in texts that are kept for others to read: what looks like a key, a password or a card's number.

Rather once too often than once too seldom; but mere talk of secrets, uuids and the hashes of commits stay.
Left as they are: IBANs, social security numbers and one-time codes, which have the form of ordinary numbers, and a
password that nothing names. Characters that no reader sees are dropped: they would hide a name from the patterns.

Each pattern begins with something rare and takes back nothing of what it has taken, or looks no further than a fixed
number of characters, so that the time grows with the text and not faster, whoever wrote it.
"""

import re
import string
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from memory.unseen import drop_unseen

MASK = "[redacted]"

PEM = re.compile(r"-----BEGIN [A-Z0-9 ]{1,40}-----.*?(?:-----END [A-Z0-9 ]{1,40}-----|\Z)", re.DOTALL)

KNOWN = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"sk-[\w-]{16,}+|[sr]k_(?:live|test)_\w{10,}+|whsec_[\w+/=-]{16,}+|mem_[\w-]{16,}+"
    r"|gh[pousr]_\w{16,}+|github_pat_\w{16,}+|gl(?:pat|rt)-[\w-]{16,}+|hf_\w{16,}+|npm_\w{16,}+|pypi-[\w-]{16,}+"
    r"|(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}(?![A-Za-z0-9])|SK[0-9a-f]{32}(?![A-Za-z0-9])"
    r"|xox[a-z]-[\w-]{8,}+|xapp-[\w-]{8,}+|AIza[\w-]{30,}+|ya29\.[\w-]{16,}+|SG\.[\w-]{16,}+(?:\.[\w-]++)?"
    r"|hv[sbr]\.[\w-]{16,}+|do[por]_v1_\w{16,}+|dckr_pat_[\w-]{16,}+|shp(?:at|ca|pa|ss)_\w{16,}+"
    r"|[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,}+|\d{8,10}:[\w-]{30,}+|b3BlbnNzaC1rZXktdj[\w+/=]*+"
    r")",
    re.ASCII,
)
"""OpenAI, Anthropic and their like; Stripe; our own; GitHub, GitLab, Hugging Face, npm, PyPI; AWS, Twilio; Slack;
Google; SendGrid; Vault, DigitalOcean, Docker, Shopify; Discord, Telegram; the body of an OpenSSH key."""

HASHED = re.compile(r"\$(?:apr1|2[abxy]|[156y]|argon2\w{1,2})\$[\w./$+=,-]{8,}+", re.ASCII)
"""A password's hash (crypt(3), Argon2): it can be guessed at."""

HOOK = re.compile(
    r"(hooks\.slack\.com/[a-z]{1,20}/|discord(?:app)?\.com/api/webhooks/)[^\s\"'<>\\)]++", re.IGNORECASE | re.ASCII
)

JSON_WEB_TOKEN = re.compile(r"(?<![\w-])eyJ[\w-]{5,}+\.[\w-]{5,}+(?:\.[\w-]*+)*+", re.ASCII)

BEARER = re.compile(r"(?<![a-z0-9])(bearer\s{1,8})[a-z0-9._~+/=-]{8,}+", re.IGNORECASE | re.ASCII)

HEADER = re.compile(
    r"((?<![a-z])(?:authorization|set-cookie|cookie)[\"']?\s{0,4}[:=]\s{0,4}[\"']?)"
    r"(?:[a-z]{3,10} +)?[^\s\"',;][^\n\"']*+",
    re.IGNORECASE,
)
"""To the end of its line, or of its quotes."""

ADDRESS = re.compile(r"(://[^\s/@:\"'<>]*+:)[^\s/\"'<>]+@")
"""The password of a URL, up to the last @ before its path."""

ADDRESS_TOKEN = re.compile(r"(://)(?=[^\s/@:\"'<>\d]{0,40}+\d)[^\s/@:\"'<>]{16,}+@")
"""A token in place of the user."""

WORDS = (
    r"passwor[dt]|passwd|pass[ _-]?phrase|passcode|pwd|(?<![a-z])(?:bind|root|db|user|admin)?pw(?![a-z])"
    r"|mot de passe|contrase(?:ñ|n|n\u0303)a|wachtwoord|lösenord|hasło|şifre|парол[ья]|密码|密碼|パスワード"
)
KEYS = (
    r"(?:private|a(?:pi|ccess|ccount)|signing|encryption|client|shared[ _-]?access)[ _-]?key"
    r"|secret|token|credential|(?<![a-z])p(?:ass|in)(?![a-z])"
)
NAMES = rf"(?:{WORDS}|{KEYS})"
SECRET_NAME = re.compile(NAMES, re.IGNORECASE)

PART = r"(?:[^\s,;&\"'<>\\]|[,;&](?=[^\s\"'<>\\])(?![a-z_][\w.-]{0,40}+=[^\s=]))"
"""One character of a value without quotes. What only separates is none: the last comma, or that before `name=value`."""

VALUE = (
    r"(?:(\\{1,8}\")([^\"]++)|(\\{1,8}')([^']++)|(\")((?:\\.|[^\"\\])++)|(')((?:\\.|[^'\\])++)"
    rf"|({PART}++))"
)
FLAGS = re.IGNORECASE | re.DOTALL

IS = r"\s{1,4}+(?:is|was|ist|lautet|est|es)\s{1,4}+(?:(?:now|still|set|reset|changed)\s{1,4}+){0,2}+(?:to\s{1,4}+)?+"
SIGN = r"(?:\\{0,8}+[\"'])?\]?(?:>|\s*+(?:=>|->|→|:=|={1,3}+|[:：＝])\s*+)"
ASSIGNED = re.compile(rf"({NAMES}(?:[\w-]{{0,30}}+{SIGN}|{IS})){VALUE}", FLAGS)
"""In text, JSON (in JSON), XML, query strings, connection strings, environment files: a value in quotes or one word."""

PHRASE = re.compile(
    r"(pass[ _-]?phrase\s{0,4}+(?:[:=：]|(?:is|was)\s)\s{0,4}+)(?!\s)(?:[^\n\"'<>\\,;]|[,;](?=[^\s\"'<>\\]))++", FLAGS
)
"""Several words, to the end of the line or a comma."""

FLAG = re.compile(
    rf"((?<![\w-])--?(?:[a-z]{{1,20}}-){{0,3}}{NAMES}[\w-]{{0,30}}+[ \t]++|(?<![a-z])login\s++\S++\s++password\s++)"
    rf"(?!-){VALUE}",
    FLAGS,
)
"""`--password X`, and the lines of .netrc."""

NEXT = re.compile(
    rf"({NAMES}[\w-]{{0,30}}+\s++)(?=[^\s\d]{{0,60}}+\d)(?=[^\sa-z]{{0,60}}+[a-z])"
    r"(?![0-9a-f]{8}-[0-9a-f]{4}-|[0-9a-f]{7,64}(?![\w-]))(?=[^\s\"'<>\\]{8})"
    rf"{PART}++",
    FLAGS,
)
"""The word after the name, where it has letters and digits and is neither a uuid nor a hash."""

COMMAND = re.compile(
    r"((?<![\w-])(?:(?:curl|wget|https?)(?![\w:-])[^\n]{0,200}?\s(?:-u|--(?:proxy-)?user)"
    r"[ =]?\s{0,4}+[\"']?[^\s:\"']{0,99}+:"
    r"|(?:mysql|mariadb)[\w-]{0,12}+\s[^\n]{0,200}?(?<=\s)-p"
    r"|(?:sshpass|mongo\w{0,8}+)\s[^\n]{0,200}?(?<=\s)-p\s{0,4}+"
    r"|redis-cli\s[^\n]{0,200}?(?<=\s)-a\s{1,4}+"
    r"|ldap[a-z]{2,10}+\s[^\n]{0,200}?(?<=\s)-w\s{1,4}+))"
    rf"{VALUE}",
    FLAGS,
)
"""The passwords that commands take by one letter."""

QUERY = re.compile(
    r"((?:[?&]key|(?<![\w-])(?:sig|x-(?:amz|goog)-(?:signature|credential)|(?:j|php|asp)?sess(?:ion)?id))=)"
    rf"{PART}++",
    FLAGS,
)
"""Signatures and keys in URLs, and the sessions of cookies."""

RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9/+_-]{19,}+")
"""What may be a key of no known form."""
AWS_LENGTH = 40
RANDOM_LENGTH = 20
RANDOM_CHANGES = 0.4

CARD_GAP = r"[ .\u00a0\u202f-]"
CARD = re.compile(
    rf"(?<!\d)[3-6](?:\d{{12,18}}|\d{{3}}{CARD_GAP}\d{{4}}{CARD_GAP}\d{{4}}{CARD_GAP}\d{{1,7}}"
    rf"|\d{{3}}{CARD_GAP}\d{{6}}{CARD_GAP}\d{{4,5}})(?!\d)",
    re.ASCII,
)


def redact(text: str) -> str:
    """The text with `[redacted]` in place of what looks like a secret; redacting it again changes nothing."""
    # what is known by its form comes first: what goes before it, or after, is the same then the second time
    text = CARD.sub(masked_if(is_card), PEM.sub(MASK, drop_unseen(text)))
    text = HOOK.sub(rf"\1{MASK}", text)
    text = HASHED.sub(MASK, JSON_WEB_TOKEN.sub(MASK, KNOWN.sub(MASK, text)))
    text = RUN.sub(masked_if(is_key), text)
    text = HEADER.sub(rf"\1{MASK}", text)
    text = ADDRESS_TOKEN.sub(rf"\1{MASK}@", ADDRESS.sub(rf"\1{MASK}@", text))
    text = PHRASE.sub(rf"\1{MASK}", text)
    for named in (ASSIGNED, FLAG, COMMAND):
        text = named.sub(mask_assigned, text)
    for before in (QUERY, NEXT):
        text = before.sub(rf"\1{MASK}", text)
    return BEARER.sub(rf"\1{MASK}", text)


def redact_values(value: Any) -> Any:
    """The same JSON with all its texts redacted, keys too, and masks for what stands under the name of a secret."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {redact(str(key)): redact_named(str(key), each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [redact_values(each) for each in value]
    return value


def redact_named(name: str, value: Any) -> Any:
    is_text = isinstance(value, str) and value
    return MASK if is_text and SECRET_NAME.search(name) else redact_values(value)


def mask_assigned(match: re.Match[str]) -> str:
    """Quotes stay, so that what was JSON is JSON."""
    name, escaped, in_escaped, single, in_single, *_ = match.groups()
    quote = escaped or single or match[6] or match[8] or ""
    inside = in_escaped or in_single
    # the backslashes before the quote that ends it are no part of it
    rest = "\\" * (len(inside) - len(inside.rstrip("\\"))) if inside else ""
    return f"{name}{quote}{MASK}{rest}"


def masked_if(is_secret: Callable[[str], bool]) -> Callable[[re.Match[str]], str]:
    return lambda match: MASK if is_secret(match[0]) else match[0]


def is_key(run: str) -> bool:
    """Forty mixed characters are taken for a secret of AWS; else one part between slashes has to look random."""
    is_aws = len(run) == AWS_LENGTH and not {"_", "-"} & set(run) and is_mixed(run)
    return is_aws or any(is_random(part) for part in re.split("[/+]", run))


def is_random(text: str) -> bool:
    """Whether capitals, small letters and digits change places as by chance (62 %); names of models and classes,
    `Meta-Llama-3-70B-Instruct`, change more seldom, or have their digits at the end."""
    kinds = [(each.isupper(), each.islower()) for each in text if each.isalnum()]
    changes = sum(one != other for one, other in pairwise(kinds))
    return (
        len(text) >= RANDOM_LENGTH
        and is_mixed(text.rstrip(string.digits))
        and changes >= RANDOM_CHANGES * (len(kinds) - 1)
    )


def is_mixed(text: str) -> bool:
    return all(any(test(character) for character in text) for test in (str.isupper, str.islower, str.isdecimal))


def is_card(text: str) -> bool:
    """By Luhn's check digit (ISO/IEC 7812-1)."""
    digits = [int(character) for character in reversed(text) if character.isdecimal()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[1::2]]
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0
