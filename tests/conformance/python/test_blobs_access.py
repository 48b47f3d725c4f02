"""Access: keys, signatures of accounts, containers and blobs, stored policies, public containers."""

import datetime

import pytest
from azure.core.credentials import AzureSasCredential
from azure.storage.blob import (
    AccessPolicy,
    BlobClient,
    BlobServiceClient,
    ContainerClient,
    generate_account_sas,
    generate_blob_sas,
    generate_container_sas,
)

from refusals import code, refusal, status

HOUR = datetime.timedelta(hours=1)


def now():
    return datetime.datetime.now(datetime.timezone.utc)


@pytest.fixture
def account_signed(target, blobs_url):
    """A client of the service that signs with a signature of the account."""

    def client(permission, resource_types):
        signature = generate_account_sas(
            target["account"], target["key"], resource_types, permission, now() + HOUR
        )
        return BlobServiceClient(blobs_url, credential=signature, retry_total=0)

    return client


@pytest.fixture
def container_signed(target, blobs_url, container):
    """A client of the container that signs with a signature for it."""

    def client(**terms):
        signature = generate_container_sas(
            target["account"], container.container_name, account_key=target["key"], **terms
        )
        return ContainerClient(
            blobs_url, container.container_name, credential=signature, retry_total=0
        )

    return client


@pytest.fixture
def blob_signed(target, blobs_url, container):
    """A client of one blob that signs with a signature for it."""

    def client(name, **terms):
        signature = generate_blob_sas(
            target["account"], container.container_name, name, account_key=target["key"], **terms
        )
        return BlobClient(
            blobs_url, container.container_name, name, credential=signature, retry_total=0
        )

    return client


def test_a_wrong_key_is_refused(target, blobs_url):
    credential = {"account_name": target["account"], "account_key": "d3Jvbmc="}
    with BlobServiceClient(blobs_url, credential=credential, retry_total=0) as client:
        error = refusal(lambda: list(client.list_containers()))
    assert error.status_code == 403


def test_an_account_signature_grants_what_it_says(account_signed, container):
    name = container.container_name
    listed = account_signed("l", "s").list_containers(name_starts_with=name)
    assert [item.name for item in listed] == [name]
    assert status(lambda: list(account_signed("r", "s").list_containers())) == 403
    assert status(lambda: list(account_signed("l", "o").list_containers())) == 403
    writer = account_signed("w", "o").get_blob_client(name, "b")
    writer.upload_blob(b"x")
    assert status(writer.download_blob) == 403
    assert account_signed("r", "o").get_blob_client(name, "b").download_blob().readall() == b"x"
    assert status(writer.delete_blob) == 403
    account_signed("d", "o").get_blob_client(name, "b").delete_blob()


def test_who_may_create_may_not_overwrite(account_signed, container):
    blob = account_signed("c", "o").get_blob_client(container.container_name, "b")
    blob.upload_blob(b"one")
    assert status(lambda: blob.upload_blob(b"two", overwrite=True)) == 403
    assert container.download_blob("b").readall() == b"one"


def test_a_container_signature_grants_what_it_says(container_signed, container):
    container.upload_blob("b", b"x")
    reader = container_signed(permission="r", expiry=now() + HOUR)
    assert reader.download_blob("b").readall() == b"x"
    assert status(lambda: list(reader.list_blobs())) == 403
    lister = container_signed(permission="l", expiry=now() + HOUR)
    assert [item.name for item in lister.list_blobs()] == ["b"]
    assert status(lambda: lister.download_blob("b")) == 403
    assert status(reader.delete_container) == 403


def test_a_blob_signature_is_for_that_blob(blob_signed, container, target, blobs_url):
    container.upload_blob("b", b"x")
    container.upload_blob("other", b"y")
    blob = blob_signed("b", permission="r", expiry=now() + HOUR)
    assert blob.download_blob().readall() == b"x"
    signature = generate_blob_sas(
        target["account"],
        container.container_name,
        "b",
        account_key=target["key"],
        permission="r",
        expiry=now() + HOUR,
    )
    other = BlobClient(
        blobs_url, container.container_name, "other", credential=signature, retry_total=0
    )
    assert status(other.download_blob) == 403


