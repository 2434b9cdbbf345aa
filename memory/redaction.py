"""Masks secrets in stored texts that others may read: what looks like a key, a password or the number of a card.

In doubt a text is masked, but mere talk about secrets, UUIDs and commit hashes stay. Not masked are IBANs, social
security numbers and one-time codes, which look like ordinary numbers, and a password that nothing names. Invisible
characters are dropped, since they would hide a name from the patterns.

Each pattern begins with something rare and never backtracks, or reads a fixed number of characters at most, so that the
time grows linearly with any text.
"""

import re
import string
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from memory.invisible_characters import drop_invisible

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
"""Keys of known forms, line by line: OpenAI, Anthropic and similar, Stripe, this service; GitHub, GitLab, Hugging Face,
npm, PyPI; AWS, Twilio; Slack, Google, SendGrid; Vault, DigitalOcean, Docker, Shopify; Discord, Telegram, OpenSSH."""

HASHED = re.compile(r"\$(?:apr1|2[abxy]|[156y]|argon2\w{1,2})\$[\w./$+=,-]{8,}+", re.ASCII)
"""The hash of a password (crypt(3), Argon2), which can be attacked by guessing."""

WEBHOOK = re.compile(
    r"(hooks\.slack\.com/[a-z]{1,20}/|discord(?:app)?\.com/api/webhooks/)[^\s\"'<>\\)]++", re.IGNORECASE | re.ASCII
)

JSON_WEB_TOKEN = re.compile(r"(?<![\w-])eyJ[\w-]{5,}+\.[\w-]{5,}+(?:\.[\w-]*+)*+", re.ASCII)

BEARER = re.compile(r"(?<![a-z0-9])(bearer\s{1,8})[a-z0-9._~+/=-]{8,}+", re.IGNORECASE | re.ASCII)

HTTP_HEADER = re.compile(
    r"((?<![a-z])(?:authorization|set-cookie|cookie)[\"']?\s{0,4}[:=]\s{0,4}[\"']?)"
    r"(?:[a-z]{3,10} +)?[^\s\"',;][^\n\"']*+",
    re.IGNORECASE,
)
"""The value of a header, to the end of its line or quotes."""

URL_PASSWORD = re.compile(r"(://[^\s/@:\"'<>]*+:)[^\s/\"'<>]+@")
"""The password of a URL, up to the last @ before its path."""

URL_TOKEN = re.compile(r"(://)(?=[^\s/@:\"'<>\d]{0,40}+\d)[^\s/@:\"'<>]{16,}+@")
"""A token in place of the user of a URL."""

CREDENTIAL_WORDS = (
    r"passwor[dt]|passwd|pass[ _-]?phrase|passcode|pwd|(?<![a-z])(?:bind|root|db|user|admin)?pw(?![a-z])"
    r"|mot de passe|contrase(?:ñ|n|n\u0303)a|wachtwoord|lösenord|hasło|şifre|парол[ья]|密码|密碼|パスワード"
)
KEY_WORDS = (
    r"(?:private|a(?:pi|ccess|ccount)|signing|encryption|client|shared[ _-]?access)[ _-]?key"
    r"|secret|token|credential|(?<![a-z])p(?:ass|in)(?![a-z])"
)
SECRET_NAMES = rf"(?:{CREDENTIAL_WORDS}|{KEY_WORDS})"
SECRET_NAME = re.compile(SECRET_NAMES, re.IGNORECASE)

VALUE_CHARACTER = r"(?:[^\s,;&\"'<>\\]|[,;&](?=[^\s\"'<>\\])(?![a-z_][\w.-]{0,40}+=[^\s=]))"
"""One character of a value without quotes. A comma that separates, at the end or before `name=value`, is none."""

VALUE = (
    r"(?:(\\{1,8}\")([^\"]++)|(\\{1,8}')([^']++)|(\")((?:\\.|[^\"\\])++)|(')((?:\\.|[^'\\])++)"
    rf"|({VALUE_CHARACTER}++))"
)
FLAGS = re.IGNORECASE | re.DOTALL

