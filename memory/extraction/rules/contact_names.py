"""Numbers and email addresses that have several names: "my phone is …" and "my number is …" say the same."""

import re

_NUMBERS = {
    **dict.fromkeys(("phone", "number", "telephone", "telephone number"), "phone number"),
    **dict.fromkeys(("mobile", "mobile number", "mobile phone", "cell", "cell number", "cell phone"), "mobile number"),
}
_IS_NUMBER = re.compile(r"[+(]*\d[\d ()./-]{4,}")


def one_name_of_contact(what: str, value: str) -> str:
    """Return the one name of a number or an email address; empty for anything else, such as "the phone is a Pixel"."""
    called = _NUMBERS.get(what, "") if _IS_NUMBER.match(value) else ""
    return called or ("email address" if what in ("email", "e-mail") and "@" in value else "")
