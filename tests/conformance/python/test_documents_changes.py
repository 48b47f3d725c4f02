"""Documents: the change feed in both modes, and time to live."""

import time

from documents import container, ids, make, settle, status


def changes(container, **more):
    return list(container.query_items_change_feed(**more))


def test_the_change_feed_has_every_change(container):
    for n in range(5):
        container.create_item({"id": str(n), "pk": str(n % 2), "n": 0})
    container.upsert_item({"id": "0", "pk": "0", "n": 1})
    found = changes(container, start_time="Beginning")
    assert sorted(ids(found)) == ["0", "1", "2", "3", "4"]
    assert {row["id"]: row["n"] for row in found}["0"] == 1


def test_a_reader_goes_on_where_it_was(container):
    container.create_item({"id": "1", "pk": "a"})
    reader = container.query_items_change_feed(start_time="Beginning")
    assert ids(reader) == ["1"]
    token = container.client_connection.last_response_headers["etag"]
    container.create_item({"id": "2", "pk": "a"})
    container.upsert_item({"id": "1", "pk": "a", "n": 1})
    assert sorted(ids(changes(container, continuation=token))) == ["1", "2"]


def test_changes_of_one_partition_key_are_in_order(container):
    for n in range(6):
        container.create_item({"id": str(n), "pk": "a" if n % 2 else "b"})
    assert ids(changes(container, partition_key="a", start_time="Beginning")) == ["1", "3", "5"]


def test_a_reader_may_begin_now(container):
    container.create_item({"id": "1", "pk": "a"})
    assert changes(container, start_time="Now") == []


def test_the_feed_goes_on_over_a_split(database):
    container = make(database)
    for n in range(10):
        container.create_item({"id": str(n), "pk": str(n)})
    assert len(changes(container, start_time="Beginning")) == 10
    token = container.client_connection.last_response_headers["etag"]
    container.replace_throughput(30000)
    settle(container)
    for n in range(10, 20):
        container.create_item({"id": str(n), "pk": str(n)})
    found = changes(container, continuation=token)
    assert sorted(ids(found), key=int) == [str(n) for n in range(10, 20)]


def test_every_version_and_deletion_is_read(database, container):
    kept = make(database, change_feed_policy={"retentionDuration": 10})
    assert changes(kept, mode="AllVersionsAndDeletes") == []
    token = kept.client_connection.last_response_headers["etag"]
    kept.create_item({"id": "1", "pk": "a", "n": 1})
    kept.upsert_item({"id": "1", "pk": "a", "n": 2})
    kept.delete_item("1", "a")
    found = changes(kept, mode="AllVersionsAndDeletes", continuation=token)
    assert [row["metadata"]["operationType"] for row in found] == ["create", "replace", "delete"]
    assert [row["current"].get("n") for row in found] == [1, 2, None]
    assert found[2]["previous"]["n"] == 2
    # What is not kept cannot be read.
    assert status(lambda: changes(container, mode="AllVersionsAndDeletes")) == 400


def test_items_expire(database):
    container = make(database, default_ttl=-1)
    container.create_item({"id": "1", "pk": "a", "ttl": 1})
    container.create_item({"id": "2", "pk": "a"})
    until = time.time() + 10
    while time.time() < until and len(ids(container.read_all_items())) > 1:
        time.sleep(0.2)
    assert ids(container.read_all_items()) == ["2"]
