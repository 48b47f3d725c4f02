"""Messages: put, receive, peek, update, delete, clear."""

import time

import pytest
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.storage.queue import BinaryBase64DecodePolicy, BinaryBase64EncodePolicy, QueueClient

from answers import storage_code


def texts(messages):
    return [message.content for message in messages]


def test_a_message_is_put_and_received_once(queue):
    sent = queue.send_message("hello")
    assert sent.id and sent.pop_receipt and sent.inserted_on and sent.expires_on
    received = list(queue.receive_messages())
    assert texts(received) == ["hello"]
    assert (received[0].id, received[0].dequeue_count) == (sent.id, 1)
    assert received[0].pop_receipt and received[0].next_visible_on
    assert list(queue.receive_messages()) == []


def test_messages_come_in_their_order(queue):
    for number in range(20):
        queue.send_message(f"{number:02}")
    first = list(queue.receive_messages(messages_per_page=7, max_messages=7))
    assert texts(first) == [f"{number:02}" for number in range(7)]
    rest = list(queue.receive_messages(messages_per_page=32))
    assert texts(rest) == [f"{number:02}" for number in range(7, 20)]


def test_peeking_takes_nothing(queue):
    for number in range(3):
        queue.send_message(str(number))
    assert texts(queue.peek_messages()) == ["0"]
    seen = queue.peek_messages(max_messages=32)
    assert texts(seen) == ["0", "1", "2"]
    assert [message.dequeue_count for message in seen] == [0, 0, 0]
    assert len(list(queue.receive_messages(messages_per_page=32))) == 3
    assert queue.peek_messages() == []


def test_a_message_comes_back_after_its_time(queue):
    queue.send_message("again")
    first = next(queue.receive_messages(visibility_timeout=1))
    assert list(queue.receive_messages()) == []
    time.sleep(1.2)
    second = next(queue.receive_messages())
    assert (second.id, second.dequeue_count) == (first.id, 2)
    assert second.pop_receipt != first.pop_receipt


def test_a_message_hides_at_first(queue):
    queue.send_message("later", visibility_timeout=1)
    assert queue.peek_messages() == []
    time.sleep(1.2)
    assert texts(queue.peek_messages()) == ["later"]


def test_a_message_expires(queue):
    queue.send_message("short", time_to_live=1)
    queue.send_message("long", time_to_live=60)
    assert texts(queue.peek_messages(max_messages=2)) == ["short", "long"]
    time.sleep(2.2)
    assert texts(queue.peek_messages(max_messages=2)) == ["long"]
    assert texts(queue.receive_messages()) == ["long"]


def test_a_message_may_live_forever(queue):
    sent = queue.send_message("forever", time_to_live=-1)
    assert sent.expires_on.year == 9999
    assert queue.peek_messages()[0].expires_on.year == 9999


def test_a_message_is_updated(queue):
    queue.send_message("one")
    received = next(queue.receive_messages())
    updated = queue.update_message(received, content="two", visibility_timeout=0)
    assert updated.pop_receipt != received.pop_receipt
    again = next(queue.receive_messages())
    assert (again.id, again.content, again.dequeue_count) == (received.id, "two", 2)


def test_an_update_may_leave_the_text(queue):
    queue.send_message("kept")
    received = next(queue.receive_messages())
    queue.update_message(received.id, received.pop_receipt, visibility_timeout=0)
    assert texts(queue.receive_messages()) == ["kept"]


def test_a_message_is_deleted(queue):
    queue.send_message("gone")
    received = next(queue.receive_messages())
    queue.delete_message(received)
    assert queue.get_queue_properties().approximate_message_count == 0
    with pytest.raises(ResourceNotFoundError) as raised:
        queue.delete_message(received)
    assert raised.value.error_code == "MessageNotFound"


def test_who_put_a_message_may_delete_it(queue):
    sent = queue.send_message("mine")
    queue.delete_message(sent.id, sent.pop_receipt)
    assert queue.peek_messages() == []


def test_a_stale_receipt_is_refused(queue):
    queue.send_message("held")
    first = next(queue.receive_messages(visibility_timeout=1))
    time.sleep(1.2)
    second = next(queue.receive_messages())
    for call in [
        lambda: queue.delete_message(first),
        lambda: queue.update_message(first, content="mine", visibility_timeout=1),
    ]:
        with pytest.raises(HttpResponseError) as raised:
            call()
        assert (raised.value.status_code, storage_code(raised)) == (400, "PopReceiptMismatch")
    queue.delete_message(second)


def test_all_messages_are_cleared(queue):
    for number in range(5):
        queue.send_message(str(number))
    held = next(queue.receive_messages())
    queue.clear_messages()
    assert queue.peek_messages() == []
    assert queue.get_queue_properties().approximate_message_count == 0
    with pytest.raises(ResourceNotFoundError):
        queue.delete_message(held)


@pytest.mark.parametrize("text", ["<a>&amp;\"'</a>", " space around ", "zürich 東京 😀", "tab\tin it"])
def test_any_text_comes_back_as_it_was(queue, text):
    queue.send_message(text)
    assert texts(queue.peek_messages()) == [text]
    assert texts(queue.receive_messages()) == [text]


def test_bytes_travel_as_base64(target, queues_url, queue):
    client = QueueClient(
        queues_url,
        queue.queue_name,
        credential={"account_name": target["account"], "account_key": target["key"]},
        message_encode_policy=BinaryBase64EncodePolicy(),
        message_decode_policy=BinaryBase64DecodePolicy(),
    )
    content = bytes(range(256))
    client.send_message(content)
    assert texts(client.receive_messages()) == [content]


def test_a_message_has_a_size(queue):
    queue.send_message("x" * 65536)
    assert len(queue.peek_messages()[0].content) == 65536
    with pytest.raises(HttpResponseError) as raised:
        queue.send_message("x" * 65537)
    assert (raised.value.status_code, storage_code(raised)) == (413, "RequestBodyTooLarge")


@pytest.mark.parametrize(
    "terms",
    [
        {"visibility_timeout": 604801, "time_to_live": -1},
        {"visibility_timeout": -1},
        {"time_to_live": 0},
        {"time_to_live": -2},
        {"visibility_timeout": 10, "time_to_live": 10},
    ],
    ids=["hidden too long", "hidden before", "no life", "less than none", "gone before seen"],
)
def test_times_out_of_range_are_refused(queue, terms):
    with pytest.raises(HttpResponseError) as raised:
        queue.send_message("a", **terms)
    assert raised.value.status_code == 400


@pytest.mark.parametrize("count", [0, 33])
def test_counts_out_of_range_are_refused(queue, count):
    with pytest.raises(HttpResponseError) as raised:
        list(queue.receive_messages(messages_per_page=count))
    assert raised.value.status_code == 400


def test_receiving_hides_for_one_second_at_least(queue):
    queue.send_message("a")
    for seconds in [0, 604801]:
        with pytest.raises(HttpResponseError) as raised:
            list(queue.receive_messages(visibility_timeout=seconds))
        assert (raised.value.status_code, storage_code(raised)) == (
            400,
            "OutOfRangeQueryParameterValue",
        )
