"""What the tests of Documents share: fresh containers, and the status of a call that must be refused."""

import time
import uuid

import pytest
from azure.cosmos import PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError


def refusal(call):
    """The error of a call that must be refused."""
    with pytest.raises(CosmosHttpResponseError) as raised:
        call()
    return raised.value


def status(call):
    return refusal(call).status_code


def fresh(prefix="c"):
    return f"{prefix}{uuid.uuid4().hex}"


def make(database, path="/pk", **more):
    """A container with a name of its own."""
    return database.create_container(fresh(), PartitionKey(path), **more)


@pytest.fixture
def container(database):
    """A fresh container. It stays: every run starts with fresh data."""
    return make(database)


def all_of(container, query, **more):
    """All rows of a query over all partitions."""
    return list(container.query_items(query, enable_cross_partition_query=True, **more))


def ids(rows):
    return [row["id"] for row in rows]


def settle(container):
    """Waits until the ranges that a new throughput asks for are there."""
    deadline = time.monotonic() + 60
    while container.get_throughput().properties["content"].get("isOfferReplacePending"):
        assert time.monotonic() < deadline
        time.sleep(0.1)
