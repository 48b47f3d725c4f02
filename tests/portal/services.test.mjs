// A page for each service with its own figures, whatever its protocol; charts that are read by pointer and by keyboard; an index
// that is searched, and a text that is analyzed.

import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { after, before, test } from "node:test";

import { admin, logIn, open, portal, table, target } from "./browser.mjs";
import { look } from "./looks.mjs";

const ACCOUNT = target.account.name;
const HARM = "<script>alert(1)</script>";

let browser;
before(async () => {
  browser = await open();
  await logIn(browser.page);
});
after(() => browser.close());

/** Sends commands to the cache as they stand, and reads until it has answered them all. */
async function cache(...commands) {
  const url = new URL(target.endpoints.cache.replace("redis:", "http:"));
  const socket = connect(Number(url.port), url.hostname);
  socket.write(commands.map((words) => `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join("")}`).join(""));
  let text = "";
  while (text.split("\r\n").length <= commands.length) text += (await once(socket, "data"))[0];
  socket.end();
  return text;
}

/** One request to the Search service, as its clients send it. */
async function search(method, path, body) {
  const url = `${target.endpoints.search}${path}?api-version=2024-07-01`;
  const headers = { "api-key": target.account.key, "content-type": "application/json", "x-lazuli-wait": "visible" };
  const answer = await fetch(url, { method, headers, body: JSON.stringify(body) });
  assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${await answer.clone().text()}`);
  return answer.json();
}

test("every service has a page, which tells what was asked of it and how long that took", async () => {
  const { page } = browser;
  const client = table("served");
  await client.createTable();
  await Promise.all(Array.from({ length: 60 }, (_, n) => client.upsertEntity({ partitionKey: "p", rowKey: `r${n}` })));
  await assert.rejects(client.getEntity("p", "nothing"));
  await page.goto(`${portal}/services`);
  await look(page, "services");
  const names = await page.locator("tbody th a").allTextContents();
  assert.ok(names.length >= 9, names.join());
  for (const name of names) {
    await page.goto(`${portal}/services`);
    await page.getByRole("link", { name, exact: true }).first().click();
    await page.getByRole("heading", { name, level: 1, exact: true }).waitFor();
    await page.getByRole("heading", { name: "Operations" }).waitFor();
  }
  await page.goto(`${portal}/services/tables`);
  const row = page.locator("tr[data-operation='InsertOrMergeEntity'], tr[data-operation='MergeEntity']").first();
  // Other tests on this server have been refused as well.
  await page.locator("tr[data-operation]", { hasText: /404: \d/ }).first().waitFor();
  assert.ok((await page.locator("tr[data-operation]").count()) >= 3);
  const counts = (await row.textContent()).match(/\d+/g).map(Number);
  assert.ok(Math.max(...counts) >= 60, counts.join());
  // The first step of five seconds is over soon.
  await page.getByRole("img", { name: /^Requests: Requests is / }).first().waitFor();
  await look(page, "service-tables");
});

test("a chart is read with the pointer and with the keyboard, and over another time", async () => {
  const { page } = browser;
  await page.goto(`${portal}/services/tables`);
  const plot = page.locator("figure.plot").first();
  await plot.locator("svg").waitFor();
  const readout = plot.locator(".readout");
  await plot.locator(".hit").last().hover();
  assert.match(await readout.textContent(), /^now: Requests /);
  await plot.focus();
  await page.keyboard.press("Home");
  const first = await readout.textContent();
  await page.keyboard.press("ArrowRight");
  const second = await readout.textContent();
  assert.ok(first !== second && /ago|now/.test(second), `${first}, ${second}`);
  assert.equal(await plot.locator(".hit.chosen").count(), 1);
  await page.getByRole("link", { name: "2 hours" }).click();
  assert.equal(await page.getByRole("link", { name: "2 hours" }).getAttribute("aria-current"), "true");
});

test("the cache tells its memory, its hits, its commands and its keys", async () => {
  const { page } = browser;
  await cache(["SET", HARM, "x".repeat(5000)], ["SET", "small", "1"], ["GET", "small"], ["GET", "small"], ["GET", "absent"]);
  await page.goto(`${portal}/services/cache`);
  const fact = (name) => page.locator("dl.facts div", { has: page.getByText(name, { exact: true }) }).locator("dd");
  assert.equal(await fact("Hit ratio").first().textContent(), "66.7 %");
  // Keys are surveyed every few seconds, and somebody has looked a moment ago.
  await fact("Keys").filter({ hasText: /^2$/ }).first().waitFor();
  const biggest = page.getByRole("region", { name: "Biggest keys" });
  assert.equal(await biggest.locator("tbody th").first().textContent(), HARM);
  await page.locator('tr[data-operation="get"]', { hasText: "3" }).waitFor();
  await look(page, "service-cache");
});

test("an index is searched with scores, its query is explained, and a text is analyzed", async () => {
  const { page } = browser;
  const fields = [
    { name: "id", type: "Edm.String", key: true },
    { name: "text", type: "Edm.String", searchable: true },
    { name: "stars", type: "Edm.Int32", filterable: true },
  ];
  await search("POST", "/indexes", { name: "hotels", fields });
  const texts = ["a quiet house by the sea", "a loud house", `${HARM} in a house by the sea and the sea`];
  const value = texts.map((text, n) => ({ "@search.action": "upload", id: String(n), text, stars: n }));
  await search("POST", "/indexes/hotels/docs/search.index", { value });
  await page.goto(`${portal}/explorer/indexes/${ACCOUNT}`);
  await page.getByRole("link", { name: "hotels" }).click();
  assert.equal(await page.locator("tr[data-slice]").count(), 12);
  await page.getByLabel("Search text").fill("sea house");
  await page.getByRole("button", { name: "Search", exact: true }).click();
  await page.getByText("3 documents. The text became this query:").waitFor();
  const rows = page.getByRole("region", { name: "Results" }).locator("tbody tr");
  assert.match(await rows.first().textContent(), /sea/);
  assert.match(await page.locator("pre.preview").first().textContent(), /text:sea/);
  await page.getByLabel("Filter").fill("stars gt");
  await page.getByRole("button", { name: "Search", exact: true }).click();
  await page.getByRole("alert").waitFor();
  assert.equal(await page.getByLabel("Filter").inputValue(), "stars gt", "what was asked stays, to be mended");
  await page.getByLabel("Analyzer", { exact: true }).fill("en.lucene");
  await page.getByLabel("Text", { exact: true }).fill("The running foxes");
  await page.getByRole("button", { name: "Show the tokens" }).click();
  const tokens = page.getByRole("region", { name: "Tokens" }).locator("tbody th");
  assert.deepEqual(await tokens.allTextContents(), ["run", "fox"]);
  await look(page, "index");
});

test("what nobody has looked at fails nowhere", () => {
  const expected = browser.faults.filter((fault) => !/status of 4\d\d/.test(fault));
  assert.deepEqual(expected, []);
});
