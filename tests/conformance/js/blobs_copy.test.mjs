// Copies: at once or in the background, within the account, from another server, by signature, aborted too late.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";

import {
  NO_ETAG,
  bytes,
  code,
  freshContainer,
  otherBlobs,
  put,
  readUrl,
  status,
  text,
} from "./blobs.mjs";
import { refusal, test } from "./target.mjs";

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

test("test_a_copy_has_the_tags_of_its_source_or_its_own", async () => {
  const { source, blob } = await filled({ tags: { a: "1" } });
  await blob.syncCopyFromURL(readUrl(source), { copySourceTags: "COPY" });
  assert.deepEqual((await blob.getTags()).tags, { a: "1" });
  await blob.syncCopyFromURL(readUrl(source), { tags: { b: "2" } });
  assert.deepEqual((await blob.getTags()).tags, { b: "2" });
});

test("test_a_copy_at_once_checks_its_source", async () => {
  const { source, blob } = await filled();
  const md5 = (content) => createHash("md5").update(content).digest();
  const start = (sourceContentMD5) => blob.syncCopyFromURL(readUrl(source), { sourceContentMD5 });
  assert.equal(await code(() => start(md5("other"))), "Md5Mismatch");
  assert.equal(await blob.exists(), false);
  assert.equal((await start(md5("hello"))).copyStatus, "success");
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

/** A blob of another server, and a container of this one. */
async function apart(content, terms) {
  const source = await put(await freshContainer(otherBlobs), "source", content, terms);
  return { source, container: await freshContainer() };
}

// Azurite copies within itself only, as the tests below show too.
test("test_a_copy_comes_from_another_server", async () => {
  const { source, container } = await apart("hello", { metadata: { a: "b" } });
  const ways = { sync: (blob, url) => blob.syncCopyFromURL(url), background: copied };
  for (const [name, way] of Object.entries(ways)) {
    const blob = container.getBlobClient(name);
    assert.equal((await way(blob, readUrl(source))).copyStatus, "success");
    assert.equal(await text(blob), "hello");
    const properties = await blob.getProperties();
    assert.deepEqual(properties.metadata, { a: "b" });
    assert.equal(properties.copyProgress, "5/5");
  }
});

test("test_a_blob_is_put_from_another_server", async () => {
  const { source, container } = await apart("hello".repeat(100_000));
  const blob = container.getBlockBlobClient("put");
  await blob.syncUploadFromURL(readUrl(source));
  assert.equal(await text(blob), "hello".repeat(100_000));
});

test("test_parts_of_a_blob_come_from_another_server", async () => {
  const content = Buffer.from(Array.from({ length: 1024 }, (_, at) => at % 256));
  const { source, container } = await apart(content);
  const url = readUrl(source);
  const blocks = container.getBlockBlobClient("blocks");
  const ids = ["1", "2"].map((id) => Buffer.from(id).toString("base64"));
  await blocks.stageBlockFromURL(ids[0], url, 512, 512);
  await blocks.stageBlockFromURL(ids[1], url, 10, 5);
  await blocks.commitBlockList(ids);
  const parts = Buffer.concat([content.subarray(512), content.subarray(10, 15)]);
  assert.deepEqual(await bytes(blocks), parts);
  const append = container.getAppendBlobClient("append");
  await append.create();
  await append.appendBlockFromURL(url, 0, 1024);
  await append.appendBlockFromURL(url, 1, 3);
  assert.deepEqual(await bytes(append), Buffer.concat([content, content.subarray(1, 4)]));
  const pages = container.getPageBlobClient("pages");
  await pages.create(1024);
  await pages.uploadPagesFromURL(url, 0, 512, 512);
  const half = Buffer.concat([Buffer.alloc(512), content.subarray(0, 512)]);
  assert.deepEqual(await bytes(pages), half);
});

test("test_conditions_hold_on_another_server", async () => {
  const { source, container } = await apart("hello");
  const blob = container.getBlobClient("copy");
  const start = (ifMatch) => copied(blob, readUrl(source), { sourceConditions: { ifMatch } });
  assert.equal(await code(() => start(NO_ETAG)), "SourceConditionNotMet");
  assert.equal(await blob.exists(), false);
  await start((await source.getProperties()).etag);
  assert.equal(await text(blob), "hello");
});

test("test_another_server_must_let_the_copy_in", async () => {
  const { source, container } = await apart("hello");
  const blob = container.getBlobClient("copy");
  assert.equal(await code(() => copied(blob, source.url)), "CannotVerifyCopySource");
  assert.equal(await blob.exists(), false);
});

// The address is one that is set aside for documentation.
test("test_a_copy_asks_no_server_that_is_not_allowed", async () => {
  const blob = (await freshContainer()).getBlockBlobClient("copy");
  const elsewhere = "http://192.0.2.1/container/blob";
  const id = Buffer.from("1").toString("base64");
  for (const call of [
    () => copied(blob, elsewhere),
    () => blob.syncCopyFromURL(elsewhere),
    () => blob.syncUploadFromURL(elsewhere),
    () => blob.stageBlockFromURL(id, elsewhere),
  ]) {
    const error = await refusal(call);
    assert.equal(error.response.headers.get("x-ms-error-code"), "CannotVerifyCopySource");
    assert.equal(error.statusCode, 403);
  }
  assert.equal(await blob.exists(), false);
});
