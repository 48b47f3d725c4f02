// Blobs through the last SDK of the older generation.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";

import { address, call, connection, fresh, minutes, refusal, storage } from "./target.mjs";

const blobs = storage.createBlobService(connection);

async function container() {
  const name = fresh("c");
  await call(blobs, "createContainer", name);
  return name;
}

const put = (name, blob, text, options = {}) =>
  call(blobs, "createBlockBlobFromText", name, blob, text, options);
const text = (name, blob, options = {}) => call(blobs, "getBlobToText", name, blob, options);

test("a container is created, found, listed and deleted", async () => {
  const name = fresh("c");
  assert.equal((await call(blobs, "doesContainerExist", name)).exists, false);
  assert.equal((await call(blobs, "createContainerIfNotExists", name)).created, true);
  assert.equal((await call(blobs, "createContainerIfNotExists", name)).created, false);
  await call(blobs, "setContainerMetadata", name, { a: "b" });
  assert.deepEqual((await call(blobs, "getContainerProperties", name)).metadata, { a: "b" });
  const listed = await call(blobs, "listContainersSegmentedWithPrefix", name, null);
  assert.deepEqual(listed.entries.map((entry) => entry.name), [name]);
  await call(blobs, "deleteContainer", name);
  assert.equal(await refusal(call(blobs, "deleteContainer", name)), "404 ContainerNotFound");
});

test("a blob is put, read, described, copied and deleted", async () => {
  const name = await container();
  await put(name, "folder/ä b.txt", "hällo", {
    contentSettings: { contentType: "text/plain", cacheControl: "no-store" },
    metadata: { color: "red" },
  });
  assert.equal(await text(name, "folder/ä b.txt"), "hällo");
  assert.equal(await text(name, "folder/ä b.txt", { rangeStart: 3, rangeEnd: 4 }), "ll");
  const found = await call(blobs, "getBlobProperties", name, "folder/ä b.txt");
  assert.deepEqual(
    [found.contentLength, found.contentSettings.contentType, found.metadata.color, found.blobType],
    ["6", "text/plain", "red", "BlockBlob"],
  );
  await call(blobs, "setBlobMetadata", name, "folder/ä b.txt", { color: "blue" });
  const source = blobs.getUrl(name, "folder/ä b.txt");
  const copied = await call(blobs, "startCopyBlob", source, name, "copy");
  assert.equal(copied.copy.status, "success");
  assert.equal(await text(name, "copy"), "hällo");
  const stale = put(name, "copy", "x", { accessConditions: { EtagMatch: "\"0x8D\"" } });
  assert.equal(await refusal(stale), "412 ConditionNotMet");
  await call(blobs, "deleteBlob", name, "copy");
  assert.equal(await call(blobs, "deleteBlobIfExists", name, "copy"), false);
  assert.equal((await call(blobs, "doesBlobExist", name, "copy")).exists, false);
  assert.equal(await refusal(text(name, "copy")), "404 BlobNotFound");
  await call(blobs, "deleteContainer", name);
});

test("blobs are listed page by page and by folder", async () => {
  const name = await container();
  for (const blob of ["a/1", "a/2", "b/1", "c"]) await put(name, blob, blob);
  const found = [];
  let token = null;
  do {
    const page = await call(blobs, "listBlobsSegmented", name, token, { maxResults: 3 });
    found.push(...page.entries.map((entry) => entry.name));
    token = page.continuationToken;
  } while (token);
  assert.deepEqual(found, ["a/1", "a/2", "b/1", "c"]);
  const folders = await call(blobs, "listBlobDirectoriesSegmentedWithPrefix", name, null, null);
  assert.deepEqual(folders.entries.map((entry) => entry.name), ["a/", "b/"]);
  await call(blobs, "deleteContainer", name);
});

