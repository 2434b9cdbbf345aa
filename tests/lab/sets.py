"""Small sets of questions for tests, in the formats of the files."""

import json
from pathlib import Path
from typing import Any

KITCHEN = [
    {"speaker": "Bo", "dia_id": "D1:1", "text": "The oven thermostat is broken.", "blip_caption": "a cold oven"},
    {"speaker": "Ines", "dia_id": "D1:2", "text": "Then we bake bread tomorrow."},
]
PORCH = [{"speaker": "Ines", "dia_id": "D2:3", "text": "I painted the porch green."}]


def locomo(*questions: tuple[str, list[str], int], **sessions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One sample, in two sessions unless others are given."""
    chosen = sessions or {"session_1": KITCHEN, "session_2": PORCH}
    times = {f"{name}_date_time": f"1:56 pm on {day} May, 2023" for day, name in enumerate(chosen, start=8)}
    qa = [{"question": text, "evidence": evidence, "category": category} for text, evidence, category in questions]
    return [{"sample_id": "house", "conversation": chosen | times, "qa": qa}]


def native(**fields: Any) -> dict[str, Any]:
    """One sample: a conversation, a memory of each kind, and no question unless given."""
    sample = {
        "name": "garden",
        "user": "mara",
        "asked_at": "2026-05-01T12:00:00Z",
        "conversations": [
            {
                "id": "c1",
                "time": "2026-03-02T09:00:00Z",
                "turns": [
                    {"key": "t1", "speaker": "Mara", "text": "The greenhouse heater is broken."},
                    {"key": "t2", "role": "assistant", "text": "A thermostat is on its way."},
                ],
            }
        ],
        "memories": [
            {"key": "f1", "kind": "fact", "text": "Mara waters ferns on Mondays.", "entities": ["e1"]},
            {"key": "e1", "kind": "entity", "text": "Mara Lindqvist", "type": "person", "aliases": ["Mara"]},
            {"key": "p1", "kind": "episode", "text": "The heater was repaired.", "time": "2026-03-09T09:00:00Z"},
            {"key": "n1", "kind": "context_entry", "text": "Orchids want bark.", "name": "orchids", "type": "fact"},
            {"key": "g1", "kind": "goal", "text": "Repot all orchids.", "blocked_by": ["g2"]},
            {"key": "g2", "kind": "goal", "text": "Buy orchid bark.", "status": "completed"},
            {"key": "s1", "kind": "strategy", "text": "Measure before replacing.", "tools": ["meter"], "successes": 2},
        ],
        "questions": [],
    }
    return {"samples": [sample | fields]}


def asked(text: str, *answers: str, **fields: Any) -> dict[str, Any]:
    return {"text": text, "answers": list(answers), "type": "keyword"} | fields


def write(folder: Path, document: Any) -> Path:
    path = folder / "questions.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path
