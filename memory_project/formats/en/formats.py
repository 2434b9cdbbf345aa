"""Dates as in ISO 8601, which the pages of our own write as well."""

DATE_FORMAT = "Y-m-d"
DATETIME_FORMAT = "Y-m-d H:i"
