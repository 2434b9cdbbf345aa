"""Permissions of keys that are bound to a user: they may name no other user, and no conversation of another one."""

from collections.abc import Mapping
from typing import Any

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from memory.owner import Owner
from memory.services.conversations.lifecycle import check_conversation_user
from memory_project.http.credentials import get_credential, required_scope

CONVERSATION_NAMES = ("conversation_id", "continues")
"""Names of fields and parameters that hold the id of a conversation."""


class UsersConversations(BasePermission):
    """Limits keys that are bound to a user to this user's conversations, wherever the path or the query names one."""

    def has_permission(self, request: Request, view: Any) -> bool:
        credential = get_credential(request)
        if credential is None or not credential.user_id:
            return True
        credential.acting_user(request.query_params.get("user_id", ""))
        owner = Owner(account_id=credential.account_id, user_id=credential.user_id, limited_to_user=True)
        is_read = required_scope(view, request.method or "GET") == "read"
        check_named_conversations(owner, request.query_params)
        if conversation_id := view.kwargs.get("conversation_id"):
            check_conversation_user(owner, conversation_id, must_exist=is_read or not view.opens_conversations)
        return True


def check_named_conversations(owner: Owner, named: Mapping[str, Any]) -> None:
    """Check the conversations that a body or a query names. They need not exist (see `check_conversation_user`)."""
    for name in CONVERSATION_NAMES:
        if conversation_id := named.get(name):
            check_conversation_user(owner, conversation_id, must_exist=False)
