// The npm package pg on the SQL endpoint. Called with the endpoint's port.

import assert from "node:assert/strict";
import pg from "pg";

const port = Number(process.argv[2]);
const client = new pg.Client({ host: "127.0.0.1", port, user: "ada", password: "secret", database: "shop" });
await client.connect();
for (const tenant of [31, 131, 231]) {
  await client.query("INSERT INTO orders (tenant, id, amount) VALUES ($1, $2, $3)", [tenant, 5000, tenant]);
}
const one = await client.query({ name: "one", text: "SELECT amount FROM orders WHERE tenant = $1 AND id = 5000", values: [131] });
assert.deepEqual(one.rows, [{ amount: 131 }]);
const again = await client.query({ name: "one", text: "SELECT amount FROM orders WHERE tenant = $1 AND id = 5000", values: [231] });
assert.deepEqual(again.rows, [{ amount: 231 }]);
const sum = await client.query("SELECT sum(amount) AS total, count(*) AS n FROM orders WHERE id = $1", [5000]);
assert.deepEqual(sum.rows, [{ total: "393", n: "3" }]);
await client.query("BEGIN");
await client.query("DELETE FROM orders WHERE tenant = 31 AND id = 5000");
await client.query("ROLLBACK");
const rows = await client.query({ text: "SELECT tenant FROM orders WHERE id = 5000 ORDER BY tenant", rowMode: "array" });
assert.deepEqual(rows.rows, [[31], [131], [231]]);
await assert.rejects(client.query("TRUNCATE orders"), { code: "0A000" });
await client.end();
console.log("pg works on the SQL endpoint");
