"""Tiers: hot, cool, cold, archived and brought back."""

import pytest

from azure.storage.blob import StandardBlobTier

from refusals import code, status


@pytest.mark.parametrize("tier", ["Hot", "Cool", "Cold"])
def test_a_tier_is_set(container, tier):
    blob = container.upload_blob("b", b"x")
    assert blob.get_blob_properties().blob_tier_inferred
    blob.set_standard_blob_tier(tier)
    properties = blob.get_blob_properties()
    assert properties.blob_tier == tier and not properties.blob_tier_inferred
    (item,) = container.list_blobs()
    assert item.blob_tier == tier


def test_a_blob_is_put_into_a_tier(container):
    blob = container.upload_blob("b", b"x", standard_blob_tier=StandardBlobTier.COOL)
    assert blob.get_blob_properties().blob_tier == "Cool"


def test_an_archived_blob_is_not_read(container):
    blob = container.upload_blob("b", b"x")
    blob.set_standard_blob_tier("Archive")
    assert blob.get_blob_properties().blob_tier == "Archive"
    assert code(blob.download_blob) == "BlobArchived"


def test_an_archived_blob_is_brought_back(container):
    blob = container.upload_blob("b", b"x")
    blob.set_standard_blob_tier("Archive")
    blob.set_standard_blob_tier("Hot", rehydrate_priority="High")
    properties = blob.get_blob_properties()
    assert (properties.blob_tier, properties.archive_status) in [
        ("Archive", "rehydrate-pending-to-hot"),
        ("Hot", None),
    ]


def test_a_tier_of_other_blobs_is_refused(container):
    blob = container.upload_blob("b", b"x")
    assert status(lambda: blob.set_standard_blob_tier("P10")) == 400
