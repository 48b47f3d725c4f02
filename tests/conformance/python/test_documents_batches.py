"""Documents: transactional batches, and many operations in one request."""

from azure.cosmos.exceptions import CosmosBatchOperationError
import pytest

from documents import container, ids, status


def failed(call):
    with pytest.raises(CosmosBatchOperationError) as raised:
        call()
    return raised.value


def test_a_batch_does_all_of_its_operations(container):
    container.create_item({"id": "old", "pk": "a", "n": 1})
    done = container.execute_item_batch(
        [
            ("create", ({"id": "1", "pk": "a"},)),
            ("upsert", ({"id": "2", "pk": "a"},)),
            ("replace", ("old", {"id": "old", "pk": "a", "n": 2})),
            ("patch", ("old", [{"op": "incr", "path": "/n", "value": 5}])),
            ("read", ("old",)),
            ("delete", ("1",)),
        ],
        "a",
    )
    assert [one["statusCode"] for one in done] == [201, 201, 200, 200, 200, 204]
    assert done[4]["resourceBody"]["n"] == 7
    assert sorted(ids(container.read_all_items())) == ["2", "old"]


def test_a_batch_that_fails_does_nothing(container):
    container.create_item({"id": "1", "pk": "a"})
    error = failed(lambda: container.execute_item_batch(
        [("create", ({"id": "2", "pk": "a"},)), ("create", ({"id": "1", "pk": "a"},))], "a"))
    assert error.status_code == 409 and error.error_index == 1
    assert [one["statusCode"] for one in error.operation_responses] == [424, 409]
    assert ids(container.read_all_items()) == ["1"]


def test_an_operation_of_a_batch_has_an_etag(container):
    made = container.create_item({"id": "1", "pk": "a"})
    container.upsert_item({"id": "1", "pk": "a", "n": 1})
    error = failed(lambda: container.execute_item_batch(
        [("replace", ("1", {"id": "1", "pk": "a"}), {"if_match_etag": made["_etag"]})], "a"))
    assert error.status_code == 412


def test_a_batch_has_at_most_a_hundred_operations(container):
    operations = [("create", ({"id": str(n), "pk": "a"},)) for n in range(101)]
    assert status(lambda: container.execute_item_batch(operations, "a")) == 400
    assert len(container.execute_item_batch(operations[:100], "a")) == 100


def test_items_of_another_partition_key_fail_the_batch(container):
    error = failed(lambda: container.execute_item_batch([("create", ({"id": "1", "pk": "b"},))], "a"))
    assert error.status_code == 400
