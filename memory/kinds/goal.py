"""Goals: what is to be done, above and below one another and in each other's way."""

from memory.kinds.base import KindSpec
from memory.scoring import PROCEDURAL_WEIGHT

SPEC = KindSpec(
    name="goal",
    label="goal",
    plural="goals",
    model="memory.Goal",
    # open goals come with every recall anyway, and raise what is about them (the scorer active_work)
    recall_weight=PROCEDURAL_WEIGHT,
    scopes=frozenset({"workspace"}),
    has_links=True,
    has_status=True,
    resume_quote="omitted",
    # the form in the admin has them too
    correctable=frozenset({"priority", "deadline", "result"}),
    # it blocks other goals until it is closed, so it does not expire
    not_correctable=frozenset({"user_id", "expires_at"}),
    lifecycles=(
        "memory.services.work_episodes.propagate.MentionLifecycle",
        "memory.services.goals.plan.GoalLifecycle",
    ),
    admin_page="goal",
)
