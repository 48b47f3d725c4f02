// The explorer: tables, blobs and queues looked at and changed in a browser, with names that are meant to do harm.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { admin, logIn, open, portal, table, target } from "./browser.mjs";
import { look } from "./looks.mjs";

const ACCOUNT = target.account.name;
const HARM = "<script>alert(1)</script>";
/** Names of blobs and texts of messages: markup, quotation marks, a sign that turns the line around, a line break, escapes. */
const HOSTILE = [HARM, `"><img src=x onerror=alert(2)>'`, "up\u202edown", "line\nbreak", "%2f..%2F&a=b", "a/../b"];
/** Of those, what keys of entities may be. */
const KEYS = HOSTILE.filter((text) => !/[/\n]/.test(text)).concat(["plain"]);
/** The smallest image there is: one pixel. */
const PIXEL = Buffer.from("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7", "base64");

let browser;
let folder;
before(async () => {
  folder = mkdtempSync(join(tmpdir(), "lazuli-explorer-"));
  browser = await open();
  await logIn(browser.page);
});
after(async () => {
  await browser.close();
  rmSync(folder, { recursive: true, force: true });
});

function file(name, content) {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

/** The name as the page writes it: signs that cannot be seen are written out. */
function written(text) {
  return text.replaceAll("\u202e", "U+202E").replaceAll("\n", "U+000A");
}

async function create(kind, name) {
  const { page } = browser;
  await page.goto(`${portal}/explorer/${kind}/${ACCOUNT}`);
  await page.getByLabel(/^New /).fill(name);
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByText("is there.").waitFor();
}

test("the explorer is reached from everywhere and leads to what an account has", async () => {
  const { page } = browser;
  await page.getByRole("link", { name: "Explorer" }).click();
  await page.getByRole("heading", { name: "Explorer", level: 1 }).waitFor();
  await look(browser.page, "explorer-index");
  await page.getByRole("link", { name: `Tables of ${ACCOUNT}` }).click();
  await page.getByRole("heading", { name: `Tables of ${ACCOUNT}` }).waitFor();
  await look(browser.page, "explorer-tables");
});

test("entities are inserted, filtered, edited and deleted, whatever their keys are", async () => {
  const { page } = browser;
  await create("tables", "explored");
  const client = table("explored");
  for (const [n, key] of KEYS.entries()) {
    await page.goto(`${portal}/explorer/tables/${ACCOUNT}/explored`);
    await page.getByText("Insert an entity").click();
    const entity = { PartitionKey: key, RowKey: key, Size: n, Text: `${HARM} hush` };
    await page.getByLabel("Entity, as JSON").fill(JSON.stringify(entity));
    await page.getByRole("button", { name: "Insert", exact: true }).click();
    await page.getByText("The entity is inserted.").waitFor();
  }
  await look(browser.page, "explorer-entities");
  assert.ok((await page.textContent("main")).includes(HARM));
  for (const [n, key] of KEYS.entries()) {
    await page.goto(`${portal}/explorer/tables/${ACCOUNT}/explored`);
    await page.getByLabel("Filter").fill(`PartitionKey eq '${key.replaceAll("'", "''")}'`);
    await page.getByRole("button", { name: "Filter", exact: true }).click();
    assert.equal(await page.locator("tbody tr").count(), 1, key);
    await page.locator("tbody th a").click();
    await page.getByRole("heading", { name: "Entity", level: 1 }).waitFor();
    const box = page.getByLabel("Properties, as JSON");
    const entity = JSON.parse(await box.inputValue());
    assert.equal(entity.RowKey, key);
    await box.fill(JSON.stringify({ ...entity, Size: n + 100 }));
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("The entity is saved.").waitFor();
    assert.equal((await client.getEntity(key, key)).Size, n + 100);
  }
  await look(browser.page, "explorer-entity");
  await page.goto(`${portal}/explorer/tables/${ACCOUNT}/explored`);
  await page.getByLabel("Filter").fill("Size gt");
  await page.getByRole("button", { name: "Filter", exact: true }).click();
  await page.getByText("The query condition specified in the request is invalid").waitFor();
  assert.equal(await page.getByLabel("Filter").inputValue(), "Size gt", "the filter stays, to be mended");
  await look(page, "explorer-refused");
});

test("an edit of what somebody else has changed meanwhile is refused, and a deletion is meant", async () => {
  const { page } = browser;
  const client = table("explored");
  const key = KEYS[0];
  const at = `partition_key=${encodeURIComponent(key)}&row_key=${encodeURIComponent(key)}`;
  await page.goto(`${portal}/explorer/tables/${ACCOUNT}/explored/entity?${at}`);
  await client.updateEntity({ partitionKey: key, rowKey: key, Size: 7 }, "Merge");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("The update condition specified in the request was not satisfied").waitFor();
  assert.equal((await client.getEntity(key, key)).Size, 7);
  await page.goto(`${portal}/explorer/tables/${ACCOUNT}/explored/entity?${at}`);
  await page.getByRole("button", { name: "Delete" }).click();
  assert.equal((await client.getEntity(key, key)).Size, 7, "nothing was ticked");
  await page.getByLabel("Delete this entity").check();
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByText("The entity is deleted.").waitFor();
  await assert.rejects(client.getEntity(key, key));
});

test("entities are exported to a file and imported from one", async () => {
  const { page } = browser;
  await page.goto(`${portal}/explorer/tables/${ACCOUNT}/explored`);
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("link", { name: "Export as JSON lines" }).click(),
  ]);
  assert.equal(download.suggestedFilename(), "explored.jsonl");
  const lines = readFileSync(await download.path(), "utf8");
  assert.equal(lines.trimEnd().split("\n").length, KEYS.length - 1);
  await create("tables", "imported");
  await page.getByText("Import a file").click();
  await page.getByLabel(/^File of JSON lines/).setInputFiles(file("lines.jsonl", `${lines}no entity\n`));
  await page.getByRole("button", { name: "Import", exact: true }).click();
  await page.getByText(`${KEYS.length - 1} entities are written, 1 lines refused.`).waitFor();
  assert.equal(await page.locator("tbody tr").count(), KEYS.length - 1);
});

