// Documents: stored procedures, triggers and user-defined functions.

import assert from "node:assert/strict";

import { allOf, everything, ids, make, sorted, status } from "./documents_target.mjs";
import { test } from "./target.mjs";

const ADD = `function (id, n) {
    var container = getContext().getCollection();
    for (var i = 0; i < n; i++) {
        var accepted = container.createDocument(container.getSelfLink(), {id: id + i, pk: "a", i: i});
        if (!accepted) throw new Error("not accepted");
    }
    getContext().getResponse().setBody({made: n});
}`;

test("test_scripts_are_kept_and_replaced", async () => {
  const { scripts } = await make();
  await scripts.storedProcedures.create({ id: "p", body: ADD });
  const procedure = scripts.storedProcedure("p");
  assert.equal((await procedure.read()).resource.body, ADD);
  await procedure.replace({ id: "p", body: "function () {}" });
  assert.deepEqual(ids((await scripts.storedProcedures.readAll().fetchAll()).resources), ["p"]);
  await procedure.delete();
  assert.equal(await status(() => procedure.read()), 404);
  await scripts.triggers.create({ id: "t", body: "function () {}", triggerType: "Pre", triggerOperation: "All" });
  assert.equal((await scripts.trigger("t").read()).resource.triggerType, "Pre");
  await scripts.userDefinedFunctions.create({ id: "f", body: "function (x) { return x; }" });
  assert.deepEqual(ids((await scripts.userDefinedFunctions.readAll().fetchAll()).resources), ["f"]);
});

const execute = async (container, id, parameters) =>
  (await container.scripts.storedProcedure(id).execute("a", parameters)).resource;

test("test_a_procedure_changes_items_and_answers", async () => {
  const container = await make();
  await container.scripts.storedProcedures.create({ id: "add", body: ADD });
  assert.deepEqual(await execute(container, "add", ["x", 3]), { made: 3 });
  assert.deepEqual(sorted(ids(await everything(container))), ["x0", "x1", "x2"]);
});

test("test_a_procedure_that_throws_changes_nothing", async () => {
  const container = await make();
  const body = ADD.replace("getContext().getResponse()", 'throw new Error("no"); getContext().getResponse()');
  await container.scripts.storedProcedures.create({ id: "bad", body });
  assert.equal(await status(() => execute(container, "bad", ["x", 3])), 400);
  assert.deepEqual(await everything(container), []);
});

test("test_a_procedure_queries_its_partition", async () => {
  const container = await make();
  for (const [n, pk] of ["a", "a", "b"].entries()) {
    await container.items.create({ id: `${n}`, pk });
  }
  const body = `function () {
        var c = getContext().getCollection();
        c.queryDocuments(c.getSelfLink(), "SELECT VALUE r.id FROM r", {}, function (error, rows) {
            if (error) throw error;
            getContext().getResponse().setBody(rows);
        });
    }`;
  await container.scripts.storedProcedures.create({ id: "find", body });
  assert.deepEqual(sorted(await execute(container, "find", [])), ["0", "1"]);
});

test("test_a_trigger_changes_what_is_written", async () => {
  const container = await make();
  const body = `function () {
        var request = getContext().getRequest();
        var item = request.getBody();
        item.stamp = "by trigger";
        request.setBody(item);
    }`;
  await container.scripts.triggers.create({ id: "stamp", body, triggerType: "Pre", triggerOperation: "Create" });
  await container.items.create({ id: "1", pk: "a" }, { preTriggerInclude: "stamp" });
  await container.items.create({ id: "2", pk: "a" });
  assert.equal((await container.item("1", "a").read()).resource.stamp, "by trigger");
  assert.equal((await container.item("2", "a").read()).resource.stamp, undefined);
});

test("test_a_post_trigger_that_throws_undoes_the_write", async () => {
  const container = await make();
  const body = "function () { throw new Error('no'); }";
  await container.scripts.triggers.create({ id: "no", body, triggerType: "Post", triggerOperation: "All" });
  const create = () => container.items.create({ id: "1", pk: "a" }, { postTriggerInclude: "no" });
  assert.equal(await status(create), 400);
  assert.deepEqual(await everything(container), []);
});

test("test_functions_are_called_by_queries", async () => {
  const container = await make();
  for (let n = 0; n < 4; n++) {
    await container.items.create({ id: `${n}`, pk: "a", n });
  }
  await container.scripts.userDefinedFunctions.create({ id: "square", body: "function (x) { return x * x; }" });
  const found = await allOf(container, "SELECT VALUE udf.square(c.n) FROM c WHERE udf.square(c.n) > 1");
  assert.deepEqual(sorted(found), [4, 9]);
  assert.equal(await status(() => allOf(container, "SELECT VALUE udf.none(c.n) FROM c")), 400);
});
