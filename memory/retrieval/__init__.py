"""Retrieval: from a question to ranked memories, and all other reads over several kinds. Writes nothing.

A recall (`pipeline.run_pipeline`) passes a `Query` through the stages of a `Plan` (`plans`, `techniques`):

    rewrite    rewriters/       find names, times and other words in the question
    embed      services.recall  get the vector of the question, and of its expansions
    analyze    query_analysis   weigh terms, find named entities, lineage, open goals    1st statement
    retrieve   retrievers/      find candidates; `gathering` runs all and scores them    2nd statement
    fuse       ranking/         one relevance out of words, meaning and other signals
    score      scorers          factors for time, scope, work, trust; links (`lookups`)  3rd statement
    rerank     providers        the order of a cross-encoder, if one is configured
    select     selectors        join duplicates, spread conversations, put successors first
    pack       packing          for prompt contexts: fit the results into a budget of tokens

Every stage is a list of small callables over `candidates.Candidate`. To add one to a stage, follow the recipe in the
docstring of its module: a function or a class, and its line in REWRITERS, RETRIEVERS, FUSIONS, SCORERS or SELECTORS.
Requests, settings, `explain` and `metrics` then know it by its name. Try it with `manage.py evaluate_recall --ablate`.

Searches in one kind are in `search`, and in `kind_searches` for the kinds that need more (facts, goals, …); walks over
links in `graph` and `artifact_lineage`; lists by time in `timeline` and `timeline_events`; reads for other services in
`resume` and `replay`. `judging` gives hits of such searches the confidence that results of a recall have.

All SQL contains the WHERE of a queryset that starts at `visible_to(owner)` (`statements.where_sql`, `visibility`), so
tenant isolation is that of the ORM. `hidden` alone looks beyond that, for staff, within the account.
"""
