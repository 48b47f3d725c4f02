"""Append blobs: grow at their end, within conditions, until they are sealed."""

from refusals import code


def test_an_append_blob_grows(container):
    blob = container.get_blob_client("a")
    blob.create_append_blob(metadata={"one": "1"})
    first = blob.append_block(b"one")
    second = blob.append_block(b"two")
    assert (first["blob_append_offset"], first["blob_committed_block_count"]) == ("0", 1)
    assert (second["blob_append_offset"], second["blob_committed_block_count"]) == ("3", 2)
    assert blob.download_blob().readall() == b"onetwo"
    properties = blob.get_blob_properties()
    assert properties.blob_type == "AppendBlob" and properties.size == 6
    assert properties.append_blob_committed_block_count == 2
    assert properties.metadata == {"one": "1"}


def test_uploads_append_to_what_is_there(container):
    blob = container.get_blob_client("a")
    blob.upload_blob(b"one", blob_type="AppendBlob")
    blob.upload_blob(b"two", blob_type="AppendBlob")
    assert blob.download_blob().readall() == b"onetwo"
    blob.upload_blob(b"new", blob_type="AppendBlob", overwrite=True)
    assert blob.download_blob().readall() == b"new"


def test_conditions_guard_an_append(container):
    blob = container.get_blob_client("a")
    blob.create_append_blob()
    blob.append_block(b"0123", appendpos_condition=0, maxsize_condition=4)
    refused = lambda: blob.append_block(b"x", appendpos_condition=3)
    assert code(refused) == "AppendPositionConditionNotMet"
    refused = lambda: blob.append_block(b"x", maxsize_condition=4)
    assert code(refused) == "MaxBlobSizeConditionNotMet"
    assert blob.download_blob().readall() == b"0123"


def test_only_an_append_blob_is_appended_to(container):
    blob = container.upload_blob("b", b"x")
    assert code(lambda: blob.append_block(b"y")) == "InvalidBlobType"
    missing = container.get_blob_client("missing")
    assert code(lambda: missing.append_block(b"y")) == "BlobNotFound"


def test_a_sealed_blob_does_not_grow(container):
    blob = container.get_blob_client("a")
    blob.create_append_blob()
    blob.append_block(b"one")
    assert blob.seal_append_blob()["blob_sealed"]
    assert code(lambda: blob.append_block(b"two")) == "BlobIsSealed"
    assert blob.get_blob_properties().is_append_blob_sealed
    assert blob.download_blob().readall() == b"one"


def test_an_append_with_a_wrong_checksum_is_refused(container):
    blob = container.get_blob_client("a")
    blob.create_append_blob()
    blob.append_block(b"one", validate_content=True)
    wrong = {"Content-MD5": "1B2M2Y8AsgTpgAmY7PhCfg=="}
    assert code(lambda: blob.append_block(b"two", headers=wrong)) == "Md5Mismatch"
    assert blob.download_blob().readall() == b"one"


def test_an_append_comes_from_a_url(container, read_url):
    source = container.upload_blob("source", b"0123456789")
    blob = container.get_blob_client("a")
    blob.create_append_blob()
    blob.append_block_from_url(read_url(source), source_offset=2, source_length=3)
    assert blob.download_blob().readall() == b"234"
