"""Replies of chat-completion endpoints: the text of the answer, and the tokens that were counted."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from memory.errors import ProviderReplyInvalid

# no request has as many: what tells of more counts nothing
MAX_TOKENS = 100_000_000


class ReplyMessage(BaseModel):
    model_config = ConfigDict(strict=True)

    content: str | None = None
    refusal: str | None = None


class Choice(BaseModel):
    model_config = ConfigDict(strict=True)

    message: ReplyMessage
    finish_reason: str | None = None


class ChatReply(BaseModel):
    """`usage` as it came: an answer is not worse for an odd count."""

    model_config = ConfigDict(strict=True)

    choices: list[Choice]
    usage: Any = None


class Tokens(BaseModel):
    model_config = ConfigDict(strict=True)

    prompt_tokens: int = Field(default=0, ge=0, le=MAX_TOKENS)
    completion_tokens: int = Field(default=0, ge=0, le=MAX_TOKENS)


def parse_reply(body: bytes) -> ChatReply:
    """Parse a reply. Raises ProviderReplyInvalid."""
    try:
        return ChatReply.model_validate_json(body)
    except ValidationError:
        pass
    # outside the handler, or the original, which quotes the reply, would be its context in logs
    raise ProviderReplyInvalid("the reply is not the JSON of a chat completion")


def count_tokens(reply: ChatReply) -> Tokens:
    """Return the counted tokens; None if the endpoint reports none, or nonsense."""
    try:
        return Tokens.model_validate(reply.usage)
    except ValidationError:
        return Tokens()


def answer_text(reply: ChatReply) -> str:
    """Empty where the model wrote nothing. Raises ProviderReplyInvalid where asking again would not mend it."""
    if not reply.choices:
        raise ProviderReplyInvalid("the reply holds no choices")
    choice = reply.choices[0]
    if choice.finish_reason == "length":
        raise ProviderReplyInvalid(
            "the answer was cut off at its limit of tokens; LANGUAGE_MODEL_THINKING_TOKENS makes room for a model "
            "that thinks before it answers"
        )
    if choice.message.refusal or choice.finish_reason == "content_filter":
        raise ProviderReplyInvalid("the model, or its content filter, declined to answer")
    return choice.message.content or ""
