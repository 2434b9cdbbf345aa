"""`/key`: what the key of the request may do."""

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.fields import TextList
from memory.api.views import OwnerViewSet
from memory_project.http.answers import AnswerSerializer


class KeyAnswer(AnswerSerializer):
    prefix = serializers.CharField(help_text="Beginning of the key, by which the audit log names it.")
    scopes = TextList(help_text="What it may do: `read`, `write`, …")
    agent_id = serializers.CharField(help_text="Agent that it is bound to. Empty: none, so that requests name one.")
    user_id = serializers.CharField(help_text="User that it is bound to. Empty: none.")


class Keys(OwnerViewSet):
    """The key of the request itself, for programs that were given one."""

    operation_ids = {"retrieve": "get_key"}
    answer = KeyAnswer
    for_users = True

    def retrieve(self, request: Request) -> Response:
        """Return what the key of this request may do, and for whom.

        Requests need not name an agent or user that the key is bound to, and may not name another one.
        """
        return self.respond(self.credential, {"scopes": sorted(self.credential.scopes)})