ASSIGNMENT_VERB = (
    r"\s{1,4}+(?:is|was|ist|lautet|est|es)\s{1,4}+(?:(?:now|still|set|reset|changed)\s{1,4}+){0,2}+(?:to\s{1,4}+)?+"
)
ASSIGNMENT_SIGN = r"(?:\\{0,8}+[\"'])?\]?(?:>|\s*+(?:=>|->|→|:=|={1,3}+|[:：＝])\s*+)"
ASSIGNED = re.compile(rf"({SECRET_NAMES}(?:[\w-]{{0,30}}+{ASSIGNMENT_SIGN}|{ASSIGNMENT_VERB})){VALUE}", FLAGS)
"""A value in quotes, or one word, in text, JSON (in JSON), XML, query or connection strings, environment files."""

PHRASE = re.compile(
    r"(pass[ _-]?phrase\s{0,4}+(?:[:=：]|(?:is|was)\s)\s{0,4}+)(?!\s)(?:[^\n\"'<>\\,;]|[,;](?=[^\s\"'<>\\]))++", FLAGS
)
"""A passphrase of several words, to the end of the line or a comma."""

COMMAND_OPTION = re.compile(
    rf"((?<![\w-])--?(?:[a-z]{{1,20}}-){{0,3}}{SECRET_NAMES}[\w-]{{0,30}}+[ \t]++"
    r"|(?<![a-z])login\s++\S++\s++password\s++)"
    rf"(?!-){VALUE}",
    FLAGS,
)
"""The value of an option such as `--password X`, and of lines of .netrc."""

NEXT_WORD = re.compile(
    rf"({SECRET_NAMES}[\w-]{{0,30}}+\s++)(?=[^\s\d]{{0,60}}+\d)(?=[^\sa-z]{{0,60}}+[a-z])"
    r"(?![0-9a-f]{8}-[0-9a-f]{4}-|[0-9a-f]{7,64}(?![\w-]))(?=[^\s\"'<>\\]{8})"
    rf"{VALUE_CHARACTER}++",
    FLAGS,
)
"""The word after the name of a secret if it has letters and digits and is neither a UUID nor a hash."""

SHORT_OPTION = re.compile(
    r"((?<![\w-])(?:(?:curl|wget|https?)(?![\w:-])[^\n]{0,200}?\s(?:-u|--(?:proxy-)?user)"
    r"[ =]?\s{0,4}+[\"']?[^\s:\"']{0,99}+:"
    r"|(?:mysql|mariadb)[\w-]{0,12}+\s[^\n]{0,200}?(?<=\s)-p"
    r"|(?:sshpass|mongo\w{0,8}+)\s[^\n]{0,200}?(?<=\s)-p\s{0,4}+"
    r"|redis-cli\s[^\n]{0,200}?(?<=\s)-a\s{1,4}+"
    r"|ldap[a-z]{2,10}+\s[^\n]{0,200}?(?<=\s)-w\s{1,4}+))"
    rf"{VALUE}",
    FLAGS,
)
"""Passwords that commands take by an option of one letter."""

URL_SIGNATURE = re.compile(
    r"((?:[?&]key|(?<![\w-])(?:sig|x-(?:amz|goog)-(?:signature|credential)|(?:j|php|asp)?sess(?:ion)?id))=)"
    rf"{VALUE_CHARACTER}++",
    FLAGS,
)
"""Signatures and keys in URLs, and the sessions of cookies."""

KEY_LIKE = re.compile(r"[A-Za-z0-9][A-Za-z0-9/+_-]{19,}+")
"""A run of characters that may be a key of an unknown form."""
AWS_SECRET_LENGTH = 40
MIN_RANDOM_LENGTH = 20
MIN_CASE_CHANGE_SHARE = 0.4

CARD_GAP = r"[ .\u00a0\u202f-]"
CARD = re.compile(
    rf"(?<!\d)[3-6](?:\d{{12,18}}|\d{{3}}{CARD_GAP}\d{{4}}{CARD_GAP}\d{{4}}{CARD_GAP}\d{{1,7}}"
    rf"|\d{{3}}{CARD_GAP}\d{{6}}{CARD_GAP}\d{{4,5}})(?!\d)",
    re.ASCII,
)


