// Whole blobs: put, read, overwrite, conditions, checksums, headers.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";

import { NO_ETAG, bytes, code, freshContainer, names, put, status, text } from "./blobs.mjs";
import { test } from "./target.mjs";

const MANY = Buffer.concat(Array(4096).fill(Buffer.from(Array.from({ length: 256 }, (_, n) => n))));
const md5 = (data) => createHash("md5").update(data).digest();
const IF_NONE = { conditions: { ifNoneMatch: "*" } };

test("test_what_was_put_is_read", async () => {
  const blob = (await freshContainer()).getBlockBlobClient("folder/some blob.txt");
  const done = await blob.upload("hello", 5, { metadata: { one: "1" } });
  const read = await blob.download();
  assert.equal(await text(blob), "hello");
  assert.equal(read.etag, done.etag);
  assert.deepEqual(read.metadata, { one: "1" });
  assert.equal(read.blobType, "BlockBlob");
  assert.equal(read.contentType, "application/octet-stream");
  assert.deepEqual(Buffer.from(read.contentMD5), md5("hello"));
});

for (const size of [0, 1, 65536, 1 << 20]) {
  test(`test_blobs_of_any_size_come_back[${size}]`, async () => {
    const data = MANY.subarray(0, size);
    const blob = await put(await freshContainer(), "sized", data);
    assert.deepEqual(await bytes(blob), data);
    assert.equal((await blob.getProperties()).contentLength, size);
  });
}

test("test_a_large_blob_goes_up_and_down_in_pieces", async () => {
  const data = Buffer.concat(Array(9).fill(MANY));
  const blob = (await freshContainer()).getBlockBlobClient("large");
  const terms = { maxSingleShotSize: 1 << 20, blockSize: 1 << 20, concurrency: 4 };
  await blob.uploadData(data, terms);
  assert.deepEqual(await blob.downloadToBuffer(0, undefined, { concurrency: 4 }), data);
  const list = await blob.getBlockList("all");
  assert.equal(list.committedBlocks.length, 9);
  assert.equal(list.uncommittedBlocks?.length ?? 0, 0);
});

test("test_an_existing_blob_is_overwritten_only_when_asked", async () => {
  const container = await freshContainer();
  const blob = await put(container, "b", "one");
  assert.equal(await code(() => put(container, "b", "two", IF_NONE)), "BlobAlreadyExists");
  await put(container, "b", "two");
  assert.equal(await text(blob), "two");
  assert.deepEqual((await blob.getProperties()).metadata, {});
});

test("test_names_are_kept_as_they_are", async () => {
  const container = await freshContainer();
  const expected = ["a b", "ä/ö.txt", "100%", "a+b", "plus&and=?#", "dots...", "UPPER"];
  for (const name of expected) {
    await put(container, name, name);
  }
  assert.deepEqual((await names(container.listBlobsFlat())).sort(), [...expected].sort());
  for (const name of expected) {
    assert.equal(await text(container.getBlobClient(name)), name);
  }
});

test("test_headers_are_given_back", async () => {
  const blobHTTPHeaders = {
    blobContentType: "text/plain",
    blobContentEncoding: "identity",
    blobContentLanguage: "en",
    blobContentDisposition: "inline",
    blobCacheControl: "no-cache",
  };
  const blob = await put(await freshContainer(), "b", "x", { blobHTTPHeaders });
  const kept = await blob.getProperties();
  assert.equal(kept.contentType, "text/plain");
  assert.equal(kept.contentEncoding, "identity");
  assert.equal(kept.contentLanguage, "en");
  assert.equal(kept.contentDisposition, "inline");
  assert.equal(kept.cacheControl, "no-cache");
});

test("test_conditions_guard_a_put", async () => {
  const container = await freshContainer();
  const blob = container.getBlockBlobClient("b");
  const { etag: first } = await blob.upload("one", 3);
  const second = await blob.upload("two", 3, { conditions: { ifMatch: first } });
  const modified = second.lastModified.getTime();
  for (const conditions of [
    { ifMatch: first },
    { ifNoneMatch: second.etag },
    { ifModifiedSince: new Date(modified + 3_600_000) },
    { ifUnmodifiedSince: new Date(modified - 3_600_000) },
  ]) {
    assert.equal(await code(() => blob.upload("three", 5, { conditions })), "ConditionNotMet");
  }
  assert.equal(await text(blob), "two");
});

test("test_a_condition_on_what_is_not_there_does_not_hold", async () => {
  const blob = (await freshContainer()).getBlockBlobClient("b");
  const refused = () => blob.upload("x", 1, { conditions: { ifMatch: NO_ETAG } });
  assert.equal(await code(refused), "ConditionNotMet");
  assert.equal(await blob.exists(), false);
});

test("test_a_wrong_checksum_is_refused", async () => {
  const blob = (await freshContainer()).getBlockBlobClient("b");
  await blob.stageBlock("MQ==", "x", 1, { transactionalContentMD5: md5("x") });
  await blob.commitBlockList(["MQ=="]);
  const stage = (sum) => blob.stageBlock("Mg==", "y", 1, { transactionalContentMD5: sum });
  assert.equal(await code(() => stage(md5(""))), "Md5Mismatch");
  assert.equal(await code(() => stage(Buffer.from("abc"))), "InvalidMd5");
  assert.equal(await text(blob), "x");
});

test("test_metadata_has_its_limits", async () => {
  const container = await freshContainer();
  const big = { metadata: { big: "v".repeat(8300) } };
  assert.equal(await status(() => put(container, "b", "x", big)), 400);
  const bad = { metadata: { "no-good": "v" } };
  assert.equal(await code(() => put(container, "b", "x", bad)), "InvalidMetadata");
  assert.equal(await container.getBlobClient("b").exists(), false);
});
