"""Secrets in stored texts that others may read."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.redaction import MASK, redact, redact_values

PRIVATE_KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA7\nq8Zk==\n-----END RSA PRIVATE KEY-----"
SECRETS = (
    "sk-proj-Qm3xV9pLw2Rk7TzB4nYd",
    "sk-ant-api03-Qm3xV9pLw2Rk7TzB4nYd",
    "sk_live_Qm3xV9pLw2Rk7TzB4nYd",
    "mem_Qm3xV9pLw2Rk7TzB4nYdQm3xV9pLw2Rk7TzB4nYd123",
    "ghp_Qm3xV9pLw2Rk7TzB4nYdQm3xV9pLw2Rk7TzB",
    "github_pat_11ABCDEFG0Qm3xV9pLw2Rk_7TzB4nYd",
    "glpat-Qm3xV9pLw2Rk7TzB4nYd",
    "AKIAIOSFODNN7EXAMPLE",
    "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "xoxb-123456789012-Qm3xV9pLw2Rk7TzB4nYd",
    "AIzaSyA-Qm3xV9pLw2Rk7TzB4nYdQm3xV9pLw2R",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N",
    "hvs.Qm3xV9pLw2Rk7TzB4nYd",
    "dop_v1_0a1b2c3d0a1b2c3d0a1b2c3d",
    "whsec_Qm3xV9pLw2Rk7TzB4nYd",
    "shpat_0a1b2c3d0a1b2c3d0a1b2c3d",
    "SK0a1b2c3d0a1b2c3d0a1b2c3d0a1b2c3d",
    "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs",
    "123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw",
    "$apr1$Qm3xV9pL$w2Rk7TzB4nYd",
    "b3BlbnNzaC1rZXktdjEAAAA",
    "Zq7XvTn2LkP9wRb4Hs8d",
    "4111 1111 1111 1111",
    "4111.1111.1111.1111",
    "4111\u00a01111\u00a01111\u00a01111",
    "5555555555554444",
    "3782-822463-10005",
    PRIVATE_KEY,
)
ASSIGNMENTS = (
    "password={}",
    "password: '{}'",
    "DB_PASSWORD={}",
    '{{"password": "{}", "n": 1}}',
    '{{"body": "{{\\"api_key\\": \\"{}\\"}}"}}',
    "params['token'] = '{}'",
    "https://example.org/a?api_key={}&page=2",
    "postgres://ana:{}@db.example.org:5432/app",
    "host=db password={} dbname=app",
    "Authorization: Bearer {}",
    "curl -H 'Authorization: Basic {}' https://example.org",
    "send bearer {} with it",
    "my password is {}, mind",
    "Cookie: session={}",
    "aws_secret_access_key => {}",
    "mysql --password {}",
    "mysql -u root -p{} app",
    "sshpass -p {} ssh host",
    "curl -u admin:{} https://example.org",
    "machine host login ana password {}",
    "use password {} there",
    "Password\n\n{}",
    "password:\n          {}",
    "password -> {}",
    "password：{}",
    "<password>{}</password>",
    "bindpw {}",
    "Passwort: {}",
    "пароль: {}",
    "mot de passe : {}",
    "contraseña: {}",
    "passphrase is correct horse {}",
    "the password was set to {}, mind",
    "password=abc,{}",
    "password=ab&{}&page=2",
    "https://example.org/a?key={}&page=2",
    "https://example.org/a?X-Amz-Signature={}&page=2",
    "https://example.org/a?sig={}%3D",
    "AccountKey={}==;EndpointSuffix=core",
    "sessionid={}; a=b",
    "https://hooks.slack.com/services/T0/B0/{}",
    "https://{}longertoken@example.org/a",
    "pass\u200bword={}",
)
GLUED = "longertoken"
"""What is of the value itself, after the word."""
HARMLESS = (
    "the password policy says twelve characters, and the secret garden has none",
    "password reset, pass rate, token count, api key rotation",
    "token 01a20059-00db-738f-921c-1b06c8efe1f1 of commit 3a35498",
    "secret 3a35498822ed34a4c2b21a5fd4cc4803482e3290",
    "sentence-transformers/all-MiniLM-L6-v2 and Meta-Llama-3-70B-Instruct",
    "TestWhatIsMaskedInPython311 in tests/memory/services/test_2.py",
    "git@github.com:ana/roses.git, ssh://git@github.com/ana/roses",
    "the monkey=7 and the keyboard: ana, docker run -u 1000:1000",
    "mkdir -p src/app2 && mysql -u root",
    "where is the archive that we keep our roses in?",
    "the token bucket of the rate limiter",
    "commit 3a35498822ed34a4c2b21a5fd4cc4803482e3290 broke passage 12",
    "invoice 4111111111111112 of 2026-05-04T12:00:00Z, run 01a20059-00db-738f-921c-1b06c8efe1f1",
    "https://example.org:8080/a/b?page=2#c",
    "the task-force met at 10:30: who came?",
)


@pytest.mark.parametrize("secret", SECRETS)
def test_a_text_in_the_form_of_a_secret_is_masked(secret: str) -> None:
    assert redact(f"why does ({secret}) fail?") == f"why does ({MASK}) fail?"


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_a_value_assigned_to_a_secret_name_is_masked_and_nothing_after_it(assignment: str) -> None:
    redacted = redact(assignment.format("tulip7garden"))

    assert "tulip7garden" not in redacted
    assert redacted.endswith(f"{MASK}{assignment.format(MASK).partition(MASK)[2].lstrip('%=3D').removeprefix(GLUED)}")


@pytest.mark.parametrize("text", HARMLESS)
def test_a_harmless_text_is_not_redacted(text: str) -> None:
    assert redact(text) == text


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=60)
BETWEEN = st.sampled_from([" ", "\n", "(", ", ", '"', " = ", ": "])


@given(WORDS, BETWEEN, st.sampled_from(SECRETS), BETWEEN, WORDS)
def test_no_planted_secret_survives_whatever_stands_around_it(
    before: str, opening: str, secret: str, closing: str, after: str
) -> None:
    assert secret not in redact(f"{before}{opening}{secret}{closing}{after}")


PIECES = st.sampled_from([
    *("password", "passphrase", "token", " is ", "-p", "--", "&", ",", "a=", "?key=", "curl -u "),
    *("login ", "x7x7x7x7x", "to "),
    *("Zq7XvTn2LkP9wRb4Hs8d", "//", "+", "\u200b", "$apr1$", " was set to ", "->", ">", "<"),
    *(" is ", "=", ": ", '"', "'", "\\", "://a:", "@", "/", " ", "\n", "Bearer ", "Cookie: ", "]"),
    *("sk-Qm3xV9pLw2Rk7TzB4nYd", "-----BEGIN A-----", "-----END A-----"),
    *("eyJhbGciOi.eyJzdWI", "4111111111111111", MASK),
])  # fmt: skip


@given(st.lists(st.one_of(PIECES, WORDS), max_size=12).map("".join))
def test_redacting_again_changes_nothing(text: str) -> None:
    once = redact(text)

    assert redact(once) == once


@given(
    st.recursive(
        WORDS | st.integers() | st.none(), lambda each: st.lists(each) | st.dictionaries(WORDS, each), max_leaves=6
    )
)
def test_json_stays_json_of_the_same_shape(value: object) -> None:
    assert type(json.loads(json.dumps(redact_values(value)))) is type(value)


def test_values_under_secret_names_and_secrets_used_as_names_are_masked() -> None:
    value = {"api_key": "tulip", "tokens": 12, "args": ["password=rose", {"sk-Qm3xV9pLw2Rk7TzB4nYd": True}]}

    assert redact_values(value) == {"api_key": MASK, "tokens": 12, "args": [f"password={MASK}", {MASK: True}]}


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    ["eyJ", "eyJa.", "4", "4 ", "4111 ", "-----BEGIN A-----", "-", 'token:"', "token\\\\", "password", "://a:b", "a",
     "://a:@", "sk-", "bearer ", "authorization: ", " ", "password        ", "\\", "A1a/", "_", "password is ", '"',
     "curl -u ", "curl ", "mysql -p",
     "sshpass ", "ldap", "password ", "token\n", "login password ", "--", "--a-", "?key=", ",a", "&a=", "token=,a",
     "passphrase is ", "Zq7X", "a/", "$1$", "://a7", "1:", "M", "hooks.slack.com/a/", "token > ", "-token "],
)  # fmt: skip
def test_redaction_takes_linear_time_for_any_text(piece: str) -> None:
    short, long = (piece * (characters // len(piece)) for characters in (6_000, 24_000))

    # the best of five, in turn: other processes are at work as well, now more, now less
    of_short, of_long = zip(*((seconds_of(short), seconds_of(long)) for _ in range(5)), strict=True)

    assert min(of_long) < max(0.05, 8 * min(of_short))


def seconds_of(text: str) -> float:
    """Return processor time."""
    begun = time.process_time()
    redact(text)
    return time.process_time() - begun
