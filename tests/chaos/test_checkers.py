"""The checkers themselves: each finds what it is there to find. `cargo xtask chaos` runs these first."""

import http.server
import threading
import time
import types

import pytest
from azure.core.pipeline.transport import HttpTransport
from calls import Calls, InDoubt, Sdk, Tally, Unreachable, Violation
from load import Presence
from queues_load import Load as Queues
from queues_load import Message, text_of
from server import free_port
from tables_load import GROUP_ROWS, entity, group_version, version_of

ACCOUNT = {"account": "account", "key": "a2V5"}


def presence():
    names = Presence("names")
    names.set("there", "there")
    names.set("gone", "gone")
    names.set("unsure", "unsure")
    return names


def test_a_scan_that_shows_each_name_once_passes():
    presence().judge(["there"], time.monotonic())
    presence().judge(["there", "unsure"], time.monotonic())


@pytest.mark.parametrize(
    ("seen", "what"),
    [
        (["there", "there"], "DOUBLED"),
        ([], "LOST"),
        (["there", "gone"], "was deleted"),
        (["there", "stranger"], "nobody wrote"),
    ],
)
def test_a_scan_that_is_wrong_is_found(seen, what):
    with pytest.raises(Violation, match=what):
        presence().judge(seen, time.monotonic())


def test_what_comes_and_goes_during_a_scan_may_be_seen_or_not():
    began = time.monotonic()
    presence().judge([], began)
    presence().judge(["there", "gone", "unsure"], began)


def test_an_entity_that_is_not_whole_is_found():
    assert version_of(entity(("a", "b"), 7)) == 7
    with pytest.raises(Violation, match="TORN"):
        version_of({**entity(("a", "b"), 7), "version": 8})


@pytest.mark.parametrize("versions", [[3, 3, 3, 4], [3, 3, 3]])
def test_a_group_that_is_torn_is_found(versions):
    def group(versions):
        rows = [entity(("g", f"member-{it}"), version) for it, version in enumerate(versions)]
        return types.SimpleNamespace(query_entities=lambda query: rows)

    calls = Calls(types.SimpleNamespace(phase=lambda: "test", kills=True, on_databases=False), Tally())
    assert group_version(calls, group([3] * GROUP_ROWS), "g") == 3
    with pytest.raises(Violation, match="TORN"):
        group_version(calls, group(versions), "g")


def queue_with(**known):
    queues = Queues(None)
    message = Message("queue")
    vars(message).update(known)
    queues.messages[1] = message
    return queues


def received(id="id", count=1, content=None):
    content = text_of(1) if content is None else content
    return types.SimpleNamespace(id=id, dequeue_count=count, content=content)


def test_a_message_may_come_again_when_its_time_is_over():
    queues = queue_with(id="id", dequeue_count=1, held_from=0, held_until=10)
    assert queues.delivered("queue", received(count=2), 9, 11)[0] == 1


@pytest.mark.parametrize(
    ("known", "message", "what"),
    [
        ({"held_from": 0, "held_until": 10}, received(), "TWO HOLDERS"),
        ({"deleted": 4}, received(), "came back"),
        ({"id": "another"}, received(), "DOUBLED"),
        ({}, received(content="1:changed"), "nobody put"),
        ({"dequeue_count": 3, "held_from": 0, "held_until": 1}, received(count=3), "counts"),
    ],
)
def test_a_message_that_must_not_come_is_found(known, message, what):
    with pytest.raises(Violation, match=what):
        queue_with(**known).delivered("queue", message, 5, 6)


class Faltering(http.server.BaseHTTPRequestHandler):
    """Answers the first request with an error, or not at all, and those that follow with something."""

    def answer(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.asked += 1
        if self.server.asked == 1:
            if self.server.first is None:
                self.connection.close()
                return
            self.send_response(self.server.first)
        else:
            self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer

    def log_message(self, *words):
        pass


@pytest.fixture
def faltering():
    """A server that falters in a way of the test's choice."""
    servers = []

    def start(first):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Faltering)
        server.first, server.asked = first, 0
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return server.server_address[1]

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


REQUESTS = {
    "tables": lambda sdk: sdk.tables().get_table_client("t").delete_entity("p", "r"),
    "blobs": lambda sdk: sdk.blobs().get_blob_client("c", "b").get_blob_properties(),
    "queues": lambda sdk: sdk.queues().get_queue_client("q").get_queue_properties(),
}


def outcome(front, port, retries, kills):
    """What a request to this port comes to, and what was counted."""
    tally = Tally()
    target = {**ACCOUNT, "endpoints": {front: f"http://127.0.0.1:{port}"}}
    sdk = Sdk(target, tally, retries)
    calls = Calls(types.SimpleNamespace(phase=lambda: "test", kills=kills, on_databases=False), tally)
    try:
        calls(front, REQUESTS[front], sdk)
        return "answered", tally
    except Exception as error:
        return type(error), tally


@pytest.mark.parametrize("front", REQUESTS)
def test_every_retry_of_an_sdk_is_counted(front, faltering, monkeypatch):
    monkeypatch.setattr(HttpTransport, "sleep", lambda *words: None)
    _, tally = outcome(front, faltering(503), retries=True, kills=False)
    assert (tally.sent, sum(tally.retries.values())) == (2, 1)


@pytest.mark.parametrize("front", REQUESTS)
def test_without_retries_an_error_of_the_server_is_a_violation(front, faltering):
    result, tally = outcome(front, faltering(503), retries=False, kills=True)
    assert (result, tally.sent) == (Violation, 1)


@pytest.mark.parametrize("front", REQUESTS)
def test_a_request_without_an_answer_is_in_doubt(front, faltering):
    result, tally = outcome(front, faltering(None), retries=False, kills=True)
    assert (result, tally.sent) == (InDoubt, 1)
    assert outcome(front, faltering(None), retries=False, kills=False)[0] is Violation


@pytest.mark.parametrize("front", REQUESTS)
def test_a_request_that_nobody_heard_is_not_in_doubt(front):
    assert outcome(front, free_port(), retries=False, kills=True)[0] is Unreachable
