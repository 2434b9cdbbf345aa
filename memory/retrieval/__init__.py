"""Reads: from an owner and a query to ranked memories. Writes nothing, calls no provider.

Statements are composed from the WHERE of a queryset that starts at `visible_to(owner)` (`where_of`), so that raw SQL
stands behind the same wall as the ORM.
"""
