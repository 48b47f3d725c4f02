// Entities: insert, get, update, merge, delete, conditions, limits.

import assert from "node:assert/strict";

import { TableClient } from "@azure/data-tables";

import { all, code, credential, freshName, freshTable, options, refusal, test, url } from "./target.mjs";

const there = { partitionKey: "p", rowKey: "r" };

/** What an entity holds beside what the server adds. */
function own(entity) {
  const { etag, timestamp, ...rest } = entity;
  delete rest["odata.metadata"];
  return rest;
}

test("test_an_entity_comes_back_as_it_was_inserted", async () => {
  const table = await freshTable();
  const entity = {
    ...there,
    Text: "Grüße ' \" \\ \n 😀",
    Empty: "",
    Whole: 42,
    Negative: -2147483648,
    Large: 2n ** 53n + 1n,
    Real: 2.5,
    Yes: true,
    No: false,
    Raw: new Uint8Array([0, 1, 255]),
    At: new Date("2024-05-06T07:08:09.123Z"),
  };
  const typed = {
    WholeReal: { type: "Double", value: "3.0" },
    Infinite: { type: "Double", value: "Infinity" },
    Id: { type: "Guid", value: "c9da6455-213d-42c9-9a79-3e9149a57833" },
  };
  await table.createEntity({ ...entity, ...typed });
  const found = own(await table.getEntity("p", "r"));
  assert.deepEqual(Buffer.from(found.Raw), Buffer.from(entity.Raw));
  const { Raw, WholeReal, Infinite, Id, ...rest } = found;
  delete entity.Raw;
  assert.deepEqual(rest, entity);
  assert.deepEqual([WholeReal, Infinite, Id.value], [3, "Infinity", typed.Id.value]);
});

test("test_not_a_number_comes_back", async () => {
  const table = await freshTable();
  await table.createEntity({ ...there, Real: { type: "Double", value: "NaN" } });
  assert.equal(String((await table.getEntity("p", "r")).Real), "NaN");
});

test("test_an_absent_value_is_not_stored", async () => {
  const table = await freshTable();
  await table.createEntity({ ...there, Nothing: null });
  assert(!("Nothing" in (await table.getEntity("p", "r"))));
});

for (const key of ["", " ", "it's", "a b+c%d&e=f", "Grüße", "😀", "(x,y)", "@:;,$!*~"]) {
  test(`test_any_permitted_key_works[${key}]`, async () => {
    const table = await freshTable();
    await table.createEntity({ partitionKey: key, rowKey: key, A: 1 });
    await table.updateEntity({ partitionKey: key, rowKey: key, B: 2 }, "Merge");
    const found = await table.getEntity(key, key);
    assert.deepEqual([found.partitionKey, found.rowKey, found.A, found.B], [key, key, 1, 2]);
    await table.deleteEntity(key, key);
    assert.equal(await code(() => table.getEntity(key, key)), "ResourceNotFound");
  });
}

for (const key of ["a/b", "a\\b", "a#b", "a?b", "a\tb"]) {
  test(`test_a_key_with_forbidden_characters_is_refused[${key}]`, async () => {
    const table = await freshTable();
    const entity = { partitionKey: "p", rowKey: key };
    assert.equal((await refusal(() => table.createEntity(entity))).statusCode, 400);
  });
}

test("test_timestamp_and_etag_are_the_servers", async () => {
  const table = await freshTable();
  const { etag } = await table.createEntity({ ...there, A: 1 });
  const found = await table.getEntity("p", "r");
  assert.equal(found.etag, etag);
  assert(Math.abs(Date.parse(found.timestamp) - Date.now()) < 60_000);
});

test("test_an_entity_is_inserted_once", async () => {
  const table = await freshTable();
  await table.createEntity({ ...there, A: 1 });
  assert.equal(await code(() => table.createEntity({ ...there, A: 2 })), "EntityAlreadyExists");
  assert.equal((await table.getEntity("p", "r")).A, 1);
});