test("a blob is uploaded, previewed, tagged, downloaded and deleted", async () => {
  const { page } = browser;
  await create("blobs", "explored");
  const upload = async (path, name) => {
    await page.goto(`${portal}/explorer/blobs/${ACCOUNT}/explored`);
    await page.getByText("Upload a blob").click();
    if (name) await page.getByLabel("Name").fill(name);
    await page.getByLabel("File", { exact: true }).setInputFiles(path);
    await page.getByRole("button", { name: "Upload", exact: true }).click();
    await page.getByText("The blob is stored.").waitFor();
  };
  await upload(file("page.html", `<h1>${HARM}</h1>`), "");
  await page.getByRole("heading", { name: "Blob page.html" }).waitFor();
  assert.equal(await page.locator("pre.preview").textContent(), `<h1>${HARM}</h1>`);
  await page.getByLabel(/^Tags/).fill("colour=blue\nsize=3");
  await page.getByRole("button", { name: "Set tags" }).click();
  await page.getByText("The tags are set.").waitFor();
  assert.equal(await page.getByLabel(/^Tags/).inputValue(), "colour=blue\nsize=3");
  await look(browser.page, "explorer-blob");
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("link", { name: /^Download/ }).click(),
  ]);
  assert.equal(readFileSync(await download.path(), "utf8"), `<h1>${HARM}</h1>`);
  await upload(file("pixel.gif", PIXEL), "folder/pixel.gif");
  const image = page.locator("img.preview");
  assert.equal(await image.evaluate((one) => one.complete && one.naturalWidth), 1);
  const big = Buffer.alloc(3_000_000, 1);
  await upload(file("big.bin", big), "folder/big.bin");
  assert.ok((await page.locator("pre.preview").textContent()).startsWith("00000000  01 01"));
  const { bytes } = await admin("GET", `/v1/explorer/blobs/${ACCOUNT}/explored/blob?name=folder%2Fbig.bin`);
  assert.equal(bytes, big.length);
  await page.goto(`${portal}/explorer/blobs/${ACCOUNT}/explored`);
  await page.getByRole("link", { name: "folder/" }).click();
  assert.equal(await page.locator("tbody tr").count(), 2);
  await look(browser.page, "explorer-blobs");
  await page.getByRole("link", { name: "big.bin" }).click();
  await page.getByLabel("Delete this blob").check();
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByText("The blob is deleted.").waitFor();
});

