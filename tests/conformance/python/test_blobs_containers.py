"""Containers: create, list, properties, metadata, policies, leases, delete."""

import datetime
import uuid

import pytest
from azure.storage.blob import AccessPolicy, ContainerSasPermissions, PublicAccess

from refusals import code, status


def fresh():
    return f"c{uuid.uuid4().hex}"


def test_a_container_is_created_once(blobs):
    name = fresh()
    container = blobs.create_container(name, metadata={"one": "1"})
    properties = container.get_container_properties()
    assert properties.name == name and properties.metadata == {"one": "1"}
    assert properties.etag and properties.last_modified
    assert (properties.lease.state, properties.lease.status) == ("available", "unlocked")
    assert properties.public_access is None
    assert not properties.has_immutability_policy and not properties.has_legal_hold
    assert code(lambda: blobs.create_container(name)) == "ContainerAlreadyExists"


@pytest.mark.parametrize("name", ["Upper", "a--b", "-ab", "a_b"])
def test_a_bad_name_is_refused(blobs, name):
    assert code(lambda: blobs.create_container(name)) == "InvalidResourceName"


def test_a_name_must_have_the_right_length(blobs):
    for name in ["ab", "a" * 64]:
        assert status(lambda: blobs.create_container(name)) == 400


def test_a_container_that_is_not_there_is_not_found(blobs):
    container = blobs.get_container_client(fresh())
    assert not container.exists()
    for call in [
        container.get_container_properties,
        container.delete_container,
        container.get_container_access_policy,
        lambda: container.set_container_metadata({"a": "b"}),
        lambda: list(container.list_blobs()),
        lambda: container.upload_blob("b", b"x"),
    ]:
        assert code(call) == "ContainerNotFound"


def test_a_deleted_container_is_gone_and_so_are_its_blobs(blobs):
    name = fresh()
    container = blobs.create_container(name)
    container.upload_blob("b", b"x")
    container.delete_container()
    assert not container.exists()
    assert code(lambda: container.get_blob_client("b").download_blob()) == "ContainerNotFound"


def test_metadata_is_replaced_as_a_whole(container):
    before = container.get_container_properties()
    container.set_container_metadata({"one": "1", "two": "2"})
    container.set_container_metadata({"three": "3"})
    after = container.get_container_properties()
    assert after.metadata == {"three": "3"}
    assert after.etag != before.etag
    container.set_container_metadata({})
    assert container.get_container_properties().metadata == {}


def test_containers_are_listed_by_prefix_and_page(blobs):
    prefix = f"l{uuid.uuid4().hex[:12]}"
    names = [f"{prefix}-{n}" for n in range(5)]
    for name in names:
        blobs.create_container(name, metadata={"n": name[-1]})
    pages = blobs.list_containers(prefix, results_per_page=2).by_page()
    assert [[item.name for item in page] for page in pages] == [names[:2], names[2:4], names[4:]]
    listed = list(blobs.list_containers(prefix, include_metadata=True))
    assert [item.metadata for item in listed] == [{"n": str(n)} for n in range(5)]
    assert all(item.etag and item.last_modified and item.lease.state == "available" for item in listed)


def test_policies_are_kept_and_given_back(container):
    now = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)
    policy = AccessPolicy(
        permission=ContainerSasPermissions(read=True, list=True),
        start=now,
        expiry=now + datetime.timedelta(hours=1),
    )
    container.set_container_access_policy({"readers": policy}, public_access=PublicAccess.BLOB)
    kept = container.get_container_access_policy()
    assert kept["public_access"] == "blob"
    (identifier,) = kept["signed_identifiers"]
    assert (identifier.id, identifier.access_policy.permission) == ("readers", "rl")
    container.set_container_access_policy({})
    kept = container.get_container_access_policy()
    assert kept["public_access"] is None and kept["signed_identifiers"] == []


def test_a_leased_container_is_not_deleted_without_the_lease(container):
    lease = container.acquire_lease(lease_duration=15)
    assert container.get_container_properties().lease.state == "leased"
    assert code(container.delete_container) == "LeaseIdMissing"
    other = str(uuid.uuid4())
    mismatch = lambda: container.delete_container(lease=other)
    assert code(mismatch) == "LeaseIdMismatchWithContainerOperation"
    assert code(lambda: container.acquire_lease(lease_duration=15)) == "LeaseAlreadyPresent"
    container.upload_blob("b", b"x")
    container.delete_container(lease=lease)


def test_a_lease_of_a_container_goes_its_way(container):
    first, second = str(uuid.uuid4()), str(uuid.uuid4())
    lease = container.acquire_lease(lease_duration=-1, lease_id=first)
    assert lease.id == first
    assert container.get_container_properties().lease.duration == "infinite"
    lease.renew()
    lease.change(second)
    assert lease.id == second
    assert lease.break_lease(lease_break_period=0) == 0
    assert container.get_container_properties().lease.state == "broken"
    lease.release()
    assert container.get_container_properties().lease.state == "available"
    assert code(lambda: container.set_container_metadata({}, lease=second)) == (
        "LeaseNotPresentWithContainerOperation"
    )


def test_conditions_guard_a_container(container):
    modified = container.get_container_properties().last_modified
    later = modified + datetime.timedelta(hours=1)
    earlier = modified - datetime.timedelta(hours=1)
    refused = lambda: container.set_container_metadata({"a": "b"}, if_modified_since=later)
    assert code(refused) == "ConditionNotMet"
    container.set_container_metadata({"a": "b"}, if_modified_since=earlier)
    refused = lambda: container.delete_container(if_unmodified_since=earlier)
    assert code(refused) == "ConditionNotMet"
    container.delete_container(if_unmodified_since=later)
