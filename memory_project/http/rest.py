"""Settings of the REST framework and of the OpenAPI document, which no environment changes."""

from memory_project.installation import read_version

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["memory.api.authentication.ApiKeyAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": [
        "memory_project.http.credentials.HasScope",
        "memory.api.permissions.OwnConversations",
    ],
    "DEFAULT_THROTTLE_CLASSES": ["memory_project.http.throttling.KeyThrottle"],
    "DEFAULT_PARSER_CLASSES": ["memory_project.http.parsers.StrictJSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "memory_project.http.parsers.JSONOnlyNegotiation",
    "DEFAULT_PAGINATION_CLASS": "memory_project.http.pagination.CursorPagination",
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_SCHEMA_CLASS": "memory_project.http.schema.ServiceSchema",
    "EXCEPTION_HANDLER": "memory.api.problems.handle_api_exception",
    "UNAUTHENTICATED_USER": None,
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Agent memory",
    "DESCRIPTION": "A memory service for agents. It stores what is being worked on, what was said, what is true and "
    "what worked, recalls it within a budget of tokens, and knows what was already put into a prompt.",
    "VERSION": read_version(),
    "OAS_VERSION": "3.1.0",
    "LICENSE": {"name": "MIT", "identifier": "MIT"},
    "CONTACT": {"name": "The operator of this service"},
    "SERVE_AUTHENTICATION": [],
    "SERVE_PERMISSIONS": [],
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "COMPONENT_SPLIT_REQUEST": True,
    # a PATCH has a serializer of its own: what that requires, the document says
    "COMPONENT_SPLIT_PATCH": False,
    "PATH_CONVERTER_OVERRIDES": {
        "id": {"type": "string", "minLength": 1, "maxLength": 100},
        "key": {"type": "string", "minLength": 1, "maxLength": 200},
    },
    # choices that several shapes share under a field's name that others have as well
    "ENUM_NAME_OVERRIDES": {
        "FactStatusEnum": "memory.api.facts.STATUSES",
        "GoalStatusEnum": "memory.models.Goal.Status",
        "JobStatusEnum": "memory.models.JobRun.Status",
        "KindEnum": "memory.models.Kind",
        "QueueStateEnum": "memory.api.conversations.STATES",
        "SlotEnum": "memory.models.TurnSlot.Slot",
        "TransferStatusEnum": "memory.models.Transfer.Status",
        "TurnStatusEnum": "memory.models.TurnRecord.Status",
        "CompressionLevelEnum": "memory.models.CompressionLevel",
        "AccessLevelEnum": "memory.models.Level",
        "MemoryTierEnum": "memory.api.keyed_memories.TIERS",
        "ReplayedKindEnum": "memory.services.replay.candidates.REPLAY_ITEM_KINDS",
        "NoteEnum": "memory.api.resume.NOTES",
        "ReasoningTierEnum": "memory.api.turn_records.TIERS",
        "ProvenanceEnum": "memory.api.turn_records.PROVENANCES",
        "ContextScopeEnum": "memory.models.PersistentContext.Scope",
        "EntryMemoryTypeEnum": "memory.models.ContextEntry.MemoryType",
        "PoolScopeEnum": "memory.models.MemoryPool.Scope",
        "ShortTermMemoryTypeEnum": "memory.models.AgentShortTermMemory.MemoryType",
        "WorkflowRunStatusEnum": "memory.models.WorkflowRun.Status",
    },
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "memory_project.http.schema.add_problem_schema",
        "memory.api.openapi.describe",
    ],
}
