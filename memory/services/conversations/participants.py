"""Participants of conversations: agents that may read them, and write into them with keys that are bound to them.

An agent takes part in what it opens. Keys that are bound to an agent join no other conversation by writing into it:
the agent that opened it, or a key that is bound to none, adds the agent. A key that is bound to none joins the agent
that it names by writing, as ever.
"""

from dataclasses import replace

from django.db import transaction
from django.db.models import QuerySet

from memory.audit import record_audit
from memory.errors import Forbidden, NotFound, Unprocessable
from memory.models import Account, Conversation, Participant
from memory.models.writer import insert_participants
from memory.owner import Owner
from memory.services.conversations.lifecycle import (
    UNKNOWN,
    find_conversation,
    is_valid_id,
    lock_visible_conversation,
    refuse_live_data,
    takes_part,
)


def check_participation(owner: Owner, conversation_id: str, *, must_exist: bool) -> None:
    """Raise NotFound if the owner's agent takes no part in a conversation, as for one that does not exist.

    Only owners that are limited to their conversations are checked. Without `must_exist`, an unused id passes.
    """
    if not owner.limited_to_conversations or takes_part(owner, conversation_id):
        return
    if must_exist or is_taken(owner, conversation_id):
        raise NotFound(UNKNOWN)
    refuse_live_data(owner, conversation_id)


def is_taken(owner: Owner, conversation_id: str) -> bool:
    if not is_valid_id(conversation_id):
        return False
    rows = Conversation.objects.filter(account_id=owner.account_id, conversation_id=conversation_id)
    return rows.exists() or Participant.objects.of_conversation(owner.account_id, conversation_id).exists()


def claim_conversation(owner: Owner, conversation_id: str) -> None:
    """Make a limited owner's agent take part before it writes to the live side of an id that nobody has used yet.

    Raises NotFound if another agent has taken it in the meantime.
    """
    if not owner.limited_to_conversations or takes_part(owner, conversation_id):
        return
    with transaction.atomic():
        # one claim at a time in an account: the first one gets the id
        Account.objects.select_for_update(no_key=True).only("id").get(id=owner.account_id)
        if is_taken(owner, conversation_id):
            raise NotFound(UNKNOWN)
        insert_participants(owner, conversation_ids=[conversation_id])


def check_conversation_user(owner: Owner, conversation_id: str, *, must_exist: bool) -> None:
    """Raise NotFound if the conversation is not one of the user that the owner is limited to, or has others' data.

    Without `must_exist`, an unused id passes. Other owners are not checked.
    """
    if not owner.limited_to_user:
        return
    rows = Conversation.objects.filter(account_id=owner.account_id, conversation_id=conversation_id)
    user_id = rows.values_list("user_id", flat=True).first() if is_valid_id(conversation_id) else None
    if user_id is None and not must_exist:
        refuse_live_data(owner, conversation_id)
    elif user_id != owner.user_id:
        raise NotFound(UNKNOWN)


def list_participants(owner: Owner, conversation_id: str) -> QuerySet[Participant]:
    """Return the participants of a conversation that the owner sees. Raises NotFound."""
    find_conversation(owner, conversation_id)
    return Participant.objects.of_conversation(owner.account_id, conversation_id)


def add_participant(owner: Owner, conversation_id: str, *, agent_id: str) -> Participant:
    """Let an agent take part; adding it twice changes nothing. Raises NotFound, and Forbidden as `lock_to_admit`."""
    with transaction.atomic():
        lock_to_admit(owner, conversation_id)
        rows = Participant.objects.of_conversation(owner.account_id, conversation_id).filter(agent_id=agent_id)
        if not rows.exists():
            insert_participants(replace(owner, agent_id=agent_id), conversation_ids=[conversation_id])
            audit_participants(owner, "add_participant", conversation_id, agent_id)
        return rows.get()


def remove_participant(owner: Owner, conversation_id: str, *, agent_id: str) -> None:
    """Stop an agent from reading a conversation, unless it opened it (Unprocessable).

    Raises NotFound, for the conversation or for the participant, and Forbidden as `lock_to_admit`.
    """
    with transaction.atomic():
        conversation = lock_to_admit(owner, conversation_id)
        if agent_id == conversation.agent_id:
            raise Unprocessable("the agent that opened a conversation always takes part in it")
        rows = Participant.objects.of_conversation(owner.account_id, conversation_id)
        if not rows.filter(agent_id=agent_id).delete()[0]:
            raise NotFound("no such participant")
        audit_participants(owner, "remove_participant", conversation_id, agent_id)


def lock_to_admit(owner: Owner, conversation_id: str) -> Conversation:
    """Lock a conversation to change who takes part. Raises NotFound, and Forbidden for a limited owner's guest."""
    conversation = lock_visible_conversation(owner, conversation_id)
    if owner.is_guest_of(conversation.agent_id):
        raise Forbidden("only the agent that opened the conversation, or a key of no agent, may say who takes part")
    return conversation


def audit_participants(owner: Owner, operation: str, conversation_id: str, agent_id: str) -> None:
    record_audit(
        owner,
        operation=operation,
        memory_type="conversation",
        conversation_id=conversation_id,
        affected_ids=[agent_id],
    )
