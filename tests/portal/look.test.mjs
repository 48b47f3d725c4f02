// How pages look and read: screenshots for people, axe for what screen readers and keyboards need, in light and dark,
// wide and at 360 pixels.

import assert from "node:assert/strict";
import { mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { admin, logIn, open, portal, table, target } from "./browser.mjs";
import { look } from "./looks.mjs";

const NAME = "looked";
const MAP = `tables/${target.account.name}/${NAME}`;
/** The most bytes of a screenshot that documents show. */
const SHOWN_BYTES_MAX = 90 * 1000;

let browser;
let pages;
before(async () => {
  browser = await open();
  await logIn(browser.page);
  const client = table(NAME);
  await client.createTable();
  const keys = Array.from({ length: 26 }, (_, n) => `city-${String.fromCharCode(97 + n)}`);
  for (const [n, partitionKey] of keys.entries()) {
    const rows = n === 9 ? 120 : 6 + ((n * 7) % 11);
    const put = (_, row) => client.upsertEntity({ partitionKey, rowKey: `r${row}`, text: "x".repeat(300) });
    await Promise.all(Array.from({ length: rows }, put));
  }
  for (const at of keys.filter((_, n) => n > 0 && n % 3 === 0)) {
    const { partitions } = await admin("GET", `/v1/partitions?map=${encodeURIComponent(MAP)}`);
    await admin("POST", `/v1/partitions/${partitions.at(-1).id}/split`, { at });
  }
  for (const partitionKey of [keys[9], keys[9], keys[9], keys[3], keys[20]]) {
    const put = (_, row) => client.upsertEntity({ partitionKey, rowKey: `r${row}`, text: "x".repeat(300) });
    await Promise.all(Array.from({ length: 40 }, put));
  }
  const { shards } = await admin("GET", "/v1/shards");
  const spare = shards.find((one) => one.name === "shard-0003");
  if (!spare) await admin("POST", "/v1/shards", { name: "shard-0003", region: "west", labels: { disk: "fast" } });
  const { partitions } = await admin("GET", `/v1/partitions?map=${encodeURIComponent(MAP)}`);
  for (const one of [partitions[1], partitions[4], partitions[5]]) {
    const { job } = await admin("POST", `/v1/partitions/${one.id}/move`, { to: "shard-0003" });
    while ((await admin("GET", `/v1/jobs/${job}`)).phase !== "done") await new Promise((go) => setTimeout(go, 100));
  }
  const hot = partitions[3];
  pages = [
    ["overview", `${portal}/`],
    ["shards", `${portal}/shards`],
    ["containers", `${portal}/containers`],
    ["container", `${portal}/containers/${encodeURIComponent(MAP)}`],
    ["partition", `${portal}/partitions/${hot.id}`],
    ["split", `${portal}/partitions/${hot.id}/split`],
    ["merge", `${portal}/partitions/${hot.id}/merge`],
    ["move", `${portal}/partitions/${hot.id}/move?to=shard-0003`],
    ["offline", `${portal}/partitions/${hot.id}/offline`],
    ["jobs", `${portal}/jobs`],
    ["advice", `${portal}/advice`],
    ["missing", `${portal}/nothing`],
  ];
  await waitForHistory(hot.id);
});
after(async () => { await browser.close(); });

/** Figures are sampled every ten seconds. */
async function waitForHistory(id) {
  for (let n = 0; n < 200; n++) {
    const { points } = await admin("GET", `/v1/partitions/${id}/history`);
    if (points.length > 1) return;
    await new Promise((go) => setTimeout(go, 200));
  }
  assert.fail("there is no history");
}

test("no page has a serious fault for screen readers or keyboards, in any look", async () => {
  const { page } = browser;
  for (const [name, url] of pages) {
    await page.goto(url);
    await look(page, name);
  }
  await page.getByRole("button", { name: "Log out" }).click();
  await page.getByRole("heading", { name: "Log in", level: 1 }).waitFor();
  await look(page, "login");
});

test("pages are complete without scripts", async () => {
  const plain = await open({ javaScriptEnabled: false });
  try {
    await logIn(plain.page);
    for (const [, url] of pages) {
      await plain.page.goto(url);
      assert.ok((await plain.page.textContent("h1")).length > 0, url);
    }
    await plain.page.goto(pages.find(([name]) => name === "container")[1]);
    assert.ok((await plain.page.locator("tr[data-partition]").count()) > 5);
  } finally {
    await plain.close();
  }
});

test("everything can be reached with the keyboard alone", async () => {
  const { page } = browser;
  await logIn(page);
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to the content");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "main");
});

test("screenshots for the documents are small", { skip: !target.shown }, async () => {
  const { page } = browser;
  await logIn(page);
  mkdirSync(target.shown, { recursive: true });
  await page.emulateMedia({ colorScheme: "light" });
  for (const [name, height] of [["overview", 580], ["container", 690], ["partition", 620]]) {
    await page.setViewportSize({ width: 900, height });
    await page.goto(pages.find(([one]) => one === name)[1]);
    const path = join(target.shown, `${name}.png`);
    await page.screenshot({ path });
    assert.ok(statSync(path).size < SHOWN_BYTES_MAX, `${name}: ${statSync(path).size} bytes`);
  }
});
