// An operator sees a skewed key, splits the hot partition, moves it, and watches both: on the pages alone.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { admin, logIn, open, portal, table, target } from "./browser.mjs";

const NAME = "skewed";
const MAP = `tables/${target.account.name}/${NAME}`;
const CONTAINER = `${portal}/containers/${encodeURIComponent(MAP)}`;
const KEYS = Array.from({ length: 20 }, (_, n) => `customer-${String(n).padStart(2, "0")}`);
/** Five of twenty keys, beside each other, get nearly all requests. */
const HOT = KEYS.slice(5, 10);

let browser;
before(async () => {
  browser = await open();
  await logIn(browser.page);
  await table(NAME).createTable();
  await write(KEYS, 5);
  for (const at of [KEYS[5], KEYS[10], KEYS[15]]) {
    const { partitions } = await admin("GET", `/v1/partitions?map=${encodeURIComponent(MAP)}`);
    await admin("POST", `/v1/partitions/${partitions.at(-1).id}/split`, { at });
  }
});
after(async () => { await browser.close(); });

async function write(keys, rows) {
  const client = table(NAME);
  for (const partitionKey of keys) {
    const each = (_, n) => client.upsertEntity({ partitionKey, rowKey: `r${n}`, text: "x".repeat(200) });
    await Promise.all(Array.from({ length: rows }, each));
  }
}

/** What the table behind the charts says of each partition, in the order of keys. */
async function shown(page) {
  return page.locator("tr[data-partition]").evaluateAll((rows) =>
    rows.map((row) => ({
      id: Number(row.dataset.partition),
      keys: row.querySelector(".key").textContent,
      requests: parseFloat(row.querySelector("[data-request-share]").textContent),
      storage: parseFloat(row.querySelector("[data-storage-share]").textContent),
    })),
  );
}

const busiest = (rows) => rows.reduce((one, other) => (other.requests > one.requests ? other : one));

let hot;

test("a skewed key jumps to the eye, and the page follows without being loaded again", async () => {
  const { page } = browser;
  await page.goto(CONTAINER);
  assert.equal((await shown(page)).length, 4);
  await write(HOT, 40);
  await page.waitForFunction(
    () => [...document.querySelectorAll("[data-request-share]")].some((cell) => parseFloat(cell.textContent) > 60),
  );
  hot = busiest(await shown(page));
  assert.equal(hot.keys, `from ${KEYS[5]} to below ${KEYS[10]}`);
  assert.ok(hot.requests > 60 && hot.storage > 60, JSON.stringify(hot));
  const chart = page.getByRole("img", { name: /^Requests per partition: 4 bars/ });
  assert.equal(await chart.locator("rect[fill='#C2410C']").count(), 1, "one bar is drawn as hot");
});

test("the hot partition is split through its page, and the share of the hottest falls", async () => {
  const { page } = browser;
  await page.locator(`tr[data-partition="${hot.id}"] a`).click();
  await page.getByRole("link", { name: "Split", exact: true }).click();
  await page.getByLabel("Halves of the same").selectOption("load");
  await page.getByRole("button", { name: "Show what it does" }).click();
  const confirm = page.getByRole("button", { name: new RegExp(`^Split partition ${hot.id} at customer-0`) });
  await confirm.click();
  await page.getByText(`Partition ${hot.id} was split`).waitFor();
  await page.getByRole("heading", { name: MAP }).waitFor();
  assert.equal((await shown(page)).length, 5);
  await write(HOT, 40);
  await page.reload();
  const now = busiest(await shown(page));
  assert.ok(now.requests < hot.requests - 15, `${now.requests} % after ${hot.requests} %`);
  assert.ok(now.storage < hot.storage - 15, `${now.storage} % after ${hot.storage} %`);
  hot = now;
});

