// Documents: queries over one partition and over all, pages, parameters, and what is refused.

import assert from "node:assert/strict";

import { allOf, ids, make, sorted } from "./documents_target.mjs";
import { refusal, test } from "./target.mjs";

const two = (n) => `${n}`.padStart(2, "0");
const numbers = Array.from({ length: 20 }, (_, n) => n);

/** Twenty items over five partition keys. */
const people = await make();
for (const n of numbers) {
  await people.items.create({
    id: two(n), pk: `p${n % 5}`, n, name: `Name ${n}`, even: n % 2 === 0,
    tags: [`t${n % 3}`, "all"], address: { city: ["Berlin", "Bonn"][n % 2] },
  });
}

test("test_all_items_are_found_over_all_partitions", async () => {
  assert.deepEqual(sorted(ids(await allOf(people, "SELECT * FROM c"))), numbers.map(two));
});

test("test_one_partition_is_asked_by_its_key", async () => {
  const found = await allOf(people, "SELECT * FROM c WHERE c.n > 5", { partitionKey: "p1" });
  assert.deepEqual(sorted(ids(found)), ["06", "11", "16"]);
});

test("test_a_query_over_partitions_must_be_allowed", async () => {
  // This SDK allows it always, so the header has to be put in its way.
  const initialHeaders = { "x-ms-documentdb-query-enablecrosspartition": "false" };
  const refused = await refusal(() => people.items.query("SELECT * FROM c", { initialHeaders }).fetchNext());
  assert.equal(refused.code, 400);
  assert.match(JSON.stringify(refused.body ?? refused.message), /Cross partition query is required but disabled/);
});

test("test_parameters_are_values", async () => {
  const query = "SELECT VALUE c.id FROM c WHERE c.address.city = @city AND c.n < @n";
  const parameters = [{ name: "@city", value: "Bonn" }, { name: "@n", value: 10 }];
  assert.deepEqual(sorted(await allOf(people, { query, parameters })), ["01", "03", "05", "07", "09"]);
});

for (const [query, expected] of [
  ["SELECT VALUE COUNT(1) FROM c", [20]],
  ["SELECT VALUE SUM(c.n) FROM c WHERE c.even", [90]],
  ["SELECT VALUE MAX(c.n) FROM c", [19]],
  ["SELECT VALUE AVG(c.n) FROM c", [9.5]],
  ["SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n DESC", [19, 18, 17]],
  ["SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 2 LIMIT 3", [2, 3, 4]],
  ["SELECT DISTINCT VALUE c.address.city FROM c ORDER BY c.address.city", ["Berlin", "Bonn"]],
  ["SELECT VALUE c.id FROM c WHERE c.name LIKE '%1_'", numbers.slice(10).map(two)],
  ["SELECT VALUE c.id FROM c WHERE c.n BETWEEN 3 AND 5", ["03", "04", "05"]],
  ["SELECT VALUE c.id FROM c WHERE c.n IN (1, 7)", ["01", "07"]],
  ["SELECT VALUE t FROM c JOIN t IN c.tags WHERE c.n = 4", ["t1", "all"]],
  ["SELECT c.n, c.missing FROM c WHERE c.id = '03'", [{ n: 3 }]],
  ["SELECT VALUE {id: c.id, up: UPPER(c.name)} FROM c WHERE c.n = 1", [{ id: "01", up: "NAME 1" }]],
  ["SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(c.tags, 't2') AND c.n < 6", ["02", "05"]],
  ["SELECT VALUE c.id FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t = 't0') AND c.n < 4", ["00", "03"]],
  ["SELECT VALUE c.even ? 'yes' : 'no' FROM c WHERE c.n = 2", ["yes"]],
  ["SELECT VALUE 1 + 2", [3]],
  ["SELECT VALUE c.id FROM c WHERE NOT IS_DEFINED(c.missing) AND c.n = 0", ["00"]],
]) {
  test(`test_a_query_gives_its_rows[${query}]`, async () => {
    let found = await allOf(people, query);
    if (!query.includes("ORDER BY") && !query.includes("JOIN")) {
      found = sorted(found);
    }
    assert.deepEqual(found, expected);
  });
}

test("test_groups_are_counted", async () => {
  const query = "SELECT c.address.city AS city, COUNT(1) AS n FROM c GROUP BY c.address.city";
  const found = await allOf(people, query);
  found.sort((one, other) => one.city.localeCompare(other.city));
  assert.deepEqual(found, [{ city: "Berlin", n: 10 }, { city: "Bonn", n: 10 }]);
});

test("test_pages_go_on_where_the_last_one_ended", async () => {
  for (const query of ["SELECT VALUE c.n FROM c", "SELECT VALUE c.n FROM c ORDER BY c.n"]) {
    const pages = [];
    let continuationToken;
    do {
      const page = await people.items.query(query, { maxItemCount: 6, continuationToken }).fetchNext();
      pages.push(page.resources);
      continuationToken = page.continuationToken;
    } while (continuationToken);
    assert.ok(pages.every((page) => page.length <= 6) && pages.length >= 4);
    const found = pages.flat();
    assert.deepEqual([...found].sort((one, other) => one - other), numbers);
    if (query.includes("ORDER")) {
      assert.deepEqual(found, numbers);
    }
  }
});

for (const query of ["SELEC * FROM c", "SELECT * FROM", "SELECT c.n FROM c WHERE", "SELECT VALUE nope(1)"]) {
  test(`test_a_bad_query_is_refused_with_its_errors[${query}]`, async () => {
    const refused = await refusal(() => allOf(people, query));
    assert.equal(refused.code, 400);
    assert.ok(JSON.stringify(refused.message + JSON.stringify(refused.body ?? "")).includes("errors"));
  });
}

test("test_queries_tell_what_they_did", async () => {
  const options = { partitionKey: "p1", populateQueryMetrics: true };
  const page = await people.items.query("SELECT * FROM c", options).fetchNext();
  assert.ok(page.requestCharge > 2);
  const metrics = JSON.stringify(page.headers["x-ms-documentdb-query-metrics"]);
  assert.ok(metrics.includes("retrievedDocumentCount=4") || metrics.includes('"retrievedDocumentCount":4'), metrics);
});

test("test_order_by_sorts_types_and_missing_values", async () => {
  const container = await make();
  const values = [3, "b", null, true, false, "a", -1.5, [1], { x: 1 }];
  for (const [n, v] of values.entries()) {
    await container.items.create({ id: `${n}`, pk: "a", v });
  }
  await container.items.create({ id: "missing", pk: "a" });
  const found = await allOf(container, "SELECT c.id, c.v FROM c ORDER BY c.v");
  const shown = found.map((row) => ("v" in row ? row.v : "missing"));
  assert.deepEqual(shown, ["missing", null, false, true, -1.5, 3, "a", "b", [1], { x: 1 }]);
});