def redact(text: str) -> str:
    """Replace what looks like a secret by `[redacted]`. Redacting the result again changes nothing."""
    # known forms come first, so that a second run finds the same text around them
    text = redact_known_forms(drop_invisible(text))
    text = HTTP_HEADER.sub(rf"\1{MASK}", text)
    text = URL_TOKEN.sub(rf"\1{MASK}@", URL_PASSWORD.sub(rf"\1{MASK}@", text))
    text = PHRASE.sub(rf"\1{MASK}", text)
    for named in (ASSIGNED, COMMAND_OPTION, SHORT_OPTION):
        text = named.sub(mask_assigned, text)
    for before in (URL_SIGNATURE, NEXT_WORD):
        text = before.sub(rf"\1{MASK}", text)
    return BEARER.sub(rf"\1{MASK}", text)


def redact_known_forms(text: str) -> str:
    """Replace what is a secret by its form alone: numbers of cards, keys, tokens."""
    text = CARD.sub(mask_if(is_card), PEM.sub(MASK, text))
    text = WEBHOOK.sub(rf"\1{MASK}", text)
    text = HASHED.sub(MASK, JSON_WEB_TOKEN.sub(MASK, KNOWN.sub(MASK, text)))
    return KEY_LIKE.sub(mask_if(is_key), text)


def redact_address(text: str) -> str:
    """Redact the passwords, tokens and signatures of an address, and leave its path, which says what it is about."""
    text = KNOWN.sub(MASK, WEBHOOK.sub(rf"\1{MASK}", drop_invisible(text)))
    text = URL_TOKEN.sub(rf"\1{MASK}@", URL_PASSWORD.sub(rf"\1{MASK}@", text))
    return URL_SIGNATURE.sub(rf"\1{MASK}", ASSIGNED.sub(mask_assigned, text))


def holds_secret(text: str) -> bool:
    """Return True if something in the text looks like a secret."""
    return redact(text).count(MASK) > text.count(MASK)


def redact_values(value: Any) -> Any:
    """Redact all texts in JSON, keys too, and mask texts under the name of a secret."""
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
    """Mask a value but keep its quotes, so that JSON stays JSON."""
    name, escaped, in_escaped, single, in_single, *_ = match.groups()
    quote = escaped or single or match[6] or match[8] or ""
    inside = in_escaped or in_single
    # backslashes before the closing quote are not part of the value
    rest = "\\" * (len(inside) - len(inside.rstrip("\\"))) if inside else ""
    return f"{name}{quote}{MASK}{rest}"


def mask_if(is_secret: Callable[[str], bool]) -> Callable[[re.Match[str]], str]:
    return lambda match: MASK if is_secret(match[0]) else match[0]


def is_key(run: str) -> bool:
    """Return True for 40 mixed characters, an AWS secret, or if a part between slashes looks random."""
    is_aws = len(run) == AWS_SECRET_LENGTH and not {"_", "-"} & set(run) and is_mixed(run)
    return is_aws or any(is_random(part) for part in re.split("[/+]", run))


def is_random(text: str) -> bool:
    """Return True if upper case, lower case and digits alternate about as often as by chance (62 %).

    In names of models and classes, such as `Meta-Llama-3-70B-Instruct`, they alternate less, or the digits are last.
    """
    kinds = [(each.isupper(), each.islower()) for each in text if each.isalnum()]
    changes = sum(one != other for one, other in pairwise(kinds))
    return (
        len(text) >= MIN_RANDOM_LENGTH
        and is_mixed(text.rstrip(string.digits))
        and changes >= MIN_CASE_CHANGE_SHARE * (len(kinds) - 1)
    )


def is_mixed(text: str) -> bool:
    return all(any(test(character) for character in text) for test in (str.isupper, str.islower, str.isdecimal))


def is_card(text: str) -> bool:
    """Return True if Luhn's check digit is right (ISO/IEC 7812-1)."""
    digits = [int(character) for character in reversed(text) if character.isdecimal()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[1::2]]
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0