test("test_a_missing_entity_is_not_found", async () => {
  const table = await freshTable();
  assert.equal(await code(() => table.getEntity("p", "r")), "ResourceNotFound");
});

test("test_a_missing_table_is_not_found", async () => {
  const table = new TableClient(url, freshName(), credential, options);
  assert.equal(await code(() => table.createEntity(there)), "TableNotFound");
  assert.equal(await code(() => table.getEntity("p", "r")), "TableNotFound");
  assert.equal(await code(() => all(table.listEntities())), "TableNotFound");
  assert.equal(await code(() => table.upsertEntity(there)), "TableNotFound");
});

test("test_only_selected_properties_come_back", async () => {
  const table = await freshTable();
  await table.createEntity({ ...there, A: 1, B: 2 });
  const found = await table.getEntity("p", "r", { queryOptions: { select: ["A"] } });
  assert.deepEqual(own(found), { A: 1 });
  const queryOptions = { filter: "PartitionKey eq 'p'", select: ["RowKey", "B"] };
  const listed = await all(table.listEntities({ queryOptions }));
  assert.deepEqual(listed.map(own), [{ rowKey: "r", B: 2 }]);
});

test("test_update_replaces_and_merge_keeps", async () => {
  const table = await freshTable();
  await table.createEntity({ ...there, A: 1, B: 2 });
  await table.updateEntity({ ...there, B: 3 }, "Merge");
  assert.deepEqual(own(await table.getEntity("p", "r")), { ...there, A: 1, B: 3 });
  await table.updateEntity({ ...there, C: 4 }, "Replace");
  assert.deepEqual(own(await table.getEntity("p", "r")), { ...there, C: 4 });
});

test("test_upsert_inserts_and_changes", async () => {
  const table = await freshTable();
  for (const mode of ["Merge", "Replace"]) {
    await table.upsertEntity({ partitionKey: "p", rowKey: mode, A: 1 }, mode);
    await table.upsertEntity({ partitionKey: "p", rowKey: mode, B: 2 }, mode);
    const found = await table.getEntity("p", mode);
    assert.deepEqual(["A" in found, found.B], [mode === "Merge", 2]);
  }
});

test("test_a_stale_etag_changes_nothing", async () => {
  const table = await freshTable();
  const stale = (await table.createEntity({ ...there, A: 1 })).etag;
  const fresh = (await table.updateEntity({ ...there, A: 2 })).etag;
  for (const mode of ["Merge", "Replace"]) {
    const update = () => table.updateEntity({ ...there, A: 3 }, mode, { etag: stale });
    assert.equal(await code(update), "UpdateConditionNotSatisfied");
  }
  const remove = () => table.deleteEntity("p", "r", { etag: stale });
  assert.equal((await refusal(remove)).statusCode, 412);
  assert.equal((await table.getEntity("p", "r")).A, 2);
  await table.deleteEntity("p", "r", { etag: fresh });
});

test("test_updating_a_missing_entity_is_refused", async () => {
  const table = await freshTable();
  for (const mode of ["Merge", "Replace"]) {
    assert.equal(await code(() => table.updateEntity(there, mode)), "ResourceNotFound");
  }
});

const many = (count, value) =>
  Object.fromEntries(Array.from({ length: count }, (_, number) => [`P${number}`, value]));
for (const [id, expected, properties] of [
  ["253 properties", "TooManyProperties", many(253, 1)],
  ["long text", "PropertyValueTooLarge", { Text: "x".repeat(32 * 1024 + 1) }],
  ["long binary", "PropertyValueTooLarge", { Raw: new Uint8Array(64 * 1024 + 1) }],
  ["1 MiB", "EntityTooLarge", many(17, "x".repeat(32 * 1024))],
  ["long name", "PropertyNameTooLong", { ["N".repeat(256)]: 1 }],
]) {
  // Azure keeps all these limits; Azurite only those of a single value.
  test(`test_limits_are_refused_by_name[${id}]`, async () => {
    const table = await freshTable();
    assert.equal(await code(() => table.createEntity({ ...there, ...properties })), expected);
  });
}
