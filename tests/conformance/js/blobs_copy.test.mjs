// Copies: at once or in the background, within the account, by signature, aborted too late.

import assert from "node:assert/strict";

import { NO_ETAG, bytes, code, freshContainer, put, readUrl, status, text } from "./blobs.mjs";
import { test } from "./target.mjs";

async function filled(terms) {
  const container = await freshContainer();
  const source = await put(container, "source", "hello", terms);
  return { container, source, blob: container.getBlockBlobClient("copy") };
}

const copied = async (blob, url, terms) =>
  (await blob.beginCopyFromURL(url, terms)).pollUntilDone();

test("test_a_copy_is_a_blob_of_its_own", async () => {
  const { source, blob } = await filled({ metadata: { a: "b" } });
  const copy = await copied(blob, source.url);
  assert(copy.copyStatus === "success" && copy.copyId);
  await source.delete();
  assert.equal(await text(blob), "hello");
  const properties = await blob.getProperties();
  assert.deepEqual(properties.metadata, { a: "b" });
  assert.deepEqual([properties.copyStatus, properties.copyId], ["success", copy.copyId]);
  assert.equal(properties.copyProgress, "5/5");
  assert(properties.copySource.endsWith("/source"));
});

test("test_a_copy_may_have_metadata_of_its_own", async () => {
  const { source, blob } = await filled({ metadata: { a: "b" } });
  await copied(blob, source.url, { metadata: { c: "d" } });
  assert.deepEqual((await blob.getProperties()).metadata, { c: "d" });
});

test("test_a_copy_at_once_needs_no_waiting", async () => {
  const { source, blob } = await filled();
  assert.equal((await blob.syncCopyFromURL(readUrl(source))).copyStatus, "success");
  assert.equal(await text(blob), "hello");
});

// Azurite does not know Put Blob From URL.
test("test_a_blob_is_put_from_a_url", async () => {
  const { container, source } = await filled();
  const blob = container.getBlockBlobClient("put");
  await blob.syncUploadFromURL(readUrl(source));
  assert.equal(await text(blob), "hello");
  const again = () => blob.syncUploadFromURL(readUrl(source), { conditions: { ifNoneMatch: "*" } });
  assert.equal(await code(again), "BlobAlreadyExists");
});

test("test_a_source_that_is_not_there_is_not_found", async () => {
  const { container, blob } = await filled();
  const missing = container.getBlobClient("missing");
  assert.equal(await status(() => copied(blob, missing.url)), 404);
  assert.equal(await blob.exists(), false);
});

test("test_conditions_guard_source_and_target_of_a_copy", async () => {
  const { container, source } = await filled();
  const target = await put(container, "target", "old");
  const start = (terms) => code(() => copied(target, source.url, terms));
  assert.equal(await start({ sourceConditions: { ifMatch: NO_ETAG } }), "SourceConditionNotMet");
  assert.equal(await start({ conditions: { ifMatch: NO_ETAG } }), "TargetConditionNotMet");
  assert.equal(await text(target), "old");
});

test("test_a_lease_guards_the_target_of_a_copy", async () => {
  const { container, source } = await filled();
  const target = await put(container, "target", "old");
  const { leaseId } = await target.getBlobLeaseClient().acquireLease(15);
  assert.equal(await code(() => copied(target, source.url)), "LeaseIdMissing");
  await copied(target, source.url, { conditions: { leaseId } });
  assert.equal(await text(target), "hello");
});

test("test_a_copy_that_is_done_is_not_aborted", async () => {
  const { source, blob } = await filled();
  const { copyId } = await copied(blob, source.url);
  assert.equal(await code(() => blob.abortCopyFromURL(copyId)), "NoPendingCopyOperation");
});

test("test_copies_keep_the_kind_of_blob", async () => {
  const container = await freshContainer();
  const append = container.getAppendBlobClient("append");
  await append.create();
  await append.appendBlock("one", 3);
  const page = container.getPageBlobClient("page");
  await page.create(512);
  await page.uploadPages("p".repeat(512), 0, 512);
  for (const [source, kind] of [[append, "AppendBlob"], [page, "PageBlob"]]) {
    const blob = container.getBlobClient(`copy of ${kind}`);
    await copied(blob, source.url);
    assert.equal((await blob.getProperties()).blobType, kind);
    assert.deepEqual(await bytes(blob), await bytes(source));
  }
});
