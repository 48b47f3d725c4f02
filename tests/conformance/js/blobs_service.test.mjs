// The service itself: properties, statistics, the account, batches, websites.

import assert from "node:assert/strict";

import { BlobClient, BlobServiceClient } from "@azure/storage-blob";

import { blobs, credential, freshContainer, names, options, put, status, text, url } from "./blobs.mjs";
import { all, freshName, test } from "./target.mjs";

const secondary = new BlobServiceClient(`${url}-secondary`, credential, options);

test("test_properties_are_kept", async () => {
  const rule = {
    allowedOrigins: "http://a.test",
    allowedMethods: "GET",
    allowedHeaders: "*",
    exposedHeaders: "",
    maxAgeInSeconds: 5,
  };
  const retentionPolicy = { enabled: true, days: 3 };
  const hourMetrics = { version: "1.0", enabled: true, includeAPIs: true, retentionPolicy };
  await blobs.setProperties({ cors: [rule], hourMetrics, defaultServiceVersion: "2021-12-02" });
  let kept = await blobs.getProperties();
  assert.equal(kept.cors[0].allowedOrigins, "http://a.test");
  assert.equal(kept.hourMetrics.retentionPolicy.days, 3);
  assert.equal(kept.defaultServiceVersion, "2021-12-02");
  const off = { version: "1.0", enabled: false, retentionPolicy: { enabled: false } };
  await blobs.setProperties({ cors: [], hourMetrics: off });
  kept = await blobs.getProperties();
  assert.deepEqual(kept.cors ?? [], []);
  assert.equal(kept.hourMetrics.enabled, false);
});

test("test_the_account_says_what_it_is", async () => {
  assert.equal((await blobs.getAccountInfo()).accountKind, "StorageV2");
  const container = await freshContainer();
  assert.equal((await container.getAccountInfo()).skuName, "Standard_RAGRS");
});

test("test_statistics_come_from_the_secondary", async () => {
  const stats = await secondary.getStatistics();
  assert.equal(stats.geoReplication.status, "live");
});

// Azure's secondary only reads; Azurite's also writes.
test("test_the_secondary_reads_and_does_not_write", async () => {
  const container = await freshContainer();
  await put(container, "b", "x");
  const blob = secondary.getContainerClient(container.containerName).getBlobClient("b");
  assert.equal(await text(blob), "x");
  assert.equal(await status(() => blob.delete()), 403);
});

test("test_a_batch_deletes_many_blobs", async () => {
  const container = await freshContainer();
  const there = [];
  for (let n = 0; n < 5; n += 1) {
    there.push(await put(container, `b${n}`, "x"));
  }
  const answers = await blobs.getBlobBatchClient().deleteBlobs(there);
  assert.deepEqual(answers.subResponses.map((answer) => answer.status), Array(5).fill(202));
  assert.deepEqual(await names(container.listBlobsFlat()), []);
});

test("test_a_batch_answers_each_request_by_itself", async () => {
  const container = await freshContainer();
  const there = await put(container, "there", "x");
  const missing = container.getBlobClient("missing");
  const answers = await container.getBlobBatchClient().deleteBlobs([there, missing]);
  assert.deepEqual(answers.subResponses.map((answer) => answer.status), [202, 404]);
  assert.equal(answers.subResponses[1].errorCode, "BlobNotFound");
});

test("test_a_batch_sets_tiers", async () => {
  const container = await freshContainer();
  const there = [await put(container, "a", "x"), await put(container, "b", "x")];
  const answers = await blobs.getBlobBatchClient().setBlobsAccessTier(there, "Cool");
  assert.deepEqual(answers.subResponses.map((answer) => answer.status), [200, 200]);
  const listed = await all(container.listBlobsFlat());
  assert.deepEqual(listed.map((item) => item.properties.accessTier), ["Cool", "Cool"]);
});

// Azurite takes the website and does not keep it.
test("test_a_website_is_set", async () => {
  const site = { enabled: true, indexDocument: "index.html", errorDocument404Path: "404.html" };
  await blobs.setProperties({ staticWebsite: site });
  const kept = (await blobs.getProperties()).staticWebsite;
  assert.deepEqual([kept.enabled, kept.indexDocument], [true, "index.html"]);
  await blobs.setProperties({ staticWebsite: { enabled: false } });
  assert.equal((await blobs.getProperties()).staticWebsite.enabled, false);
});

test("test_the_root_container_needs_no_name", async () => {
  const root = blobs.getContainerClient("$root");
  await root.createIfNotExists();
  const name = freshName("b");
  await put(root, name, "x");
  assert.equal(await text(new BlobClient(`${url}/$root/${name}`, credential, options)), "x");
});
