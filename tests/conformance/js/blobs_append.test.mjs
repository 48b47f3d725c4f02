// Append blobs: grow at their end, within conditions, until they are sealed.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";

import { code, freshContainer, put, readUrl, text } from "./blobs.mjs";
import { test } from "./target.mjs";

const append = (blob, content, terms) => blob.appendBlock(content, content.length, terms);

async function fresh(terms) {
  const blob = (await freshContainer()).getAppendBlobClient("a");
  await blob.create(terms);
  return blob;
}

test("test_an_append_blob_grows", async () => {
  const blob = await fresh({ metadata: { one: "1" } });
  const first = await append(blob, "one");
  const second = await append(blob, "two");
  assert.deepEqual([first.blobAppendOffset, first.blobCommittedBlockCount], ["0", 1]);
  assert.deepEqual([second.blobAppendOffset, second.blobCommittedBlockCount], ["3", 2]);
  assert.equal(await text(blob), "onetwo");
  const properties = await blob.getProperties();
  assert.deepEqual([properties.blobType, properties.contentLength], ["AppendBlob", 6]);
  assert.equal(properties.blobCommittedBlockCount, 2);
  assert.deepEqual(properties.metadata, { one: "1" });
});

test("test_uploads_append_to_what_is_there", async () => {
  const blob = await fresh();
  await blob.createIfNotExists();
  await append(blob, "one");
  await append(blob, "two");
  assert.equal(await text(blob), "onetwo");
  await blob.create();
  await append(blob, "new");
  assert.equal(await text(blob), "new");
});

test("test_conditions_guard_an_append", async () => {
  const blob = await fresh();
  await append(blob, "0123", { conditions: { appendPosition: 0, maxSize: 4 } });
  const refused = (conditions) => code(() => append(blob, "x", { conditions }));
  assert.equal(await refused({ appendPosition: 3 }), "AppendPositionConditionNotMet");
  assert.equal(await refused({ maxSize: 4 }), "MaxBlobSizeConditionNotMet");
  assert.equal(await text(blob), "0123");
});

test("test_only_an_append_blob_is_appended_to", async () => {
  const container = await freshContainer();
  await put(container, "b", "x");
  const refused = (name) => code(() => append(container.getAppendBlobClient(name), "y"));
  assert.equal(await refused("b"), "InvalidBlobType");
  assert.equal(await refused("missing"), "BlobNotFound");
});

test("test_a_sealed_blob_does_not_grow", async () => {
  const blob = await fresh();
  await append(blob, "one");
  assert((await blob.seal()).isSealed);
  assert.equal(await code(() => append(blob, "two")), "BlobIsSealed");
  assert((await blob.getProperties()).isSealed);
  assert.equal(await text(blob), "one");
});

test("test_an_append_with_a_wrong_checksum_is_refused", async () => {
  const blob = await fresh();
  const sum = (content) => createHash("md5").update(content).digest();
  await append(blob, "one", { transactionalContentMD5: sum("one") });
  const wrong = () => append(blob, "two", { transactionalContentMD5: sum("") });
  assert.equal(await code(wrong), "Md5Mismatch");
  assert.equal(await text(blob), "one");
});

test("test_an_append_comes_from_a_url", async () => {
  const container = await freshContainer();
  const source = await put(container, "source", "0123456789");
  const blob = container.getAppendBlobClient("a");
  await blob.create();
  await blob.appendBlockFromURL(readUrl(source), 2, 3);
  assert.equal(await text(blob), "234");
});
