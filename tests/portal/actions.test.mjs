// What commands do, done on pages: shards are added, drained, filled and removed, a plan is looked at, a partition is backed up
// and restored, accounts and keys come and go, and all of it stands in the audit log.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { admin, logIn, open, portal, table, target } from "./browser.mjs";
import { look } from "./looks.mjs";

const NAME = "kept";
const MAP = `tables/${target.account.name}/${NAME}`;

let browser;
let folder;
before(async () => {
  folder = mkdtempSync(join(tmpdir(), "lazuli-actions-"));
  browser = await open({ acceptDownloads: true });
  await logIn(browser.page);
  const client = table(NAME);
  await client.createTable();
  const put = (_, n) => client.upsertEntity({ partitionKey: `p${n % 8}`, rowKey: `r${n}`, text: "x".repeat(200) });
  await Promise.all(Array.from({ length: 80 }, put));
});
after(async () => {
  await browser.close();
  rmSync(folder, { recursive: true, force: true });
});

const row = (shard) => browser.page.locator(`tr[data-shard="${shard}"]`);

test("a shard is added, drained, filled again and removed", async () => {
  const { page } = browser;
  await page.goto(`${portal}/shards`);
  await page.getByText("Add a shard", { exact: true }).click();
  await page.getByLabel("Name", { exact: true }).fill("shard-0042");
  await page.getByLabel("Region").fill("west");
  await page.getByLabel("Labels").fill("disk=fast, rack=7");
  await page.getByRole("button", { name: "Show what it does" }).click();
  await look(page, "shard-add");
  await page.getByRole("button", { name: "Add the shard shard-0042" }).click();
  await page.getByText("The shard shard-0042 is there.").waitFor();
  assert.match(await row("shard-0042").textContent(), /disk=fast, rack=7/);
  await page.getByRole("link", { name: "Drain shard-0042" }).click();
  await look(page, "shard-drain");
  await page.getByRole("button", { name: "Drain shard-0042" }).click();
  await page.getByText("The shard shard-0042 is being drained.").waitFor();
  await row("shard-0042").getByText("draining").waitFor();
  await page.getByRole("link", { name: "Fill again shard-0042" }).click();
  await page.getByRole("button", { name: "Let shard-0042 be filled again" }).click();
  await page.getByText("The shard shard-0042 is filled again.").waitFor();
  await row("shard-0042").getByText("online").waitFor();
  await look(page, "shards-two");
  await page.getByRole("link", { name: "Remove shard-0042" }).click();
  await page.getByRole("button", { name: "Remove shard-0042" }).click();
  await page.getByText("The shard shard-0042 is removed.").waitFor();
  assert.equal(await row("shard-0042").count(), 0);
  await page.getByRole("link", { name: "Remove shard-0001" }).click();
  await page.getByText("Drain it first.").waitFor();
  assert.equal(await page.getByRole("button", { name: /^Remove/ }).count(), 0);
});

test("the plan has every shard before and after it, and nothing is carried out where there is nothing to do", async () => {
  const { page } = browser;
  await admin("POST", "/v1/shards", { name: "shard-0043" });
  await page.goto(`${portal}/rebalance`);
  await page.getByText("there is nothing to do").waitFor();
  const rows = page.getByRole("region", { name: "Shards before and after" }).locator("tbody tr");
  assert.equal(await rows.count(), (await admin("GET", "/v1/shards")).shards.length);
  await page.getByRole("img", { name: /^Storage per shard: \d+ bars, shards, each before and after/ }).waitFor();
  assert.equal(await page.getByRole("button", { name: /^Carry out/ }).count(), 0);
  await look(page, "rebalance");
});

test("a partition is backed up to a file, and restored into another container", async () => {
  const { page } = browser;
  const { partitions } = await admin("GET", `/v1/partitions?map=${encodeURIComponent(MAP)}`);
  await page.goto(`${portal}/partitions/${partitions[0].id}`);
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "Back it up" }).click()]);
  const file = join(folder, "backup");
  await download.saveAs(file);
  assert.ok(statSync(file).size > 1000);
  await page.goto(`${portal}/backups`);
  await page.getByLabel(/^Into the container/).fill(`tables/${target.account.name}/restored`);
  await page.getByLabel("File", { exact: true }).setInputFiles(file);
  await page.getByRole("button", { name: "Restore" }).click();
  await page.getByText(/^Restore \d+ into/).waitFor();
  await page.locator("tr[data-restore]", { hasText: "done" }).first().waitFor();
  await look(page, "backups");
  assert.ok(await table("restored").getEntity("p3", "r3"));
});

test("an account is created, gets a new key and is deleted", async () => {
  const { page } = browser;
  await page.goto(`${portal}/accounts`);
  await page.getByLabel(/^New account/).fill("newcomer");
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByText("The account newcomer is there").waitFor();
  await look(page, "accounts");
  await page.getByRole("link", { name: "Regenerate a key of newcomer" }).click();
  await look(page, "account-rotate");
  await page.getByRole("button", { name: "Regenerate key 2 of newcomer" }).click();
  const key = await page.locator("#key-2").textContent();
  const { accounts } = await admin("GET", "/v1/accounts?keys=true");
  assert.equal(accounts.find((one) => one.name === "newcomer").key2, key);
  await page.goto(`${portal}/accounts`);
  await page.getByRole("link", { name: "Delete newcomer" }).click();
  await page.getByRole("button", { name: "Delete the account newcomer" }).click();
  await page.getByText("The account newcomer is deleted.").waitFor();
  assert.equal(await page.locator('tr[data-account="newcomer"]').count(), 0);
});

test("the audit log has it all, and the settings are shown with their origins", async () => {
  const { page } = browser;
  await page.goto(`${portal}/audit`);
  for (const operation of ["drain-shard", "create-account", "rotate-key", "restore"]) {
    await page.locator("tr[data-change]", { hasText: operation }).first().waitFor();
  }
  await look(page, "audit");
  await page.goto(`${portal}/settings`);
  assert.match(await page.locator('tr[data-setting="ports"]').textContent(), /free/);
  await look(page, "settings");
  await page.goto(`${portal}/sql`);
  await page.getByText("lazuli sql init").waitFor();
  await look(page, "sql");
});

test("nothing went wrong behind the scenes", () => {
  assert.deepEqual(browser.faults, []);
});
