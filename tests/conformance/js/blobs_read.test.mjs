// Reading: ranges, conditions, checksums of ranges, what is not there.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";

import { NO_ETAG, code, freshContainer, put, status, text } from "./blobs.mjs";
import { refusal, test } from "./target.mjs";

const TEXT = "0123456789";
const filled = async (terms) => put(await freshContainer(), "b", TEXT, terms);

for (const [id, offset, length, expected] of [
  ["first", 0, 1, "0"],
  ["middle", 2, 3, "234"],
  ["last", 9, 1, "9"],
  ["to the end", 5, undefined, "56789"],
  ["past the end", 8, 100, "89"],
]) {
  test(`test_a_range_is_what_it_says[${id}]`, async () => {
    assert.equal(await text(await filled(), offset, length), expected);
  });
}

test("test_a_range_behind_the_end_is_refused", async () => {
  const blob = await filled();
  const error = await refusal(() => blob.download(10, 1));
  assert.equal(error.statusCode, 416);
  assert.equal(error.response.headers.get("x-ms-error-code"), "InvalidRange");
});

test("test_a_blob_that_is_not_there_is_not_found", async () => {
  const blob = (await freshContainer()).getBlobClient("b");
  assert.equal(await blob.exists(), false);
  for (const call of [
    () => blob.download(),
    () => blob.getProperties(),
    () => blob.delete(),
    () => blob.createSnapshot(),
    () => blob.getBlobLeaseClient().acquireLease(15),
    () => blob.setMetadata({ a: "b" }),
    () => blob.setHTTPHeaders({}),
    () => blob.setAccessTier("Cool"),
  ]) {
    assert.equal(await code(call), "BlobNotFound");
  }
});

test("test_conditions_guard_a_read", async () => {
  const blob = await filled();
  const { etag, lastModified } = await blob.getProperties();
  const at = (hours) => new Date(lastModified.getTime() + hours * 3_600_000);
  const read = (conditions) => blob.download(0, undefined, { conditions });
  assert.equal(await status(() => read({ ifNoneMatch: etag })), 304);
  const looked = () => blob.getProperties({ conditions: { ifModifiedSince: at(1) } });
  assert.equal(await status(looked), 304);
  assert.equal(await code(() => read({ ifMatch: NO_ETAG })), "ConditionNotMet");
  assert.equal(await status(() => read({ ifUnmodifiedSince: at(-1) })), 412);
  assert.equal(await text(blob, 0, undefined, { conditions: { ifMatch: etag } }), TEXT);
});

test("test_a_range_comes_with_its_checksum", async () => {
  const blob = await filled();
  const read = await blob.download(2, 3, { rangeGetContentMD5: true });
  const expected = createHash("md5").update("234").digest();
  assert.deepEqual(Buffer.from(read.contentMD5), expected);
});

test("test_properties_say_what_kind_of_blob_it_is", async () => {
  const properties = await (await filled()).getProperties();
  assert.equal(properties.contentLength, 10);
  assert.equal(properties.blobType, "BlockBlob");
  assert.deepEqual([properties.leaseState, properties.leaseStatus], ["available", "unlocked"]);
  assert.equal(properties.accessTier, "Hot");
  assert(properties.accessTierInferred && properties.isServerEncrypted);
  assert.deepEqual(properties.createdOn, properties.lastModified);
  assert.equal(properties.copyId, undefined);
});

test("test_headers_are_replaced_as_a_whole", async () => {
  const blob = await filled({
    blobHTTPHeaders: { blobContentType: "text/plain", blobCacheControl: "x" },
  });
  const before = await blob.getProperties();
  await blob.setHTTPHeaders({ blobContentLanguage: "de" });
  const after = await blob.getProperties();
  assert.equal(after.contentLanguage, "de");
  assert.equal(after.cacheControl, undefined);
  assert.equal(after.contentMD5, undefined);
  assert.notEqual(after.etag, before.etag);
  assert.deepEqual(after.createdOn, before.createdOn);
});

test("test_metadata_of_a_blob_is_replaced_as_a_whole", async () => {
  const blob = await filled({ metadata: { one: "1" } });
  await blob.setMetadata({ two: "2" });
  assert.deepEqual((await blob.getProperties()).metadata, { two: "2" });
  await blob.setMetadata();
  assert.deepEqual((await blob.getProperties()).metadata, {});
  assert.equal(await text(blob), TEXT);
});