def test_a_folder_signature_is_for_what_is_in_the_folder(blob_signed, container, target, blobs_url):
    """Azurite does not know signatures for folders."""
    names = ["top/in/b", "top/in/deep/b", "top/b", "top/into/b", "b"]
    for name in names:
        container.upload_blob(name, b"x")
    signature = generate_blob_sas(
        target["account"],
        container.container_name,
        "top/in",
        account_key=target["key"],
        is_directory=True,
        permission="rw",
        expiry=now() + HOUR,
    )
    assert "sr=d" in signature and "sdd=2" in signature
    client = lambda name: BlobClient(
        blobs_url, container.container_name, name, credential=signature, retry_total=0
    )
    for name in names[:2]:
        assert client(name).download_blob().readall() == b"x"
        assert status(client(name).delete_blob) == 403
    client("top/in/new").upload_blob(b"y")
    for name in names[2:]:
        assert status(client(name).download_blob) == 403


def test_a_signature_holds_for_its_time_only(blob_signed, container):
    container.upload_blob("b", b"x")
    late = blob_signed("b", permission="r", expiry=now() - HOUR)
    assert status(late.download_blob) == 403
    early = blob_signed("b", permission="r", start=now() + HOUR, expiry=now() + 2 * HOUR)
    assert status(early.download_blob) == 403


def test_a_signature_holds_for_its_addresses_only(blob_signed, container):
    container.upload_blob("b", b"x")
    elsewhere = blob_signed("b", permission="r", expiry=now() + HOUR, ip="203.0.113.1-203.0.113.9")
    assert status(elsewhere.download_blob) == 403


def test_a_signature_may_set_headers_of_the_answer(blob_signed, container):
    container.upload_blob("b", b"x")
    blob = blob_signed(
        "b",
        permission="r",
        expiry=now() + HOUR,
        content_type="text/html",
        content_disposition="attachment",
        cache_control="no-store",
    )
    settings = blob.download_blob().properties.content_settings
    assert settings.content_type == "text/html"
    assert settings.content_disposition == "attachment"
    assert settings.cache_control == "no-store"


def test_a_stored_policy_gives_its_terms_and_takes_them_back(container_signed, container):
    container.upload_blob("b", b"x")
    policy = AccessPolicy(permission="r", start=now() - HOUR, expiry=now() + HOUR)
    container.set_container_access_policy({"readers": policy})
    client = container_signed(policy_id="readers")
    assert client.download_blob("b").readall() == b"x"
    assert status(lambda: list(client.list_blobs())) == 403
    container.set_container_access_policy({})
    assert status(lambda: client.download_blob("b")) == 403


def test_a_snapshot_has_signatures_of_its_own(container, read_url):
    blob = container.upload_blob("b", b"one")
    snapshot = blob.create_snapshot()["snapshot"]
    blob.upload_blob(b"two", overwrite=True)
    old = container.get_blob_client("b", snapshot=snapshot)
    read = BlobClient.from_blob_url(read_url(old), retry_total=0)
    assert read.download_blob().readall() == b"one"


def test_a_public_container_is_read_by_anybody(blobs_url, container):
    container.upload_blob("b", b"x")
    name = container.container_name
    anybody = ContainerClient(blobs_url, name, retry_total=0)
    assert refusal(lambda: anybody.download_blob("b")).status_code in (401, 403, 404, 409)
    container.set_container_access_policy({}, public_access="blob")
    assert anybody.download_blob("b").readall() == b"x"
    assert refusal(lambda: list(anybody.list_blobs())).status_code in (401, 403, 404, 409)
    container.set_container_access_policy({}, public_access="container")
    assert [item.name for item in anybody.list_blobs()] == ["b"]
    assert anybody.get_container_properties().public_access == "container"
    assert refusal(lambda: anybody.upload_blob("c", b"y")).status_code in (401, 403, 404, 409)
