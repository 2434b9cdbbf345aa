"""Specific words: numbers, times, names and technical terms, by which a phrase says something that can be looked up."""

import re

from memory.dates import MONTHS, WEEKDAYS
from memory.extraction.rules.words import COMMON_CAPITALS, LANGUAGES, words

TECHNOLOGIES = words(
    "airflow ansible argo argocd arrow asana astro aurora aws axum azure babel bash bazel bitbucket "
    "caddy cassandra celery chrome circleci clickhouse cloudflare cloudfront cmake composer confluence consul "
    "datadog dbt deno discord django docker dynamodb elasticsearch eslint fastapi figma firebase "
    "firefox flutter flyway gcp gcs git github gitlab godot golang gradle grafana graphql grpc gunicorn "
    "hadoop heroku hetzner honeycomb htmx jasmine java javascript jenkins jest jinja jira json jupyter jwt kafka "
    "keycloak kotlin kubernetes k8s lambda laravel linux liquibase logback loki macos mariadb markdown maven "
    "minio mongo mongodb mypy mysql nats neovim netlify nextcloud nextjs nginx node nomad npm numpy nuxt "
    "oauth okta openapi opensearch opsgenie pagerduty pandas parquet php pino playwright pnpm podman "
    "poetry polars postgres postgresql postmark prettier prisma prometheus protobuf puppeteer pydantic pyenv pylint "
    "pyright pytest python pytorch rabbitmq rails react redis redshift redux rollup rsync ruby ruff rust s3 "
    "sass scala selenium sendgrid sentry sidekiq slack snowflake solr sqlalchemy sqlite sqs ssh storybook "
    "bandit biome codecov codespell coverage conda doxygen esbuild flake8 gitleaks gulp hatch hypothesis isort junit "
    "karma luarocks memcached mocha nox opentelemetry pdm phpunit pip pipx pre-commit renovate rspec rubocop semgrep "
    "stripe supabase svelte systemd tailwind telegram tensorflow terraform toml tox traefik trello turbopack "
    "twilio typescript typst ubuntu unreal uv valkey vault vercel vim vite vitest vscode vue webpack whatsapp "
    "windows xml yaml yarn yjs zig zod zsh tabs spaces utc gmt cet pst est html css sql csv pdf xlsx"
)
"""Names of products, languages and formats, which people write in lower case too."""

_UNITS = (
    "s|sec|secs|seconds?|ms|min|mins|minutes?|h|hrs?|hours?|days?|weeks?|months?|years?|kb|mb|gb|tb|kib|mib|gib|ghz|mhz"
    "|hz|px|dpi|%|percent|per cent|euros?|eur|dollars?|usd|bucks|pounds?|gbp|francs?|chf|cents?|k|m|km|cm|mm|kg|g"
    "|kilos?"
    "|grams?|lit(?:er|re)s?|ml|degrees?|people|rows|requests|workers|replicas"
)
_NUMBERS = "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty|sixty|ninety"
_COUNTED = rf"(?:\b(?:{_NUMBERS})|\bone(?= (?:{_UNITS})\b)|\bhalf past)\b"
_TIMES = (
    rf"(?:once|twice|three times) (?:a|per|every) \w+|(?:{'|'.join(WEEKDAYS)})s?|weekdays?|weekends?|daily|nightly"
    rf"|hourly|weekly|monthly|quarterly|yearly|noon|midnight"
    rf"|every (?:other )?(?:day|night|week|month|hour|quarter|morning|evening|sprint|release|commit|push|deploy|merge"
    rf"|year)|"
    rf"{'|'.join(month.lower() for month in MONTHS if month not in ('May', 'March'))}"
)
_SIGNED = re.compile(
    r"%\w+|~/\S+|[^\s\w]?\w[\w.-]*(?:[_/@:#]|://)\w[^\s,;]*|\w+\.\w[\w.]*|\.\w+|/\w[\w./{}:-]*|--?\w[\w-]*|\w+=\S+"
    r"|[@#]\w[\w.-]*"
)
_MIXED = re.compile(r"[a-z]+[A-Z]\w*|[A-Z]{2,}\w*|[A-Za-z]*\d\w*|\w+-\d\w*")
_TIMED = re.compile(rf"\b(?:{_TIMES})\b", re.IGNORECASE)
_NUMBERED = re.compile(_COUNTED, re.IGNORECASE)
_ADDRESS = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+|\+?\d[\d ()/-]{5,}\d|https?://\S+|#[\w-]+|@[\w.-]+")
_STORED = re.compile(
    r"\b(?:bucket|table|topic|queue|channel|folder|branch|schema|dataset|repo|namespace|index|stream)"
    r" [\w-]+[-_/.]\w[\w-]*"
)
_BARE = ".,;:!?…\"'()"
SPOKEN_CAPITALS = frozenset({"OK", "LOL", "OMG", "FYI", "BTW", "TBH", "WTF", "ASAP", "IMO", "PS", "NEWS", "YES", "NO"})

