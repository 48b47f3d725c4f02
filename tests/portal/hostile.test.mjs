// Keys are whatever users stored. They are shown as they are, and none of them becomes part of the page.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { admin, logIn, open, portal, table, target } from "./browser.mjs";

const NAME = "hostile";
const MAP = `tables/${target.account.name}/${NAME}`;
const KEYS = [`<img src=x onerror=alert(1)>`, `"><svg onload=alert(2)>`, `'; alert(3); '`, `{{7*7}}&lt;b&gt;`];

let browser;
before(async () => {
  browser = await open();
  await logIn(browser.page);
  const client = table(NAME);
  await client.createTable();
  for (const partitionKey of KEYS) {
    for (let n = 0; n < 30; n++) await client.upsertEntity({ partitionKey, rowKey: `r${n}` });
  }
  const { partitions } = await admin("GET", `/v1/partitions?map=${encodeURIComponent(MAP)}`);
  await admin("POST", `/v1/partitions/${partitions[0].id}/split`, { at: KEYS[0] });
});
after(async () => { await browser.close(); });

test("hostile keys are text on every page that shows them", async () => {
  const { page } = browser;
  const { partitions } = await admin("GET", `/v1/partitions?map=${encodeURIComponent(MAP)}`);
  const right = partitions.at(-1);
  const container = `${portal}/containers/${encodeURIComponent(MAP)}`;
  const at = encodeURIComponent(KEYS[0]);
  for (const url of [
    container,
    `${portal}/partitions/${right.id}`,
    `${portal}/partitions/${right.id}/split?at=${at}`,
    `${portal}/partitions/${right.id}/merge`,
    `${portal}/containers?name=${at}`,
    `${portal}/login?next=${at}`,
  ]) {
    await page.goto(url);
    await page.waitForTimeout(1500); // Long enough for the page to be taken over once.
    assert.equal(await page.locator("img, [onerror], [onload]").count(), 0, url);
  }
  await page.goto(container);
  assert.ok((await page.textContent("main")).includes(KEYS[0]));
});

test("the other hostile places: a name in the path, a field of a form", async () => {
  const { page } = browser;
  await page.goto(`${portal}/containers/${encodeURIComponent(KEYS[1])}`);
  await page.getByText(`there is no map ${KEYS[1]}`).waitFor();
  await page.goto(`${portal}/partitions/1/move?to=${encodeURIComponent(KEYS[1])}`);
  assert.equal(await page.locator("[onload]").count(), 0);
});

test("no script of theirs ran", () => {
  const bad = (fault) => !/40[04]/.test(fault);
  assert.deepEqual(browser.faults.filter(bad), []);
});
