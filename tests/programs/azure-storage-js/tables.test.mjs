// Tables through the last SDK of the older generation: all that it can do with them.

import assert from "node:assert/strict";
import { test } from "node:test";

import { address, call, connection, fresh, minutes, refusal, storage } from "./target.mjs";

const tables = storage.createTableService(connection);
const { TableQuery, TableBatch, TableUtilities } = storage;
const entity = TableUtilities.entityGenerator;

const keys = (partition, row) => ({
  PartitionKey: entity.String(partition),
  RowKey: entity.String(row),
});

async function table() {
  const name = fresh("t");
  await call(tables, "createTable", name);
  return name;
}

const get = (name, partition, row, options = {}) =>
  call(tables, "retrieveEntity", name, partition, row, options);

test("a table is created, found, listed and deleted", async () => {
  const name = fresh("t");
  assert.equal((await call(tables, "doesTableExist", name)).exists, false);
  assert.equal((await call(tables, "createTableIfNotExists", name)).created, true);
  assert.equal((await call(tables, "createTableIfNotExists", name)).created, false);
  assert.equal((await call(tables, "doesTableExist", name)).exists, true);
  assert.equal(await refusal(call(tables, "createTable", name)), "409 TableAlreadyExists");
  const listed = await call(tables, "listTablesSegmentedWithPrefix", name, null);
  assert.deepEqual(listed.entries, [name]);
  await call(tables, "deleteTable", name);
  assert.equal((await call(tables, "doesTableExist", name)).exists, false);
  assert.equal((await call(tables, "deleteTableIfExists", name)), false);
  assert.equal(await refusal(call(tables, "deleteTable", name)), "404 ResourceNotFound");
});

test("tables are listed page by page", async () => {
  const prefix = fresh("t");
  const names = ["a", "b", "c"].map((end) => prefix + end);
  for (const name of names) await call(tables, "createTable", name);
  const found = [];
  let token = null;
  do {
    const page = await call(tables, "listTablesSegmentedWithPrefix", prefix, token, {
      maxResults: 2,
    });
    found.push(...page.entries);
    token = page.continuationToken;
  } while (token);
  assert.deepEqual(found, names);
  for (const name of names) await call(tables, "deleteTable", name);
});

test("every type of property comes back as it was", async () => {
  const name = await table();
  const sent = {
    ...keys("it's ä", "r 1"),
    text: entity.String("ä\"<&>"),
    yes: entity.Boolean(true),
    no: entity.Boolean(false),
    short: entity.Int32(-7),
    long: entity.Int64("9007199254740993"),
    half: entity.Double(0.5),
    whole: entity.Double(3),
    endless: entity.Double(Number.POSITIVE_INFINITY),
    guid: entity.Guid("c9da6455-213d-42c9-9a79-3e9149a57833"),
    bytes: entity.Binary(Buffer.from([0, 1, 255])),
    time: entity.DateTime(new Date(Date.UTC(2024, 1, 29, 12, 30, 15, 250))),
  };
  await call(tables, "insertEntity", name, sent);
  for (const payloadFormat of [
    TableUtilities.PayloadFormat.FULL_METADATA,
    TableUtilities.PayloadFormat.MINIMAL_METADATA,
  ]) {
    const found = await get(name, "it's ä", "r 1", { payloadFormat });
    const values = Object.fromEntries(Object.entries(found).map(([key, value]) => [key, value._]));
    assert.equal(values.text, "ä\"<&>");
    assert.deepEqual([values.yes, values.no], [true, false]);
    assert.deepEqual([values.short, values.long], [-7, "9007199254740993"]);
    assert.deepEqual([values.half, values.whole, values.endless], [0.5, 3, Infinity]);
    assert.equal(values.guid, sent.guid._);
    assert.deepEqual(Buffer.from(values.bytes), sent.bytes._);
    assert.equal(values.time.getTime(), sent.time._.getTime());
    assert.ok(values.Timestamp instanceof Date);
  }
  const plain = await get(name, "it's ä", "r 1", {
    payloadFormat: TableUtilities.PayloadFormat.NO_METADATA,
    autoResolveProperties: true,
  });
  assert.equal(plain.short._, -7);
  await call(tables, "deleteTable", name);
});

