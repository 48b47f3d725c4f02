// Documents in the explorer: containers, queries with what they cost, items, and throughput with the splits that it causes.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { logIn, open, portal, target } from "./browser.mjs";
import { look } from "./looks.mjs";

const ACCOUNT = target.account.name;
const HARM = "<script>alert(1)</script>";
const CONTAINER = `${portal}/explorer/documents/${ACCOUNT}/shop%2Forders`;

let browser;
before(async () => {
  browser = await open();
  await logIn(browser.page);
});
after(() => browser.close());

async function run(query, { key = "", as = "Table" } = {}) {
  const { page } = browser;
  await page.goto(CONTAINER);
  await page.getByLabel("Query", { exact: true }).fill(query);
  await page.getByLabel(/^Partition key/).fill(key);
  await page.getByLabel("Rows as", { exact: true }).selectOption(as);
  await page.getByRole("button", { name: "Run" }).click();
}

/** A figure of the last query. */
async function fact(name) {
  const row = browser.page.locator("dl.facts div").filter({ has: browser.page.locator(`dt:text-is("${name}")`) });
  return row.locator("dd").textContent();
}

test("a container of documents is created and its items are put", async () => {
  const { page } = browser;
  await page.goto(`${portal}/explorer`);
  await page.getByRole("link", { name: `Documents of ${ACCOUNT}` }).click();
  await page.getByLabel("New container").fill("shop/orders");
  await page.getByLabel("Partition key").fill("/customer");
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByText("is there.").waitFor();
  for (let n = 0; n < 12; n++) {
    await page.goto(CONTAINER);
    await page.getByText("Put an item").click();
    const item = { id: `${n}`, customer: `c${n % 3}`, n, text: n === 5 ? HARM : "plain" };
    await page.getByLabel("Item, as JSON").fill(JSON.stringify(item));
    await page.getByRole("button", { name: "Put", exact: true }).click();
    await page.getByText("is there.").waitFor();
  }
  await page.goto(`${portal}/explorer/documents/${ACCOUNT}`);
  await page.getByRole("link", { name: "shop/orders" }).waitFor();
  await look(page, "documents-containers");
});

test("a query shows its rows, its request units and the indexes that it used", async () => {
  const { page } = browser;
  await run("SELECT * FROM c WHERE c.n >= 10");
  assert.equal(await page.locator("tbody tr").count(), 2);
  assert.equal(await fact("Rows"), "2");
  assert.equal(await fact("Items read"), "2");
  assert.ok(Number(await fact("Request units")) > 2);
  assert.ok((await fact("Indexes used")).includes("/n/?"));
  await look(page, "documents-query");
  await run("SELECT VALUE COUNT(1) FROM c", { key: '["c1"]', as: "JSON" });
  assert.equal((await page.locator("pre").textContent()).trim(), "4");
  await run("SELECT c.id, c.text FROM c WHERE c.id = '5'", { as: "JSON" });
  assert.deepEqual(JSON.parse(await page.locator("pre").textContent()), { id: "5", text: HARM });
  await look(page, "documents-json");
  await run("SELECT * FORM c");
  await page.getByRole("alert").getByText(/Syntax error/).waitFor();
  assert.equal(await page.getByLabel("Query", { exact: true }).inputValue(), "SELECT * FORM c");
});

test("an item is edited where it has not changed, and deleted when that is meant", async () => {
  const { page } = browser;
  await run("SELECT * FROM c WHERE c.id = '5'");
  await page.locator("tbody th a").click();
  await page.getByRole("heading", { name: "Item 5", level: 1 }).waitFor();
  const address = page.url();
  const box = page.getByLabel("Item, as JSON");
  const item = JSON.parse(await box.inputValue());
  assert.deepEqual(item, { id: "5", customer: "c2", n: 5, text: HARM });
  await look(page, "documents-item");
  await box.fill(JSON.stringify({ ...item, n: 50 }));
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("The item is saved.").waitFor();
  // The page of before has an old etag.
  await page.goBack();
  await page.goto(address);
  const stale = await page.locator("form input[name=etag]").first().inputValue();
  await box.fill(JSON.stringify({ ...item, n: 51 }));
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("The item is saved.").waitFor();
  await page.locator("form input[name=etag]").first().evaluate((input, etag) => (input.value = etag), stale);
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText(/pre-condition is not met/).waitFor();
  await page.goto(address);
  await page.getByLabel("Delete this item").check();
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByText("The item is deleted.").waitFor();
  await run("SELECT * FROM c WHERE c.id = '5'");
  await page.getByText("No row on this page.").waitFor();
});

test("a new throughput says what it splits, and the page shows each physical partition", async () => {
  const { page } = browser;
  await page.goto(CONTAINER);
  await page.getByRole("link", { name: "Storage and throughput" }).click();
  await page.getByRole("img", { name: /^Storage per physical partition: 1 bars/ }).waitFor();
  await page.getByLabel("Request units a second", { exact: true }).fill("30000");
  await page.getByRole("button", { name: "Show what it does" }).click();
  await page.getByText("split from 1 into 5 physical partitions").waitFor();
  await look(page, "documents-throughput");
  await page.getByRole("button", { name: "Change to 30000" }).click();
  await page.getByText("The throughput is 30000 from now on.").waitFor();
  const deadline = Date.now() + 60_000;
  while ((await page.locator("tbody tr").count()) !== 5) {
    assert.ok(Date.now() < deadline, "the container is not split");
    await page.waitForTimeout(200);
    await page.reload();
  }
  assert.equal(await fact("Items"), "11");
  await page.getByRole("img", { name: /^Request units a second per physical partition: 5 bars/ }).waitFor();
  await look(page, "documents-ranges");
  await page.getByLabel("Request units a second", { exact: true }).fill("40000");
  await page.getByRole("button", { name: "Show what it does" }).click();
  await page.getByText("Nothing is split.").waitFor();
});