test("blocks, pages and appended pieces make up blobs", async () => {
  const name = await container();
  const large = randomBytes(9 * 1024 * 1024).toString("base64");
  await put(name, "large", large);
  assert.equal(await text(name, "large"), large);
  const ids = ["AAAA", "AAAB"];
  await call(blobs, "createBlockFromText", ids[0], name, "blocks", "one ");
  await call(blobs, "createBlockFromText", ids[1], name, "blocks", "two");
  await call(blobs, "commitBlocks", name, "blocks", { UncommittedBlocks: ids });
  assert.equal(await text(name, "blocks"), "one two");
  const listed = await call(blobs, "listBlocks", name, "blocks", "all");
  assert.deepEqual(listed.CommittedBlocks.map((block) => block.Name), ids);
  await call(blobs, "createOrReplaceAppendBlob", name, "log");
  await call(blobs, "appendBlockFromText", name, "log", "first ");
  await call(blobs, "appendFromText", name, "log", "second");
  assert.equal(await text(name, "log"), "first second");
  await call(blobs, "createPageBlob", name, "pages", 2048);
  const page = Buffer.alloc(512, 7);
  await new Promise((resolve, reject) => {
    const stream = blobs.createWriteStreamToExistingPageBlob(name, "pages", (error) => {
      if (error) reject(error);
      else resolve();
    });
    stream.end(Buffer.concat([page, page, page, page]));
  });
  await call(blobs, "clearPageRange", name, "pages", 512, 1023);
  const ranges = await call(blobs, "listPageRanges", name, "pages");
  assert.deepEqual(ranges.map((range) => [range.start, range.end]), [[0, 511], [1024, 2047]]);
  await call(blobs, "deleteContainer", name);
});

test("leases guard and snapshots stay", async () => {
  const name = await container();
  await put(name, "b", "old");
  const snapshot = await call(blobs, "createBlobSnapshot", name, "b");
  const lease = await call(blobs, "acquireLease", name, "b", { leaseDuration: 15 });
  assert.equal(await refusal(put(name, "b", "new")), "412 LeaseIdMissing");
  await put(name, "b", "new", { leaseId: lease.id });
  await call(blobs, "renewLease", name, "b", lease.id);
  await call(blobs, "releaseLease", name, "b", lease.id);
  assert.equal(await text(name, "b"), "new");
  assert.equal(await text(name, "b", { snapshotId: snapshot }), "old");
  await call(blobs, "deleteBlob", name, "b", { deleteSnapshots: "include" });
  await call(blobs, "deleteContainer", name);
});

test("a signature grants what it says, and a stored policy can be taken back", async () => {
  const name = await container();
  await put(name, "b", "content");
  const signed = (signature) => storage.createBlobServiceWithSas(address("blobs"), signature);
  const own = { AccessPolicy: { Permissions: "r", Expiry: minutes(10) } };
  const reader = signed(blobs.generateSharedAccessSignature(name, "b", own));
  assert.equal(await call(reader, "getBlobToText", name, "b"), "content");
  const denied = call(reader, "createBlockBlobFromText", name, "b", "x");
  assert.equal(await refusal(denied), "403 AuthorizationPermissionMismatch");
  const policy = { Permissions: "rl", Expiry: new Date(Date.UTC(2124, 0, 1)) };
  await call(blobs, "setContainerAcl", name, { readers: policy });
  const kept = (await call(blobs, "getContainerAcl", name)).signedIdentifiers.readers;
  assert.deepEqual([kept.Permissions, kept.Expiry], ["rl", policy.Expiry]);
  const named = signed(blobs.generateSharedAccessSignature(name, null, { Id: "readers" }));
  assert.equal((await call(named, "listBlobsSegmented", name, null)).entries.length, 1);
  await call(blobs, "setContainerAcl", name, {});
  const gone = call(named, "listBlobsSegmented", name, null);
  assert.equal(await refusal(gone), "403 AuthenticationFailed");
  await call(blobs, "deleteContainer", name);
});
