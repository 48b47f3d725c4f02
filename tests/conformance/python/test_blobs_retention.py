"""What is kept after deleting or replacing it: soft delete, versions, immutability, legal holds."""

import datetime

import pytest
from azure.storage.blob import ImmutabilityPolicy, RetentionPolicy

from refusals import code


@pytest.fixture
def soft_delete(blobs):
    """Azurite takes the policy and does not keep it."""
    blobs.set_service_properties(delete_retention_policy=RetentionPolicy(enabled=True, days=5))
    yield
    blobs.set_service_properties(delete_retention_policy=RetentionPolicy(enabled=False))


def test_a_deleted_blob_comes_back(container, soft_delete):
    blob = container.upload_blob("b", b"one", metadata={"a": "b"})
    blob.delete_blob()
    assert not blob.exists()
    assert list(container.list_blobs()) == []
    (item,) = container.list_blobs(include=["deleted"])
    assert item.deleted and item.remaining_retention_days is not None and item.deleted_time
    blob.undelete_blob()
    read = blob.download_blob()
    assert read.readall() == b"one" and read.properties.metadata == {"a": "b"}


def test_an_overwritten_blob_leaves_a_snapshot(container, soft_delete):
    blob = container.upload_blob("b", b"one")
    blob.upload_blob(b"two", overwrite=True)
    listed = list(container.list_blobs(include=["deleted", "snapshots"]))
    assert [(item.name, bool(item.deleted)) for item in listed] == [("b", True), ("b", False)]
    blob.undelete_blob()
    assert blob.download_blob().readall() == b"two"


def test_nothing_comes_back_that_was_not_kept(container):
    blob = container.upload_blob("b", b"one")
    blob.delete_blob()
    assert code(blob.undelete_blob) == "BlobNotFound"


@pytest.fixture
def kept_containers(set_property):
    """Azurite keeps no deleted containers."""
    policy = lambda inner: f"<ContainerDeleteRetentionPolicy>{inner}</ContainerDeleteRetentionPolicy>"
    set_property(policy("<Enabled>true</Enabled><Days>3</Days>"))
    yield
    set_property(policy("<Enabled>false</Enabled>"))


def test_a_deleted_container_comes_back(blobs, container, kept_containers):
    name = container.container_name
    container.upload_blob("b", b"one")
    container.set_container_metadata({"a": "b"})
    container.delete_container()
    listed = lambda **terms: list(blobs.list_containers(name_starts_with=name, **terms))
    assert listed() == []
    (item,) = listed(include_deleted=True)
    assert item.deleted and item.version and item.name == name
    assert code(container.get_container_properties) == "ContainerNotFound"
    restored = blobs.undelete_container(name, item.version)
    assert restored.get_container_properties().metadata == {"a": "b"}
    assert restored.download_blob("b").readall() == b"one"
    assert [bool(item.deleted) for item in listed(include_deleted=True)] == [False]
    assert code(lambda: blobs.undelete_container(name, item.version)) == "ContainerNotFound"


def test_a_deleted_container_leaves_its_name_free(blobs, container, kept_containers):
    name = container.container_name
    container.upload_blob("b", b"one")
    container.delete_container()
    again = blobs.create_container(name)
    assert list(again.list_blobs()) == []
    (old,) = [
        item
        for item in blobs.list_containers(name_starts_with=name, include_deleted=True)
        if item.deleted
    ]
    refused = lambda: blobs.undelete_container(name, old.version)
    assert code(refused) == "ContainerAlreadyExists"
    again.delete_container()
    assert blobs.undelete_container(name, old.version).download_blob("b").readall() == b"one"


def test_a_policy_keeps_a_blob_as_it_is(container):
    """Azurite has no immutability policies."""
    blob = container.upload_blob("b", b"one")
    until = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
    blob.set_immutability_policy(ImmutabilityPolicy(expiry_time=until, policy_mode="Unlocked"))
    policy = blob.get_blob_properties().immutability_policy
    assert policy.policy_mode == "unlocked" or policy.policy_mode == "Unlocked"
    assert code(lambda: blob.upload_blob(b"two", overwrite=True)) == "BlobImmutableDueToPolicy"
    assert code(blob.delete_blob) == "BlobImmutableDueToPolicy"
    blob.delete_immutability_policy()
    blob.delete_blob()


def test_a_legal_hold_keeps_a_blob_as_it_is(container):
    """Azurite has no legal holds."""
    blob = container.upload_blob("b", b"one")
    blob.set_legal_hold(True)
    assert blob.get_blob_properties().has_legal_hold
    assert code(blob.delete_blob) == "BlobImmutableDueToLegalHold"
    blob.set_legal_hold(False)
    blob.delete_blob()
