"""Formats of dates in the admin, by language (the setting FORMAT_MODULE_PATH of Django)."""
