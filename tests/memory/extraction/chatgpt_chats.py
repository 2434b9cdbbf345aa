"""Chats as ChatGPT's archives have them."""

from datetime import UTC, datetime
from typing import Any

SAID_AT = datetime(2024, 2, 29, 12, 0, 0, 250_000, tzinfo=UTC)
IMAGE = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-1", "width": 640, "height": 480}


def said(role: str, *parts: Any, **fields: Any) -> dict[str, Any]:
    content = {"content_type": "text", "parts": list(parts)}
    message = {"author": {"role": role, "name": None, "metadata": {}}, "create_time": SAID_AT.timestamp()}
    return (
        message | {"content": content, "status": "finished_successfully", "metadata": {}, "recipient": "all"} | fields
    )


def node(node_id: str, parent: str | None, message: dict[str, Any] | None) -> dict[str, Any]:
    body = message and {"id": node_id} | message
    return {node_id: {"id": node_id, "message": body, "parent": parent, "children": []}}


def chat(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """One branch: the root, which says nothing, then the messages m-0, m-1, …"""
    mapping = node("root", None, None)
    for number, message in enumerate(messages):
        mapping |= node(f"m-{number}", f"m-{number - 1}" if number else "root", message)
    current = f"m-{len(messages) - 1}" if messages else "root"
    head = {"title": "Pumps", "create_time": 1.5, "conversation_id": "chat-1", "id": "chat-1", "current_node": current}
    return head | {"mapping": mapping} | fields
