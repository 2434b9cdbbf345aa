"""Chat messages as agents send them, and permissions to view them."""

from typing import Any

from django.contrib.auth.models import Permission, User

from memory.extraction.messages import read_message
from memory.services.turns import TurnDraft

HOSTILE = "<script>alert(1)</script>\u202etfel\u202c <img src=x onerror=alert(1)> {{ 7 }} \u200b"


def sent(content: Any, *, role: str = "user", model: str = "", **fields: Any) -> TurnDraft:
    """A turn of a chat message; `fields` are the message's own, such as name or tool_calls."""
    return TurnDraft(message=read_message({"role": role, "content": content, **fields}), model=model)


def called(name: str, arguments: str, *, call_id: str = "call_1") -> dict[str, Any]:
    """A tool call."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def allow(username: str, *codenames: str) -> None:
    User.objects.get(username=username).user_permissions.add(*Permission.objects.filter(codename__in=codenames))
