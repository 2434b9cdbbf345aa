"""Permissions of bound keys: they name no conversation of another user, and none in which their agent takes no part."""

from collections.abc import Mapping
from typing import Any

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from memory.owner import Owner
from memory.services.conversations.participants import (
    check_conversation_user,
    check_participation,
    claim_conversation,
)
from memory_project.http.credentials import Credential, get_credential, required_scope

CONVERSATION_NAMES = ("conversation_id", "continues")
"""Names of fields and parameters that hold the id of a conversation."""


class OwnConversations(BasePermission):
    """Limits bound keys to their conversations, wherever the path or the query names one.

    They are those of the user that the key is bound to, and those in which the agent that it is bound to takes part.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        credential = get_credential(request)
        if credential is None or not (credential.user_id or credential.agent_id):
            return True
        credential.acting_agent(request.query_params.get("agent_id", ""))
        credential.acting_user(request.query_params.get("user_id", ""))
        owner = limited_owner(credential)
        is_read = required_scope(view, request.method or "GET") == "read"
        check_named_conversations(owner, request.query_params, must_exist=True)
        if conversation_id := view.kwargs.get("conversation_id"):
            check_participation(owner, conversation_id, must_exist=is_read)
            check_conversation_user(owner, conversation_id, must_exist=is_read or not view.opens_conversations)
            if not is_read and not view.opens_conversations:
                claim_conversation(owner, conversation_id)
        return True


def limited_owner(credential: Credential) -> Owner:
    """Return the owner whose conversations a bound key may name."""
    return Owner(
        account_id=credential.account_id,
        agent_id=credential.agent_id,
        user_id=credential.user_id,
        limited_to_user=bool(credential.user_id),
        limited_to_conversations=bool(credential.agent_id),
    )


def check_named_conversations(owner: Owner, named: Mapping[str, Any], *, must_exist: bool) -> None:
    """Check the conversations that a body or a query names.

    With `must_exist`, the agent of a limited owner takes part in the conversation already. What a conversation
    continues is checked by the service, which answers alike for what the owner does not see and for what is not there.
    """
    for name in CONVERSATION_NAMES:
        if conversation_id := named.get(name):
            if name == "conversation_id":
                check_participation(owner, conversation_id, must_exist=must_exist)
            check_conversation_user(owner, conversation_id, must_exist=False)