test("an inserted entity is answered where it is asked for", async () => {
  const name = await table();
  const sent = { ...keys("p", "r"), age: entity.Int32(5) };
  const echoed = await call(tables, "insertEntity", name, sent, { echoContent: true });
  assert.equal(echoed.age._, 5);
  assert.match(echoed[".metadata"].etag, /^W\/"datetime'/);
  assert.equal(await refusal(call(tables, "insertEntity", name, sent)), "409 EntityAlreadyExists");
  await call(tables, "deleteTable", name);
});

test("entities are replaced, merged, upserted and deleted", async () => {
  const name = await table();
  const write = (operation, row, more) =>
    call(tables, operation, name, { ...keys("p", row), ...more });
  const values = async (row) => {
    const { a, b } = await get(name, "p", row);
    return [a?._, b?._];
  };
  await write("insertEntity", "1", { a: entity.Int32(1), b: entity.Int32(1) });
  await write("mergeEntity", "1", { b: entity.Int32(2) });
  assert.deepEqual(await values("1"), [1, 2]);
  await write("replaceEntity", "1", { b: entity.Int32(3) });
  assert.deepEqual(await values("1"), [undefined, 3]);
  await write("insertOrMergeEntity", "1", { a: entity.Int32(4) });
  assert.deepEqual(await values("1"), [4, 3]);
  await write("insertOrReplaceEntity", "1", { a: entity.Int32(5) });
  assert.deepEqual(await values("1"), [5, undefined]);
  await write("insertOrMergeEntity", "2", { a: entity.Int32(6) });
  await write("insertOrReplaceEntity", "3", { a: entity.Int32(7) });
  assert.deepEqual([await values("2"), await values("3")], [[6, undefined], [7, undefined]]);
  assert.equal(await refusal(write("replaceEntity", "4", {})), "404 ResourceNotFound");
  assert.equal(await refusal(write("mergeEntity", "4", {})), "404 ResourceNotFound");
  const remove = () => call(tables, "deleteEntity", name, keys("p", "1"));
  await remove();
  assert.equal(await refusal(get(name, "p", "1")), "404 ResourceNotFound");
  assert.equal(await refusal(remove()), "404 ResourceNotFound");
  await call(tables, "deleteTable", name);
});

test("a stale ETag changes nothing", async () => {
  const name = await table();
  await call(tables, "insertEntity", name, { ...keys("p", "r"), a: entity.Int32(1) });
  const first = await get(name, "p", "r");
  const written = await call(tables, "replaceEntity", name, { ...first, a: entity.Int32(2) });
  assert.notEqual(written[".metadata"].etag, first[".metadata"].etag);
  for (const operation of ["replaceEntity", "mergeEntity", "deleteEntity"]) {
    const stale = call(tables, operation, name, { ...first, a: entity.Int32(3) });
    assert.equal(await refusal(stale), "412 UpdateConditionNotSatisfied", operation);
  }
  const last = await get(name, "p", "r");
  assert.equal(last.a._, 2);
  assert.equal(last[".metadata"].etag, written[".metadata"].etag);
  await call(tables, "deleteEntity", name, last);
  await call(tables, "deleteTable", name);
});

test("a batch makes every kind of change", async () => {
  const name = await table();
  for (const row of ["replace", "merge", "delete"]) {
    await call(tables, "insertEntity", name, { ...keys("p", row), a: entity.Int32(1) });
  }
  const batch = new TableBatch();
  batch.insertEntity({ ...keys("p", "insert"), b: entity.Int32(2) }, { echoContent: false });
  batch.insertEntity({ ...keys("p", "echo"), b: entity.Int32(2) }, { echoContent: true });
  batch.replaceEntity({ ...keys("p", "replace"), b: entity.Int32(2) });
  batch.mergeEntity({ ...keys("p", "merge"), b: entity.Int32(2) });
  batch.deleteEntity(keys("p", "delete"));
  batch.insertOrReplaceEntity({ ...keys("p", "upsert"), b: entity.Int32(2) });
  batch.insertOrMergeEntity({ ...keys("p", "upmerge"), b: entity.Int32(2) });
  const answers = await call(tables, "executeBatch", name, batch);
  const statuses = answers.map((answer) => answer.response.statusCode);
  assert.deepEqual(statuses, [204, 201, 204, 204, 204, 204, 204]);
  assert.equal(answers[1].entity.b._, 2);
  assert.match(answers[0].entity[".metadata"].etag, /^W\//);
  const merged = await get(name, "p", "merge");
  assert.deepEqual([merged.a._, merged.b._], [1, 2]);
  assert.equal((await get(name, "p", "replace")).a, undefined);
  assert.equal(await refusal(get(name, "p", "delete")), "404 ResourceNotFound");
  await call(tables, "deleteTable", name);
});

test("a batch may retrieve one entity", async () => {
  const name = await table();
  await call(tables, "insertEntity", name, { ...keys("p", "it's"), a: entity.Int32(1) });
  const batch = new TableBatch();
  batch.retrieveEntity("p", "it's");
  const [found] = await call(tables, "executeBatch", name, batch);
  assert.equal(found.response.statusCode, 200);
  assert.equal(found.entity.a._, 1);
  assert.match(found.entity[".metadata"].etag, /^W\//);
  const none = new TableBatch();
  none.retrieveEntity("p", "nothing");
  assert.equal(await refusal(call(tables, "executeBatch", name, none)), "404 ResourceNotFound");
  await call(tables, "deleteTable", name);
});

test("a batch that is refused changes nothing and says what is wrong", async () => {
  const name = await table();
  await call(tables, "insertEntity", name, keys("p", "there"));
  const batch = new TableBatch();
  batch.insertEntity(keys("p", "new"), {});
  batch.insertEntity(keys("p", "there"), {});
  const refused = await call(tables, "executeBatch", name, batch).catch((error) => error);
  assert.deepEqual([refused.statusCode, refused.code], [409, "EntityAlreadyExists"]);
  assert.match(refused.message, /^1:/);
  assert.equal(await refusal(get(name, "p", "new")), "404 ResourceNotFound");
  await call(tables, "deleteTable", name);
});

test("a hundred entities are queried page by page, filtered and cut to size", async () => {
  const name = await table();
  const batch = new TableBatch();
  for (let row = 0; row < 100; row += 1) {
    const more = { n: entity.Int32(row), even: entity.Boolean(row % 2 === 0), text: `row ${row}` };
    batch.insertEntity({ ...keys("p", String(row).padStart(3, "0")), ...more }, {});
  }
  const answers = await call(tables, "executeBatch", name, batch);
  assert.equal(answers.length, 100);
  const all = async (query) => {
    const found = [];
    let token = null;
    let pages = 0;
    do {
      const page = await call(tables, "queryEntities", name, query, token);
      found.push(...page.entries);
      token = page.continuationToken;
      pages += 1;
    } while (token);
    return { found, pages };
  };
  const paged = await all(new TableQuery().top(30));
  assert.deepEqual([paged.found.length, paged.pages], [100, 4]);
  assert.equal((await all(null)).found.length, 100);
  const filter = (condition, ...words) => all(new TableQuery().where(condition, ...words));
  assert.equal((await filter("PartitionKey eq ? and RowKey lt ?", "p", "010")).found.length, 10);
  assert.equal((await filter("n ge ? and n lt ?", 5, 8)).found.length, 3);
  assert.equal((await filter("even eq ?", true)).found.length, 50);
  assert.equal((await filter("not (text eq ?)", "row 7")).found.length, 99);
  const picked = await all(new TableQuery().select("n", "RowKey").where("n eq ?", 7));
  assert.deepEqual([picked.found[0].n._, picked.found[0].RowKey._], [7, "007"]);
  assert.equal(picked.found[0].text, undefined);
  await call(tables, "deleteTable", name);
});

test("a signature grants what it says, and a stored policy can be taken back", async () => {
  const name = await table();
  await call(tables, "insertEntity", name, { ...keys("p", "r"), a: entity.Int32(1) });
  const sign = (policy) => tables.generateSharedAccessSignature(name, policy);
  const signed = (signature) => storage.createTableServiceWithSas(address("tables"), signature);
  const read = (service) => call(service, "retrieveEntity", name, "p", "r");
  const add = (service, row) => call(service, "insertEntity", name, keys("p", row));
  const reader = signed(sign({ AccessPolicy: { Permissions: "r", Expiry: minutes(10) } }));
  assert.equal((await read(reader)).a._, 1);
  assert.equal(await refusal(add(reader, "x")), "403 AuthorizationPermissionMismatch");
  const everything = { Permissions: "raud", Start: minutes(-10), Expiry: minutes(10) };
  const writer = signed(sign({ AccessPolicy: everything }));
  await add(writer, "x");
  const batch = new TableBatch();
  batch.insertEntity(keys("p", "y"), {});
  batch.deleteEntity(keys("p", "x"));
  const answers = await call(writer, "executeBatch", name, batch);
  assert.deepEqual(answers.map((answer) => answer.response.statusCode), [204, 204]);
  const start = new Date(Date.UTC(2024, 0, 1));
  const expiry = new Date(Date.UTC(2124, 0, 1));
  const policy = { Permissions: "r", Start: start, Expiry: expiry };
  await call(tables, "setTableAcl", name, { readers: policy });
  const kept = (await call(tables, "getTableAcl", name)).signedIdentifiers.readers;
  assert.equal(kept.Permissions, "r");
  assert.deepEqual([kept.Start, kept.Expiry], [start, expiry]);
  const named = signed(sign({ Id: "readers" }));
  assert.equal((await read(named)).a._, 1);
  await call(tables, "setTableAcl", name, {});
  assert.equal(await refusal(read(named)), "403 AuthenticationFailed");
  await call(tables, "deleteTable", name);
});

test("the service's properties are kept", async () => {
  const before = await call(tables, "getServiceProperties");
  const rule = {
    AllowedMethods: ["GET"],
    AllowedOrigins: ["http://page.example"],
    AllowedHeaders: ["x-ms-*"],
    ExposedHeaders: ["x-ms-*"],
    MaxAgeInSeconds: 60,
  };
  await call(tables, "setServiceProperties", { ...before, Cors: { CorsRule: [rule] } });
  const after = await call(tables, "getServiceProperties");
  assert.deepEqual(after.Cors.CorsRule[0].AllowedOrigins, ["http://page.example"]);
  await call(tables, "setServiceProperties", { ...before, Cors: {} });
});

test("refusals are read whatever their form", async () => {
  const nobody = fresh("t");
  assert.equal(await refusal(call(tables, "getTableAcl", nobody)), "404 TableNotFound");
  assert.equal(await refusal(get(nobody, "p", "r")), "404 TableNotFound");
  const batch = new TableBatch();
  batch.insertEntity(keys("p", "r"), {});
  assert.equal(await refusal(call(tables, "executeBatch", nobody, batch)), "404 TableNotFound");
  const name = await table();
  const large = { ...keys("p", "r"), text: entity.String("x".repeat(40_000)) };
  const refused = await refusal(call(tables, "insertEntity", name, large));
  assert.equal(refused, "400 PropertyValueTooLarge");
  await call(tables, "deleteTable", name);
});
