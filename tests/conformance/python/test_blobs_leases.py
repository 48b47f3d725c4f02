"""Leases of blobs: who has one writes, others wait."""

import time
import uuid

from azure.storage.blob import BlobLeaseClient

from refusals import code


def test_a_lease_guards_writes_and_not_reads(container):
    blob = container.upload_blob("b", b"one")
    lease = blob.acquire_lease(lease_duration=15)
    properties = blob.get_blob_properties()
    assert (properties.lease.state, properties.lease.status) == ("leased", "locked")
    assert properties.lease.duration == "fixed"
    assert blob.download_blob().readall() == b"one"
    assert code(lambda: blob.upload_blob(b"two", overwrite=True)) == "LeaseIdMissing"
    assert code(lambda: blob.set_blob_metadata({"a": "b"})) == "LeaseIdMissing"
    assert code(blob.delete_blob) == "LeaseIdMissing"
    other = str(uuid.uuid4())
    refused = lambda: blob.upload_blob(b"two", overwrite=True, lease=other)
    assert code(refused) == "LeaseIdMismatchWithBlobOperation"
    refused = lambda: blob.download_blob(lease=other)
    assert code(refused) == "LeaseIdMismatchWithBlobOperation"
    blob.upload_blob(b"two", overwrite=True, lease=lease)
    assert blob.get_blob_properties().lease.state == "leased"
    blob.delete_blob(lease=lease)


def test_a_lease_guards_what_has_no_etag_too(container):
    blob = container.upload_blob("b", b"one")
    lease = blob.acquire_lease(lease_duration=15)
    assert code(lambda: blob.set_blob_tags({"a": "b"})) == "LeaseIdMissing"
    assert code(lambda: blob.set_standard_blob_tier("Cool")) == "LeaseIdMissing"
    blob.create_snapshot()
    blob.set_blob_tags({"a": "b"}, lease=lease)
    blob.set_standard_blob_tier("Cool", lease=lease)
    assert blob.get_blob_tags() == {"a": "b"}


def test_a_lease_is_renewed_changed_and_released(container):
    blob = container.upload_blob("b", b"one")
    first, second = str(uuid.uuid4()), str(uuid.uuid4())
    lease = blob.acquire_lease(lease_duration=-1, lease_id=first)
    assert lease.id == first
    assert blob.get_blob_properties().lease.duration == "infinite"
    lease.renew()
    lease.change(second)
    assert lease.id == second
    wrong = BlobLeaseClient(blob, lease_id=first)
    assert code(wrong.renew) == "LeaseIdMismatchWithLeaseOperation"
    assert code(wrong.release) == "LeaseIdMismatchWithLeaseOperation"
    assert code(lambda: blob.acquire_lease(lease_duration=15)) == "LeaseAlreadyPresent"
    lease.release()
    assert blob.get_blob_properties().lease.state == "available"
    blob.upload_blob(b"two", overwrite=True)
    refused = lambda: blob.upload_blob(b"three", overwrite=True, lease=second)
    assert code(refused) == "LeaseNotPresentWithBlobOperation"


def test_a_lease_is_broken(container):
    blob = container.upload_blob("b", b"one")
    lease = blob.acquire_lease(lease_duration=-1)
    assert lease.break_lease(lease_break_period=30) in (29, 30)
    assert blob.get_blob_properties().lease.state == "breaking"
    assert code(lambda: blob.upload_blob(b"two", overwrite=True)) == "LeaseIdMissing"
    assert lease.break_lease(lease_break_period=0) == 0
    assert blob.get_blob_properties().lease.state == "broken"
    assert code(lease.renew) == "LeaseIsBrokenAndCannotBeRenewed"
    blob.upload_blob(b"two", overwrite=True)
    assert code(lambda: BlobLeaseClient(container.upload_blob("c", b"x")).break_lease()) == (
        "LeaseNotPresentWithLeaseOperation"
    )


def test_a_lease_ends_by_itself(container):
    blob = container.upload_blob("b", b"one")
    blob.acquire_lease(lease_duration=15)
    time.sleep(15.5)
    assert blob.get_blob_properties().lease.state == "expired"
    blob.upload_blob(b"two", overwrite=True)
    assert blob.get_blob_properties().lease.state == "available"


def test_a_lease_lasts_within_limits(container):
    blob = container.upload_blob("b", b"one")
    for seconds in [14, 61, 0]:
        assert code(lambda: blob.acquire_lease(lease_duration=seconds)) == "InvalidHeaderValue"
