"""Whole blobs: put, read, overwrite, conditions, checksums, headers."""

import datetime
import hashlib

import pytest
from azure.core import MatchConditions
from azure.storage.blob import BlobType, ContentSettings

from refusals import code, status

MANY = bytes(range(256)) * 4096


def test_what_was_put_is_read(container):
    blob = container.get_blob_client("folder/some blob.txt")
    put = blob.upload_blob(b"hello", metadata={"one": "1"})
    read = blob.download_blob()
    assert read.readall() == b"hello"
    assert read.properties.etag == put["etag"]
    assert read.properties.metadata == {"one": "1"}
    assert read.properties.blob_type == BlobType.BLOCKBLOB
    assert read.properties.content_settings.content_type == "application/octet-stream"
    assert bytes(read.properties.content_settings.content_md5) == hashlib.md5(b"hello").digest()


@pytest.mark.parametrize("size", [0, 1, 65536, 1 << 20])
def test_blobs_of_any_size_come_back(container, size):
    data = MANY[:size]
    blob = container.upload_blob("sized", data)
    assert blob.download_blob().readall() == data
    assert blob.get_blob_properties().size == size


def test_a_large_blob_goes_up_and_down_in_pieces(container):
    data = MANY * 9
    blob = container.get_blob_client("large")
    blob._config.max_single_put_size = 1 << 20
    blob._config.max_block_size = 1 << 20
    blob.upload_blob(data, max_concurrency=4)
    assert blob.download_blob(max_concurrency=4).readall() == data
    committed, uncommitted = blob.get_block_list("all")
    assert len(committed) == 9 and uncommitted == []


def test_an_existing_blob_is_overwritten_only_when_asked(container):
    blob = container.upload_blob("b", b"one")
    assert code(lambda: blob.upload_blob(b"two")) == "BlobAlreadyExists"
    blob.upload_blob(b"two", overwrite=True)
    assert blob.download_blob().readall() == b"two"
    assert blob.get_blob_properties().metadata == {}


def test_names_are_kept_as_they_are(container):
    names = ["a b", "ä/ö.txt", "100%", "a+b", "plus&and=?#", "dots...", "UPPER"]
    for name in names:
        container.upload_blob(name, name.encode())
    assert sorted(blob.name for blob in container.list_blobs()) == sorted(names)
    for name in names:
        assert container.download_blob(name).readall() == name.encode()


def test_headers_are_given_back(container):
    settings = ContentSettings(
        content_type="text/plain",
        content_encoding="identity",
        content_language="en",
        content_disposition="inline",
        cache_control="no-cache",
    )
    blob = container.upload_blob("b", b"x", content_settings=settings)
    kept = blob.get_blob_properties().content_settings
    for name in [
        "content_type",
        "content_encoding",
        "content_language",
        "content_disposition",
        "cache_control",
    ]:
        assert kept[name] == settings[name]


def test_conditions_guard_a_put(container):
    blob = container.get_blob_client("b")
    first = blob.upload_blob(b"one")["etag"]
    second = blob.upload_blob(b"two", overwrite=True, etag=first, match_condition=MatchConditions.IfNotModified)
    refused = lambda: blob.upload_blob(
        b"three", overwrite=True, etag=first, match_condition=MatchConditions.IfNotModified
    )
    assert code(refused) == "ConditionNotMet"
    refused = lambda: blob.upload_blob(
        b"three", overwrite=True, etag=second["etag"], match_condition=MatchConditions.IfModified
    )
    assert code(refused) == "ConditionNotMet"
    later = second["last_modified"] + datetime.timedelta(hours=1)
    refused = lambda: blob.upload_blob(b"three", overwrite=True, if_modified_since=later)
    assert code(refused) == "ConditionNotMet"
    earlier = second["last_modified"] - datetime.timedelta(hours=1)
    refused = lambda: blob.upload_blob(b"three", overwrite=True, if_unmodified_since=earlier)
    assert code(refused) == "ConditionNotMet"
    assert blob.download_blob().readall() == b"two"


def test_a_condition_on_what_is_not_there_does_not_hold(container):
    blob = container.get_blob_client("b")
    refused = lambda: blob.upload_blob(
        b"x", overwrite=True, etag='"0x8D000000000000"', match_condition=MatchConditions.IfNotModified
    )
    assert code(refused) == "ConditionNotMet"
    assert not blob.exists()


def test_a_wrong_checksum_is_refused(container):
    blob = container.get_blob_client("b")
    blob.upload_blob(b"x", validate_content=True)
    wrong = {"Content-MD5": "1B2M2Y8AsgTpgAmY7PhCfg=="}
    assert code(lambda: blob.upload_blob(b"y", overwrite=True, headers=wrong)) == "Md5Mismatch"
    broken = {"Content-MD5": "abc"}
    assert code(lambda: blob.upload_blob(b"y", overwrite=True, headers=broken)) == "InvalidMd5"
    assert blob.download_blob().readall() == b"x"


def test_metadata_has_its_limits(container):
    refused = lambda: container.upload_blob("b", b"x", metadata={"big": "v" * 8300})
    assert status(refused) == 400
    assert code(lambda: container.upload_blob("b", b"x", metadata={"no-good": "v"})) == "InvalidMetadata"
    assert not container.get_blob_client("b").exists()
