"""Reading: ranges, conditions, checksums of ranges, what is not there."""

import datetime

import pytest
from azure.core import MatchConditions

from refusals import code, refusal, status

TEXT = b"0123456789"


@pytest.mark.parametrize(
    "offset, length, expected",
    [(0, 1, b"0"), (2, 3, b"234"), (9, 1, b"9"), (5, None, b"56789"), (8, 100, b"89")],
    ids=["first", "middle", "last", "to the end", "past the end"],
)
def test_a_range_is_what_it_says(container, offset, length, expected):
    blob = container.upload_blob("b", TEXT)
    assert blob.download_blob(offset=offset, length=length).readall() == expected


def test_a_range_behind_the_end_is_refused(container):
    blob = container.upload_blob("b", TEXT)
    error = refusal(lambda: blob.download_blob(offset=10, length=1))
    assert (error.status_code, error.error_code) == (416, "InvalidRange")


def test_a_blob_that_is_not_there_is_not_found(container):
    blob = container.get_blob_client("b")
    assert not blob.exists()
    for call in [
        blob.download_blob,
        blob.get_blob_properties,
        blob.delete_blob,
        blob.create_snapshot,
        blob.acquire_lease,
        lambda: blob.set_blob_metadata({"a": "b"}),
        lambda: blob.set_http_headers(),
        lambda: blob.set_standard_blob_tier("Cool"),
    ]:
        assert code(call) == "BlobNotFound"


def test_conditions_guard_a_read(container):
    blob = container.upload_blob("b", TEXT)
    properties = blob.get_blob_properties()
    etag, modified = properties.etag, properties.last_modified
    hour = datetime.timedelta(hours=1)
    unchanged = lambda: blob.download_blob(etag=etag, match_condition=MatchConditions.IfModified)
    assert status(unchanged) == 304
    assert status(lambda: blob.get_blob_properties(if_modified_since=modified + hour)) == 304
    other = lambda: blob.download_blob(
        etag='"0x8D000000000000"', match_condition=MatchConditions.IfNotModified
    )
    assert code(other) == "ConditionNotMet"
    assert status(lambda: blob.download_blob(if_unmodified_since=modified - hour)) == 412
    same = blob.download_blob(etag=etag, match_condition=MatchConditions.IfNotModified)
    assert same.readall() == TEXT


def test_a_range_comes_with_its_checksum(container):
    blob = container.upload_blob("b", TEXT)
    assert blob.download_blob(offset=2, length=3, validate_content=True).readall() == b"234"


def test_properties_say_what_kind_of_blob_it_is(container):
    blob = container.upload_blob("b", TEXT)
    properties = blob.get_blob_properties()
    assert properties.size == 10 and properties.blob_type == "BlockBlob"
    assert properties.lease.state == "available" and properties.lease.status == "unlocked"
    assert properties.blob_tier == "Hot" and properties.blob_tier_inferred
    assert properties.server_encrypted
    assert properties.creation_time == properties.last_modified
    assert properties.copy.id is None and properties.snapshot is None


def test_headers_are_replaced_as_a_whole(container):
    from azure.storage.blob import ContentSettings

    blob = container.upload_blob(
        "b", TEXT, content_settings=ContentSettings(content_type="text/plain", cache_control="x")
    )
    before = blob.get_blob_properties()
    blob.set_http_headers(ContentSettings(content_language="de"))
    after = blob.get_blob_properties()
    kept = after.content_settings
    assert kept.content_language == "de" and kept.cache_control is None
    assert kept.content_md5 is None
    assert after.etag != before.etag and after.creation_time == before.creation_time


def test_metadata_of_a_blob_is_replaced_as_a_whole(container):
    blob = container.upload_blob("b", TEXT, metadata={"one": "1"})
    blob.set_blob_metadata({"two": "2"})
    assert blob.get_blob_properties().metadata == {"two": "2"}
    blob.set_blob_metadata()
    assert blob.get_blob_properties().metadata == {}
    assert blob.download_blob().readall() == TEXT
