"""The embedded servers, real ones."""

import os

import psycopg
import redis


def test_postgres_of_the_run_has_the_vector_extension() -> None:
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        row = connection.execute("SELECT default_version FROM pg_available_extensions WHERE name = 'vector'").fetchone()

    assert row is not None
    assert row[0] >= "0.8"


def test_valkey_of_the_run_evicts_nothing() -> None:
    with redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True) as client:
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
