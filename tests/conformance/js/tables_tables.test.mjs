// Tables: create, list, query, delete.

import assert from "node:assert/strict";

import { TableClient, odata } from "@azure/data-tables";

import { all, code, credential, freshName, freshTable, options, refusal, tables, test, url } from "./target.mjs";

const names = async (pages) => (await all(pages)).map((table) => table.name);

test("test_a_created_table_is_listed", async () => {
  const name = freshName("List");
  await tables.createTable(name);
  assert((await names(tables.listTables())).includes(name));
});

test("test_a_table_is_created_once", async () => {
  const name = freshName();
  let answer;
  const onResponse = (response) => (answer = response);
  await tables.createTable(name, { onResponse });
  assert.equal(answer.status, 201);
  // The SDK takes a table that exists for one that it has just created.
  await tables.createTable(name, { onResponse });
  assert.equal(answer.status, 409);
  assert.equal(answer.headers.get("x-ms-error-code") ?? "TableAlreadyExists", "TableAlreadyExists");
});

test("test_a_deleted_table_is_gone_with_its_entities", async () => {
  const table = await freshTable();
  await table.createEntity({ partitionKey: "p", rowKey: "r" });
  await tables.deleteTable(table.tableName);
  assert(!(await names(tables.listTables())).includes(table.tableName));
  assert.equal(await code(() => table.getEntity("p", "r")), "TableNotFound");
});

test("test_tables_are_listed_page_by_page", async () => {
  const prefix = freshName().slice(0, 9);
  const made = [0, 1, 2, 3, 4].map((number) => `${prefix}${number}`);
  for (const name of made) {
    await tables.createTable(name);
  }
  const filter = `TableName ge '${prefix}' and TableName lt '${prefix}z'`;
  const pages = tables.listTables({ queryOptions: { filter } }).byPage({ maxPageSize: 2 });
  const found = (await all(pages)).map((page) => page.map((table) => table.name));
  assert.deepEqual(found, [made.slice(0, 2), made.slice(2, 4), made.slice(4)]);
});

test("test_tables_are_queried_by_name", async () => {
  const { tableName } = await freshTable();
  const filter = odata`TableName eq ${tableName}`;
  assert.deepEqual(await names(tables.listTables({ queryOptions: { filter } })), [tableName]);
});

for (const name of ["1abc", "a-b", "ab", "a".repeat(64)]) {
  test(`test_a_bad_table_name_is_refused[${name}]`, async () => {
    const table = new TableClient(url, name, credential, options);
    assert.equal((await refusal(() => table.createTable())).statusCode, 400);
  });
}
