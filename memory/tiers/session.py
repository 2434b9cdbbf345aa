"""Session memory: a conversation's live side in Redis, under the documented keys behind the account's prefix."""

from memory_project.redis import SessionPlace


class SessionMemory:
    """The session of one conversation, shared by the agents that take part. Every call is one round trip."""

    def __init__(self, place: SessionPlace) -> None:
        self._place = place

    def clear_session(self) -> None:
        """Forget turns, thoughts, values and the active goal."""
        raise NotImplementedError