test("blobs of hostile names are listed, opened and deleted by their own names", async () => {
  const { page } = browser;
  await create("blobs", "hostile");
  const path = (what, name) => `/v1/explorer/blobs/${ACCOUNT}/hostile/${what}?name=${encodeURIComponent(name)}`;
  for (const name of HOSTILE) {
    const answer = await fetch(`${target.endpoints.admin}${path("blob", name)}`, {
      method: "PUT",
      headers: { authorization: `Bearer ${target.token}`, "content-type": "text/html" },
      body: name,
    });
    assert.equal(answer.status, 200, name);
  }
  for (const name of HOSTILE) {
    await page.goto(`${portal}/explorer/blobs/${ACCOUNT}/hostile`);
    for (const piece of name.match(/[^/]*\/|[^/]+$/g)) {
      await page.locator("tbody").getByRole("link", { name: written(piece), exact: true }).click();
    }
    await page.getByRole("heading", { name: `Blob ${written(name)}`, exact: true }).waitFor();
    assert.equal(await page.locator("pre.preview").textContent(), name);
    await page.getByLabel("Delete this blob").check();
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByText("The blob is deleted.").waitFor();
  }
  const { blobs } = await admin("GET", `/v1/explorer/blobs/${ACCOUNT}/hostile/list`);
  assert.deepEqual(blobs, []);
});

test("messages are put, peeked at and cleared", async () => {
  const { page } = browser;
  await create("queues", "explored");
  for (const text of HOSTILE) {
    await page.getByLabel("New message").fill(text);
    await page.getByRole("button", { name: "Put" }).click();
    await page.getByText("The message is put.").waitFor();
  }
  assert.deepEqual(await page.locator("pre.preview").allTextContents(), HOSTILE);
  await look(browser.page, "explorer-queue");
  await page.getByLabel("Remove all messages").check();
  await page.getByRole("button", { name: "Clear" }).click();
  await page.getByText("The queue is empty.").waitFor();
  assert.equal(await page.locator("pre.preview").count(), 0);
});

test("every change came to the audit log by the portal, and none without the secret of the session", async () => {
  const { page, context } = browser;
  const { changes } = await admin("GET", "/v1/audit?limit=1000");
  const put = changes.find((change) => change.operation === "put-message");
  assert.equal(put.via, "portal");
  assert.ok(changes.some((change) => change.operation === "insert-entity"));
  assert.ok(!JSON.stringify(changes).includes("hush"), "what is stored is not in the log");
  const [cookie] = await context.cookies();
  const paths = [
    `create/queues/${ACCOUNT}`,
    `queues/${ACCOUNT}/explored/put`,
    `queues/${ACCOUNT}/explored/clear`,
    `tables/${ACCOUNT}/explored/insert`,
    `tables/${ACCOUNT}/explored/import`,
    `tables/${ACCOUNT}/explored/change?partition_key=plain&row_key=plain`,
    `blobs/${ACCOUNT}/explored/upload`,
    `blobs/${ACCOUNT}/explored/delete?name=page.html`,
    `blobs/${ACCOUNT}/explored/tags?name=page.html`,
  ];
  const form = new FormData();
  form.set("csrf", "guess");
  form.set("file", new Blob(["x"]), "x.txt");
  for (const path of paths) {
    for (const body of [new URLSearchParams({ csrf: "guess", sure: "yes", how: "delete", text: "x" }), form]) {
      const headers = { cookie: `${cookie.name}=${cookie.value}` };
      const answer = await fetch(`${portal}/explorer/${path}`, { method: "POST", headers, body });
      assert.equal(answer.status, 403, path);
    }
  }
  const { changes: after } = await admin("GET", "/v1/audit?limit=1000");
  assert.equal(after.length, changes.length, "nothing was even tried");
  await page.goto(`${portal}/explorer`);
});

test("nothing that was stored has run", async () => {
  // Refusals are answers too, and the browser tells of them.
  const faults = browser.faults.filter((fault) => !/status of 4\d\d/.test(fault));
  assert.deepEqual(faults, []);
});
