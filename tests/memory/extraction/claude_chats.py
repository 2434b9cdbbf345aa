"""Chats as Claude's archives have them."""

from typing import Any

USE = {"type": "tool_use", "id": "toolu_1", "name": "web_search", "input": {"query": "seals"}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "Seal, 4 EUR"}]}
TIMES = {"start_timestamp": "2025-03-02T08:30:00.123456Z", "stop_timestamp": None}


def text_block(text: str, **fields: Any) -> dict[str, Any]:
    return TIMES | {"type": "text", "text": text, "citations": []} | fields


def said(sender: str, text: str, *blocks: dict[str, Any], **fields: Any) -> dict[str, Any]:
    body = {"uuid": f"m-{text or 'empty'}"[:100], "text": text, "content": list(blocks) or [text_block(text)]}
    times = {"created_at": "2025-03-02T08:30:00.123456Z", "updated_at": "2025-03-02T08:30:00.123456Z"}
    return body | {"sender": sender} | times | {"attachments": [], "files": []} | fields


def chat(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    head = {"uuid": "chat-1", "name": "Pumps", "created_at": "2025-03-02T08:30:00Z", "account": {"uuid": "a-1"}}
    return head | {"chat_messages": list(messages)} | fields