test("a partition is moved to another shard, and the job is watched to its end", async () => {
  const { page } = browser;
  await admin("POST", "/v1/shards", { name: "shard-0002", region: "elsewhere", labels: { disk: "fast" } });
  await page.goto(`${portal}/partitions/${hot.id}/move`);
  await page.getByLabel("To the shard").selectOption("shard-0002");
  await page.getByRole("button", { name: "Show what it does" }).click();
  await page.getByText(/A job copies .* from shard-\d+ to shard-0002/).waitFor();
  await page.getByRole("button", { name: `Move partition ${hot.id} to shard-0002` }).click();
  const notice = await page.getByText(/^Job \d+ moves partition/).textContent();
  const job = notice.match(/\d+/)[0];
  // The page takes over by itself that the job is done.
  await page.locator(`tr[data-job="${job}"]`, { hasText: "done" }).waitFor();
  await page.goto(CONTAINER);
  await page.getByLabel("Shards by colour").getByText("shard-0002 (1)").waitFor();
  const rows = await admin("GET", `/v1/partitions?map=${encodeURIComponent(MAP)}`);
  assert.equal(rows.partitions.find((one) => one.id === hot.id).shard, "shard-0002");
});

test("a job is paused, continues, and is cancelled on its page", async () => {
  const { page } = browser;
  const { partitions } = await admin("GET", `/v1/partitions?map=${encodeURIComponent(MAP)}`);
  const largest = partitions
    .filter((one) => one.shard !== "shard-0002")
    .reduce((one, other) => (other.bytes > one.bytes ? other : one));
  // So slow that it lasts until it is cancelled.
  const slow = { to: "shard-0002", bytes_per_second: 2_500 };
  const { job } = await admin("POST", `/v1/partitions/${largest.id}/move`, slow);
  await page.goto(`${portal}/jobs`);
  await page.getByRole("progressbar", { name: `Bytes copied by job ${job}` }).waitFor();
  await page.getByRole("button", { name: `Pause job ${job}` }).click();
  await page.getByText(`Job ${job} is paused.`).waitFor();
  await page.getByRole("button", { name: `Resume job ${job}` }).click();
  await page.getByText(`Job ${job} continues.`).waitFor();
  await page.getByRole("button", { name: `Cancel job ${job}` }).click();
  await page.getByText(`Job ${job} is being cancelled.`).waitFor();
  await page.locator(`tr[data-job="${job}"]`, { hasText: "cancelled" }).waitFor();
});

test("states and merges say what they do before they do it", async () => {
  const { page } = browser;
  await page.goto(`${portal}/partitions/${hot.id}`);
  await page.getByRole("link", { name: "Set offline" }).click();
  await page.getByText(/Reads and writes of \d+ items are refused/).waitFor();
  await page.getByRole("button", { name: `Set offline partition ${hot.id}` }).click();
  await page.getByText(`Partition ${hot.id} is offline now.`).waitFor();
  await page.getByRole("link", { name: "Set online" }).click();
  await page.getByRole("button", { name: `Set online partition ${hot.id}` }).click();
  await page.getByText(`Partition ${hot.id} is online now.`).waitFor();
  const { partitions } = await admin("GET", `/v1/partitions?map=${encodeURIComponent(MAP)}`);
  const [left, right] = partitions.slice(-2);
  await page.goto(`${portal}/partitions/${left.id}/merge`);
  await page.getByRole("button", { name: `Merge partition ${left.id} with partition ${right.id}` }).click();
  await page.getByText(`Partition ${left.id} and its neighbour are partition`).waitFor();
  const after = await admin("GET", `/v1/partitions?map=${encodeURIComponent(MAP)}`);
  assert.equal(after.partitions.length, partitions.length - 1);
});

test("what cannot be done says why", async () => {
  const { page } = browser;
  await page.goto(`${portal}/partitions/999999`);
  await page.getByText("there is no partition 999999").waitFor();
  const { partitions } = await admin("GET", `/v1/partitions?map=${encodeURIComponent(MAP)}`);
  await page.goto(`${portal}/partitions/${partitions.at(-1).id}/merge`);
  await page.getByText("there is no neighbour on its right").waitFor();
});

test("nothing went wrong behind the scenes", () => {
  assert.deepEqual(browser.faults.filter((fault) => !fault.includes("404")), []);
});
