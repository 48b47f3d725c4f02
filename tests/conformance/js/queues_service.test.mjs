// The service itself: properties, rules for pages of other origins, statistics.

import assert from "node:assert/strict";

import { QueueClient, QueueServiceClient } from "@azure/storage-queue";

import { credential, freshQueue, options, peek, queues, status, texts, url } from "./queues_target.mjs";
import { test } from "./target.mjs";

const rule = (origin) => ({
  allowedOrigins: origin,
  allowedMethods: "GET,PUT",
  allowedHeaders: "x-ms-*",
  exposedHeaders: "etag",
  maxAgeInSeconds: 60,
});

test("test_properties_are_kept", async () => {
  const retentionPolicy = { enabled: true, days: 5 };
  await queues.setProperties({
    queueAnalyticsLogging: {
      version: "1.0",
      read: true,
      write: true,
      deleteProperty: false,
      retentionPolicy,
    },
    hourMetrics: { version: "1.0", enabled: true, includeAPIs: true, retentionPolicy },
    cors: [rule("http://page.example")],
  });
  const found = await queues.getProperties();
  const logging = found.queueAnalyticsLogging;
  assert.deepEqual([logging.read, logging.deleteProperty], [true, false]);
  assert.equal(logging.retentionPolicy.days, 5);
  assert.deepEqual([found.hourMetrics.enabled, found.hourMetrics.includeAPIs], [true, true]);
  assert.equal(found.cors[0].allowedOrigins, "http://page.example");
  assert.equal(found.cors[0].allowedMethods, "GET,PUT");
  assert.equal(found.cors[0].maxAgeInSeconds, 60);
  await queues.setProperties({ cors: [] });
  assert.equal((await queues.getProperties()).cors?.length ?? 0, 0);
});

// Azure takes five rules at most.
test("test_too_many_rules_are_refused", async () => {
  const cors = [0, 1, 2, 3, 4, 5].map((number) => rule(`http://page${number}.example`));
  assert.equal(await status(() => queues.setProperties({ cors })), 400);
});

test("test_statistics_come_from_the_secondary", async () => {
  const client = new QueueServiceClient(`${url}-secondary`, credential, options);
  assert.equal((await client.getStatistics()).geoReplication.status, "live");
});

// Azure's secondary is a copy to read; Azurite's is the same queues under another name, and takes writes.
test("test_the_secondary_reads_and_does_not_write", async () => {
  const queue = await freshQueue();
  await queue.sendMessage("a");
  const secondary = new QueueClient(`${url}-secondary/${queue.name}`, credential, options);
  assert.deepEqual(texts(await peek(secondary)), ["a"]);
  assert.equal(await status(() => secondary.sendMessage("b")), 403);
});
