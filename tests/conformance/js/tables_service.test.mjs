// The service itself: properties, rules for pages of other origins, statistics.

import assert from "node:assert/strict";

import { TableClient, TableServiceClient } from "@azure/data-tables";

import { credential, freshTable, options, refusal, tables, test, url } from "./target.mjs";

const rule = (origin) => ({
  allowedOrigins: origin,
  allowedMethods: "GET,PUT",
  allowedHeaders: "x-ms-*",
  exposedHeaders: "etag",
  maxAgeInSeconds: 60,
});

test("test_properties_are_kept", async () => {
  const retentionPolicy = { enabled: true, days: 5 };
  await tables.setProperties({
    logging: { version: "1.0", read: true, write: true, delete: false, retentionPolicy },
    hourMetrics: { version: "1.0", enabled: true, includeAPIs: true, retentionPolicy },
    cors: [rule("http://page.example")],
  });
  const found = await tables.getProperties();
  assert.deepEqual([found.logging.read, found.logging.delete], [true, false]);
  assert.equal(found.logging.retentionPolicy.days, 5);
  assert.deepEqual([found.hourMetrics.enabled, found.hourMetrics.includeAPIs], [true, true]);
  assert.equal(found.cors[0].allowedOrigins, "http://page.example");
  assert.equal(found.cors[0].allowedMethods, "GET,PUT");
  assert.equal(found.cors[0].maxAgeInSeconds, 60);
  await tables.setProperties({ cors: [] });
  assert.equal((await tables.getProperties()).cors?.length ?? 0, 0);
});

// Azure takes five rules at most; Azurite takes any number.
test("test_too_many_rules_are_refused", async () => {
  const cors = [0, 1, 2, 3, 4, 5].map((number) => rule(`http://page${number}.example`));
  assert.equal((await refusal(() => tables.setProperties({ cors }))).statusCode, 400);
});

test("test_statistics_come_from_the_secondary", async () => {
  const client = new TableServiceClient(`${url}-secondary`, credential, options);
  assert.equal((await client.getStatistics()).geoReplication.status, "live");
});

// Azure's secondary is a copy to read; Azurite's is the same tables under another name, and takes writes.
test("test_the_secondary_reads_and_does_not_write", async () => {
  const table = await freshTable();
  await table.createEntity({ partitionKey: "p", rowKey: "r" });
  const secondary = new TableClient(`${url}-secondary`, table.tableName, credential, options);
  assert(await secondary.getEntity("p", "r"));
  assert.equal((await refusal(() => secondary.deleteEntity("p", "r"))).statusCode, 403);
});
