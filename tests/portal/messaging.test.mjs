// Queues and hubs in the portal: counts, messages, dead letters that are sent back, partitions and how far consumers are behind.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { logIn, open, portal, target } from "./browser.mjs";
import { look } from "./looks.mjs";

const ACCOUNT = target.account.name;
const HARM = "<script>alert(1)</script>";
const PAGE = `${portal}/messaging/${ACCOUNT}`;

let browser;
before(async () => {
  browser = await open();
  await logIn(browser.page);
});
after(() => browser.close());

test("a queue is made, and what is sent to it is counted and shown as text", async () => {
  const { page } = browser;
  await page.goto(`${portal}/messaging`);
  await page.getByRole("link", { name: ACCOUNT }).click();
  await page.getByLabel("New queue or topic").fill("orders");
  await page.getByLabel("Partitions").first().fill("2");
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await page.getByText("orders is there.").waitFor();
  await page.getByLabel("New message").fill(HARM);
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await page.getByText("The message is sent.").waitFor();
  assert.equal(await page.locator("pre.preview").textContent(), HARM);
  await look(page, "queue-messages");
  await page.goto(PAGE);
  const row = page.locator('tr[data-entity="orders"]');
  assert.deepEqual((await row.locator("td.number").allTextContents()).slice(0, 4), ["2", "1", "0", "0"]);
  await look(page, "messaging");
});

test("a queue is purged only when that is meant", async () => {
  const { page } = browser;
  await page.goto(`${PAGE}/bus/orders`);
  await page.getByLabel("Delete all messages that nobody holds").check();
  await page.getByRole("button", { name: "Purge" }).click();
  await page.getByText("What nobody holds is deleted.").waitFor();
  assert.equal(await page.locator("pre.preview").count(), 0);
});

test("a hub shows its partitions, takes events and gets more partitions", async () => {
  const { page } = browser;
  await page.goto(PAGE);
  await page.getByLabel("New hub").fill("clicks");
  await page.getByRole("button", { name: "Create hub" }).click();
  await page.getByText("Hub clicks is there.").waitFor();
  await page.getByLabel("New event").fill("one");
  await page.getByLabel("Key", { exact: true }).fill("k");
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await page.getByText("at offset 0.").waitFor();
  assert.equal(await page.locator("tr[data-partition]").count(), 4);
  await page.getByLabel("Partitions; they only grow").fill("6");
  await page.getByRole("button", { name: "Set", exact: true }).click();
  await page.getByText("The hub has 6 partitions.").waitFor();
  assert.equal(await page.locator("tr[data-partition]").count(), 6);
  await page.getByText("No group has committed an offset.").waitFor();
  await look(page, "hub-partitions");
});
