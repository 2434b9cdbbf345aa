"""Sentences about what a recall or a search did without (`degraded` in answers of the API)."""

SENTENCES = {
    "embedder_unavailable": "The embedder does not answer. The results were found by words, not by meaning.",
    "embedding_pending": "Some memories still wait for their vector. They were found by words.",
    "embedding_model_differs": "The settings name another embedding model than the one that serves searches. "
    "Run `manage.py reembed`, or set them back.",
    "embedding_model_unknown": "No memory has a vector of the question's model. The results were found by words.",
    "mode_not_supported": "The mode was left out: whole vectors were compared, or passages searched without an index.",
    "common_words": "The question consists of common words only. The search by words looked at 20,000 memories.",
}
ENDINGS = {
    "_deadline": "ran out of time, and what it had not found by then is missing.",
    "_failed": "failed, and what it would have found is missing.",
    "_unavailable": "has no provider, and was left out.",
}
"""The ends of sentences about a technique, by the end of the name."""


def describe_degradation(name: str) -> str:
    """Return a sentence on what a name in `degraded` means; the name itself if it is not known."""
    if name in SENTENCES:
        return SENTENCES[name]
    for ending, sentence in ENDINGS.items():
        if name.endswith(ending):
            return f"The technique {name.removesuffix(ending)} {sentence}"
    return name
