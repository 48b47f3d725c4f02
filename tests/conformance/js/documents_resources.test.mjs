// Documents: databases and containers, and what they say of themselves.

import assert from "node:assert/strict";

import { CosmosClient } from "@azure/cosmos";

import { cosmos, database, endpoint, ids, key, make, status } from "./documents_target.mjs";
import { freshName, test } from "./target.mjs";

test("test_a_database_is_created_listed_and_deleted", async () => {
  const id = freshName("d");
  const { database } = await cosmos.databases.create({ id });
  assert.equal((await database.read()).resource.id, id);
  assert.ok(ids((await cosmos.databases.readAll().fetchAll()).resources).includes(id));
  assert.equal(await status(() => cosmos.databases.create({ id })), 409);
  await database.delete();
  assert.equal(await status(() => database.read()), 404);
});

for (const odd of ["with space", "кириллица", "100%", "it's", "a+b&c=d"]) {
  test(`test_names_may_have_odd_characters[${odd}]`, async () => {
    const id = freshName("d") + odd;
    const { database } = await cosmos.databases.create({ id });
    const container = await make({ id }, {}, database);
    await container.items.create({ id, pk: id });
    assert.equal((await container.item(id, id).read()).resource.pk, id);
    await database.delete();
  });
}

for (const bad of ["a/b", "a?b", "a#b", "a".repeat(256), "ends "]) {
  test(`test_bad_names_are_refused[${bad}]`, async () => {
    const refused = await status(() => cosmos.databases.create({ id: bad }));
    // The SDK refuses some itself, without a status.
    assert.ok(refused === 400 || refused === undefined, refused);
  });
}

test("test_a_container_has_the_defaults_of_the_service", async () => {
  const { resource: found } = await (await make()).read();
  assert.deepEqual(found.indexingPolicy, {
    indexingMode: "consistent",
    automatic: true,
    includedPaths: [{ path: "/*" }],
    excludedPaths: [{ path: '/"_etag"/?' }],
  });
  assert.deepEqual(found.partitionKey, { paths: ["/pk"], kind: "Hash", version: 2 });
  assert.equal(found.conflictResolutionPolicy.mode, "LastWriterWins");
  assert.ok(found._self.startsWith("dbs/") && found._docs === "docs/");
  assert.equal(found.defaultTtl, undefined);
});

test("test_a_container_keeps_its_definition", async () => {
  const indexingPolicy = {
    indexingMode: "consistent",
    automatic: true,
    includedPaths: [{ path: "/a/?" }],
    excludedPaths: [{ path: "/*" }],
    compositeIndexes: [[{ path: "/a", order: "ascending" }, { path: "/b", order: "descending" }]],
  };
  const uniqueKeyPolicy = { uniqueKeys: [{ paths: ["/email"] }] };
  const { resource: found } = await (await make({ indexingPolicy, uniqueKeyPolicy, defaultTtl: 100 })).read();
  assert.deepEqual(found.indexingPolicy.includedPaths, indexingPolicy.includedPaths);
  assert.deepEqual(found.indexingPolicy.compositeIndexes, indexingPolicy.compositeIndexes);
  assert.deepEqual(found.uniqueKeyPolicy, uniqueKeyPolicy);
  assert.equal(found.defaultTtl, 100);
});

test("test_a_container_is_listed_and_deleted", async () => {
  const container = await make();
  assert.ok(ids((await database.containers.readAll().fetchAll()).resources).includes(container.id));
  const query = { query: "SELECT * FROM r WHERE r.id = @id", parameters: [{ name: "@id", value: container.id }] };
  assert.deepEqual(ids((await database.containers.query(query).fetchAll()).resources), [container.id]);
  assert.equal(await status(() => make({ id: container.id })), 409);
  await container.delete();
  assert.equal(await status(() => container.read()), 404);
  assert.equal(await status(() => container.items.create({ id: "1", pk: "a" })), 404);
});

test("test_the_partition_key_of_a_container_stays", async () => {
  const container = await make();
  const definition = (paths) => ({ id: container.id, partitionKey: { paths, kind: "Hash", version: 2 } });
  assert.equal(await status(() => container.replace(definition(["/other"]))), 400);
  await container.replace({ ...definition(["/pk"]), defaultTtl: 60 });
  assert.equal((await container.read()).resource.defaultTtl, 60);
});

test("test_a_definition_that_makes_no_sense_is_refused", async () => {
  for (const more of [{ defaultTtl: 0 }, { indexingPolicy: { indexingMode: "odd" } }]) {
    assert.equal(await status(() => make(more)), 400);
  }
  assert.equal(await status(() => make({ partitionKey: { paths: ["pk"], kind: "Hash", version: 2 } })), 400);
});

test("test_a_database_without_the_container_says_what_is_missing", async () => {
  const missing = cosmos.database(freshName("d"));
  assert.equal(await status(() => missing.read()), 404);
  assert.equal(await status(() => make({}, {}, missing)), 404);
});

test("test_throughput_is_offered_and_changed", async () => {
  const container = await make({ throughput: 700 });
  const { resource: offer } = await container.readOffer();
  assert.equal(offer.content.offerThroughput, 700);
  const change = (units) => {
    const changed = { ...offer, content: { ...offer.content, offerThroughput: units } };
    return cosmos.offer(offer.id).replace(changed);
  };
  await change(900);
  assert.equal((await container.readOffer()).resource.content.offerThroughput, 900);
  assert.equal(await status(() => change(450)), 400);
  assert.equal(await status(() => make({ throughput: 300 })), 400);
});

test("test_a_database_may_share_its_throughput", async () => {
  const { database } = await cosmos.databases.create({ id: freshName("d"), throughput: 1000 });
  assert.equal((await database.readOffer()).resource.content.offerThroughput, 1000);
  const container = await make({}, {}, database);
  assert.equal((await container.readOffer()).resource, undefined);
});

test("test_the_account_names_the_address_that_was_used", async () => {
  const client = new CosmosClient({ endpoint, key });
  const { resource: account } = await client.getDatabaseAccount();
  assert.equal(account.consistencyPolicy, "Session");
  assert.deepEqual(account.writableLocations.map((one) => one.databaseAccountEndpoint), [`${endpoint}/`]);
  client.dispose();
});
