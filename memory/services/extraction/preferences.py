"""Storing the preferences that were extracted from turns, after all other items of these turns."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from memory.extraction.knowledge import ExtractedPreference
from memory.owner import Owner
from memory.services.extraction.outcomes import ExtractionInput, ItemOutcome, StoredItems, store_alone
from memory.services.profiles import forget_ended_preferences, learn_preferences, read_preferences


def store_all_preferences(
    owner: Owner, stored: Sequence[tuple[ExtractionInput, StoredItems]], *, known: dict[str, Any], now: datetime
) -> None:
    """Store preferences in the user's profile, which had the `known` ones, and withdraw those of superseded facts."""
    superseding = [items for _inputs, items in stored if items.counts.figures["facts_superseded"]]
    if superseding:
        forget_ended_preferences(owner, now=now)
    for inputs, items in stored:
        store_preferences(inputs, items, known=known)
    if superseding:
        # facts of these extractions were superseded, too
        forget_ended_preferences(owner, now=now)
        superseding[0].counts.figures["preferences_withdrawn"] += len(known.keys() - read_preferences(owner).keys())


def store_preferences(inputs: ExtractionInput, items: StoredItems, *, known: dict[str, Any]) -> None:
    """Store preferences in the user's profile, which had the `known` ones. Without a user they belong to nobody."""
    preferences = inputs.extraction.preferences
    if not inputs.owner.user_id:
        items.counts.refuse("nobody", len(preferences))
        return
    for preference in preferences:
        if preference.fact in items.rejected:
            items.counts.refuse("rejected")
        elif preference.fact is not None and preference.fact not in items.facts | dict.fromkeys(items.failed):
            # its fact was refused, or waits for staff
            items.counts.refuse("unbelieved")
        elif items.can_store("preferences", () if preference.fact is None else (preference.fact,)):
            with store_alone(items, "preferences") as single:
                single.result = learn_preference(inputs, items, preference)
            if not isinstance(single.result, ItemOutcome):
                count_preference(items, preference, known, is_stored=bool(single.result))


def count_preference(
    items: StoredItems, preference: ExtractedPreference, known: dict[str, Any], *, is_stored: bool
) -> None:
    """Count a preference. One that was not stored is known already, or is set otherwise by hand or by a later turn."""
    topic = preference.topic.casefold()
    if known.get(topic) == preference.value:
        items.counts.count("preferences", ItemOutcome.MERGED)
    elif is_stored:
        items.counts.figures["preferences_replaced"] += topic in known
        known[topic] = preference.value
        items.counts.count("preferences", ItemOutcome.LEARNT)
    else:
        items.counts.refuse("kept")


def learn_preference(inputs: ExtractionInput, items: StoredItems, preference: ExtractedPreference) -> list[str]:
    fact_id = items.facts.get(preference.fact) if preference.fact is not None else None
    provenance = {
        "fact_id": None if fact_id is None else str(fact_id),
        "turn_ids": [str(turn_id) for turn_id in inputs.turn_ids(preference.evidence)],
        "at": inputs.time_of(preference.evidence).isoformat(),
    }
    preferences = {preference.topic: preference.value}
    return learn_preferences(inputs.owner, inputs.owner.user_id, preferences, provenance=provenance, now=inputs.now)
