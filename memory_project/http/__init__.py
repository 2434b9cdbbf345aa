"""The HTTP contract that every resource keeps: paths, bodies, problems, API keys, rate limits, pages, OpenAPI.

Both apps build their views on `views.ServiceViewSet`, their bodies on `serializers.StrictSerializer` and their answers
on `answers.AnswerSerializer`. This package imports neither app. `memory.api` says how to add a resource or a field.
"""