MACHINERY = (
    r"(?i:the (?:jobs?|servers?|builds?|tests?|scripts?|pods?|containers?|services?|deployments?|deploys?|releases?"
    r"|pipelines?|runs?|quer(?:y|ies)|migrations?|process(?:es)?|daemons?|workers?|instances?|clusters?|nodes?|vms?"
    r"|databases?|apps?|imports?|exports?|backups?|uploads?|downloads?|installs?|installers?|updates?|upgrades?"
    r"|sync|crons?|crawlers?|queues?|threads?|workflows?|transactions?|cache|kernel|notebook|emulator|debugger"
    r"|compiler|proxy|api|branch|merge|rebase|refactor|refactoring)"
    r"(?=[.,;:!)]|$| (?:and|but|so|again|after|before|because|since|when|now|with|on|in|then|yesterday|today)\b))"
)
"""Pattern of something at work without a word that says which, as in "Cancelled the job": it may be anybody who did."""


def is_technical(word: str) -> bool:
    """Return True for an identifier, path, address, version or a known technology, in whatever case."""
    bare = word.strip(_BARE)
    if bare in SPOKEN_CAPITALS or not bare:
        return False
    return (
        bare.lower() in TECHNOLOGIES
        or _SIGNED.fullmatch(bare) is not None
        or _SIGNED.fullmatch(word.rstrip(_BARE)) is not None
        or _MIXED.fullmatch(bare) is not None
    )


def is_capital(word: str) -> bool:
    """Return True for a capitalized word that may be a name."""
    bare = re.sub(r"'s?$", "", word.strip(_BARE))
    is_common = bare in COMMON_CAPITALS and bare not in {"Christmas", "Easter"}
    return bare[:1].isupper() and (bare in LANGUAGES or not is_common) and bare not in SPOKEN_CAPITALS


def is_specific(phrase: str) -> bool:
    """Return True if a phrase has a number, a time, a name, or a technical term. It does not begin a sentence."""
    if _TIMED.search(phrase) or _NUMBERED.search(phrase) or _STORED.search(phrase):
        return True
    return any(any(map(str.isdecimal, word)) or is_technical(word) or is_capital(word) for word in phrase.split())


def is_address(phrase: str) -> bool:
    """Return True for an e-mail address, a telephone number, a link, a channel or a handle."""
    return _ADDRESS.fullmatch(phrase.strip()) is not None


_SMALL_MONTH = re.compile(
    rf"(?<=\d )(?:{'|'.join(month.lower() for month in MONTHS)})\b"
    rf"|\b(?:{'|'.join(month.lower() for month in MONTHS)})(?= \d{{1,2}}\b)|\b(?:{'|'.join(WEEKDAYS)})(?=s?\b)"
)
_SHORT = "|".join(month[:3].lower() for month in MONTHS)
_SHORT_MONTH = re.compile(rf"(?<=\d )(?:{_SHORT})\b|\b(?:{_SHORT})(?= \d{{1,2}}\b)")
_ORDINAL_MONTH = re.compile(
    rf"(?<=\d(?:st|nd|rd|th) )(?:of )?(?:{'|'.join(month.lower() for month in MONTHS)}|{_SHORT})\b"
)


_DAYS_OF_MONTH = re.compile(
    rf"\b(?P<month>{'|'.join(MONTHS)}|(?:{'|'.join(month[:3] for month in MONTHS)})\b\.?) "
    r"(?P<days>\d{1,2}(?:st|nd|rd|th)?(?: and |-|–)\d{1,2}(?:st|nd|rd|th)?)(?:,? (?P<year>(?:19|20)\d\d))?"
    r"(?=$|[.,;!?)](?!\d)| (?:in|at|and|so|but|we|I|with|for|this|next)\b)"
)


def capitalize_dates(text: str) -> str:
    """Return a text with its months (next to a day) and weekdays capitalized, and days before their month.

    So are dates read: "12 and 13 December" for "dec 12 and 13".
    """
    text = _SHORT_MONTH.sub(lambda match: match[0].capitalize(), text)
    text = _SMALL_MONTH.sub(lambda match: match[0].capitalize(), text)
    text = _DAYS_OF_MONTH.sub(days_before_month, text)
    return _ORDINAL_MONTH.sub(lambda match: match[0].title().replace("Of ", "of "), text)


def days_before_month(match: re.Match[str]) -> str:
    month = next(month for month in MONTHS if month.startswith(match["month"].rstrip(".")))
    return " ".join(filter(None, (match["days"], month, match["year"])))
