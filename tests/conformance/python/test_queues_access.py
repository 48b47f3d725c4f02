"""Access: keys, signatures of accounts and queues, stored policies."""

import datetime

import pytest
from azure.core.credentials import AzureSasCredential
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError
from azure.storage.queue import (
    AccessPolicy,
    AccountSasPermissions,
    QueueClient,
    QueueSasPermissions,
    QueueServiceClient,
    ResourceTypes,
    generate_account_sas,
    generate_queue_sas,
)

HOUR = datetime.timedelta(hours=1)


def now():
    return datetime.datetime.now(datetime.timezone.utc)


@pytest.fixture
def signed(target, queues_url, queue):
    """A client of the queue that signs with a signature for it."""

    def client(**terms):
        signature = generate_queue_sas(
            target["account"], queue.queue_name, target["key"], **terms
        )
        credential = AzureSasCredential(signature)
        return QueueClient(queues_url, queue.queue_name, credential=credential, retry_total=0)

    return client


@pytest.fixture
def account_signed(target, queues_url):
    """A client of the service that signs with a signature of the account."""

    def client(permission, resource_types):
        signature = generate_account_sas(
            target["account"],
            target["key"],
            ResourceTypes.from_string(resource_types),
            AccountSasPermissions.from_string(permission),
            now() + HOUR,
        )
        credential = AzureSasCredential(signature)
        return QueueServiceClient(queues_url, credential=credential, retry_total=0)

    return client


def status(call):
    with pytest.raises(HttpResponseError) as raised:
        call()
    return raised.value.status_code


def test_a_wrong_key_is_refused(target, queues_url):
    """Azure answers AuthenticationFailed; Azurite answers AuthorizationFailure."""
    credential = {"account_name": target["account"], "account_key": "d3Jvbmc="}
    with QueueServiceClient(queues_url, credential=credential, retry_total=0) as client:
        with pytest.raises(ClientAuthenticationError) as raised:
            list(client.list_queues())
    assert raised.value.status_code == 403


def test_an_account_signature_grants_what_it_says(account_signed, queue):
    name = queue.queue_name
    assert name in [item.name for item in account_signed("l", "s").list_queues()]
    assert status(lambda: list(account_signed("r", "s").list_queues())) == 403
    assert status(lambda: list(account_signed("l", "o").list_queues())) == 403
    writer = account_signed("a", "o").get_queue_client(name)
    writer.send_message("a")
    assert status(writer.peek_messages) == 403
    assert account_signed("r", "o").get_queue_client(name).peek_messages()[0].content == "a"
    worker = account_signed("p", "o").get_queue_client(name)
    worker.delete_message(next(worker.receive_messages()))
    assert status(worker.clear_messages) == 403


def test_a_queue_signature_grants_what_it_says(signed, queue):
    adder = signed(permission=QueueSasPermissions(add=True), expiry=now() + HOUR)
    adder.send_message("a")
    assert status(adder.peek_messages) == 403
    reader = signed(permission=QueueSasPermissions(read=True), expiry=now() + HOUR)
    assert reader.peek_messages()[0].content == "a"
    assert reader.get_queue_properties().approximate_message_count == 1
    assert status(lambda: next(reader.receive_messages())) == 403
    worker = signed(
        permission=QueueSasPermissions(process=True, update=True), expiry=now() + HOUR
    )
    held = next(worker.receive_messages())
    worker.delete_message(worker.update_message(held, content="b", visibility_timeout=5))
    assert status(worker.delete_queue) == 403


def test_a_signature_holds_for_its_time_only(signed):
    read = QueueSasPermissions(read=True)
    assert status(signed(permission=read, expiry=now() - HOUR).peek_messages) == 403
    early = signed(permission=read, start=now() + HOUR, expiry=now() + 2 * HOUR)
    assert status(early.peek_messages) == 403


def test_a_signature_holds_for_its_addresses_only(signed):
    read = QueueSasPermissions(read=True)
    elsewhere = signed(permission=read, expiry=now() + HOUR, ip="203.0.113.1-203.0.113.9")
    assert status(elsewhere.peek_messages) == 403


def test_a_stored_policy_gives_its_terms_and_takes_them_back(signed, queue):
    queue.send_message("a")
    start, expiry = now() - HOUR, now() + HOUR
    policy = AccessPolicy(permission=QueueSasPermissions(read=True), start=start, expiry=expiry)
    queue.set_queue_access_policy({"readers": policy})
    stored = queue.get_queue_access_policy()
    assert set(stored) == {"readers"} and stored["readers"].permission == "r"
    client = signed(policy_id="readers")
    assert client.peek_messages()[0].content == "a"
    assert status(lambda: client.send_message("b")) == 403
    queue.set_queue_access_policy({})
    assert queue.get_queue_access_policy() == {}
    assert status(client.peek_messages) == 403


def test_too_many_policies_are_refused(queue):
    policy = AccessPolicy(permission="r", start=now() - HOUR, expiry=now() + HOUR)
    policies = {str(number): policy for number in range(6)}
    assert status(lambda: queue.set_queue_access_policy(policies)) == 400
