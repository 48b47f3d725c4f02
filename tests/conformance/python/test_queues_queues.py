"""Queues: create, delete, list, and what is kept about them."""

import uuid

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError

from answers import storage_code


def test_a_queue_is_created_listed_and_deleted(queues):
    name = f"q{uuid.uuid4().hex}"
    client = queues.create_queue(name)
    assert name in [queue.name for queue in queues.list_queues(name_starts_with=name)]
    client.delete_queue()
    assert list(queues.list_queues(name_starts_with=name)) == []


def test_creating_a_queue_again_depends_on_its_metadata(queues):
    name = f"q{uuid.uuid4().hex}"
    client = queues.get_queue_client(name)
    client.create_queue(metadata={"color": "red"})
    # The service says yes and that nothing was made; the SDK takes that for a refusal too.
    for color, status in [("red", 204), ("blue", 409)]:
        with pytest.raises(ResourceExistsError) as raised:
            client.create_queue(metadata={"color": color})
        assert raised.value.error_code == "QueueAlreadyExists"
        assert raised.value.response.status_code == status


def test_a_missing_queue_is_not_found(queues):
    client = queues.get_queue_client(f"q{uuid.uuid4().hex}")
    for call in [
        client.delete_queue,
        client.get_queue_properties,
        lambda: client.set_queue_metadata({"a": "1"}),
        client.get_queue_access_policy,
        lambda: client.send_message("a"),
        client.peek_messages,
        client.clear_messages,
        lambda: list(client.receive_messages()),
    ]:
        with pytest.raises(ResourceNotFoundError) as raised:
            call()
        assert raised.value.error_code == "QueueNotFound"


@pytest.mark.parametrize(
    "name, expected",
    [
        ("ab", "OutOfRangeInput"),
        ("a" * 64, "OutOfRangeInput"),
        ("Upper", "InvalidResourceName"),
        ("a--b", "InvalidResourceName"),
        ("-ab", "InvalidResourceName"),
        ("a_b", "InvalidResourceName"),
    ],
)
def test_names_follow_the_rules(queues, name, expected):
    with pytest.raises(HttpResponseError) as raised:
        queues.create_queue(name)
    assert (raised.value.status_code, storage_code(raised)) == (400, expected)


def test_metadata_is_set_and_read(queue):
    queue.set_queue_metadata({"color": "red", "shape": "round"})
    assert queue.get_queue_properties().metadata == {"color": "red", "shape": "round"}
    queue.set_queue_metadata({})
    assert queue.get_queue_properties().metadata == {}


def test_bad_metadata_is_refused(queue):
    with pytest.raises(HttpResponseError) as raised:
        queue.set_queue_metadata({"1-a": "x"})
    assert raised.value.status_code == 400


def test_the_count_of_messages_is_that_of_all(queue):
    assert queue.get_queue_properties().approximate_message_count == 0
    for number in range(3):
        queue.send_message(str(number))
    queue.send_message("hidden", visibility_timeout=60)
    assert queue.get_queue_properties().approximate_message_count == 4


def test_a_list_has_prefix_pages_and_metadata(queues):
    prefix = f"list{uuid.uuid4().hex[:12]}"
    names = [f"{prefix}-{number}" for number in range(5)]
    for name in names:
        queues.create_queue(name, metadata={"name": name})
    found = list(queues.list_queues(name_starts_with=prefix, include_metadata=True))
    assert [queue.name for queue in found] == names
    assert [queue.metadata["name"] for queue in found] == names
    assert [queue.metadata for queue in queues.list_queues(name_starts_with=prefix)] == [None] * 5
    pages = queues.list_queues(name_starts_with=prefix, results_per_page=2).by_page()
    assert [[queue.name for queue in page] for page in pages] == [names[:2], names[2:4], names[4:]]
    first = queues.list_queues(name_starts_with=prefix, results_per_page=3).by_page()
    assert len(list(next(first))) == 3
    token = first.continuation_token
    rest = queues.list_queues(name_starts_with=prefix, results_per_page=3).by_page(token)
    assert [queue.name for queue in next(rest)] == names[3:]


def test_a_deleted_queue_comes_back_empty(queues, queue):
    queue.send_message("old")
    queue.delete_queue()
    queue.create_queue()
    assert queue.peek_messages() == []
    assert queue.get_queue_properties().approximate_message_count == 0
