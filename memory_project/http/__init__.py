"""The contract that every resource keeps, whichever app it is in: paths, bodies, problems, keys, limits, pages, schema.

Both apps build their views on `views.ServiceViewSet` and their bodies on `serializers.StrictSerializer`; it imports
neither of them. To add a resource: a module with its serializers and one viewset, a line in the app's `urls.py`.
"""
