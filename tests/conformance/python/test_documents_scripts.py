"""Documents: stored procedures, triggers and user-defined functions."""

from documents import all_of, container, fresh, ids, status

ADD = """function (id, n) {
    var container = getContext().getCollection();
    for (var i = 0; i < n; i++) {
        var accepted = container.createDocument(container.getSelfLink(), {id: id + i, pk: "a", i: i});
        if (!accepted) throw new Error("not accepted");
    }
    getContext().getResponse().setBody({made: n});
}"""


def test_scripts_are_kept_and_replaced(container):
    scripts = container.scripts
    scripts.create_stored_procedure({"id": "p", "body": ADD})
    assert scripts.get_stored_procedure("p")["body"] == ADD
    scripts.replace_stored_procedure("p", {"id": "p", "body": "function () {}"})
    assert [one["id"] for one in scripts.list_stored_procedures()] == ["p"]
    scripts.delete_stored_procedure("p")
    assert status(lambda: scripts.get_stored_procedure("p")) == 404
    trigger = {"id": "t", "body": "function () {}", "triggerType": "Pre", "triggerOperation": "All"}
    scripts.create_trigger(trigger)
    assert scripts.get_trigger("t")["triggerType"] == "Pre"
    scripts.create_user_defined_function({"id": "f", "body": "function (x) { return x; }"})
    assert [one["id"] for one in scripts.list_user_defined_functions()] == ["f"]


def test_a_procedure_changes_items_and_answers(container):
    container.scripts.create_stored_procedure({"id": "add", "body": ADD})
    done = container.scripts.execute_stored_procedure("add", partition_key="a", params=["x", 3])
    assert done == {"made": 3}
    assert sorted(ids(container.read_all_items())) == ["x0", "x1", "x2"]


def test_a_procedure_that_throws_changes_nothing(container):
    body = ADD.replace('getContext().getResponse()', 'throw new Error("no"); getContext().getResponse()')
    container.scripts.create_stored_procedure({"id": "bad", "body": body})
    assert status(lambda: container.scripts.execute_stored_procedure("bad", partition_key="a", params=["x", 3])) == 400
    assert ids(container.read_all_items()) == []


def test_a_procedure_queries_its_partition(container):
    for n, key in enumerate("aab"):
        container.create_item({"id": str(n), "pk": key})
    body = """function () {
        var c = getContext().getCollection();
        c.queryDocuments(c.getSelfLink(), "SELECT VALUE r.id FROM r", {}, function (error, rows) {
            if (error) throw error;
            getContext().getResponse().setBody(rows);
        });
    }"""
    container.scripts.create_stored_procedure({"id": "find", "body": body})
    assert sorted(container.scripts.execute_stored_procedure("find", partition_key="a")) == ["0", "1"]


def test_a_trigger_changes_what_is_written(container):
    body = """function () {
        var request = getContext().getRequest();
        var item = request.getBody();
        item.stamp = "by trigger";
        request.setBody(item);
    }"""
    trigger = {"id": "stamp", "body": body, "triggerType": "Pre", "triggerOperation": "Create"}
    container.scripts.create_trigger(trigger)
    container.create_item({"id": "1", "pk": "a"}, pre_trigger_include="stamp")
    container.create_item({"id": "2", "pk": "a"})
    assert container.read_item("1", "a")["stamp"] == "by trigger"
    assert "stamp" not in container.read_item("2", "a")


def test_a_post_trigger_that_throws_undoes_the_write(container):
    trigger = {"id": "no", "body": "function () { throw new Error('no'); }", "triggerType": "Post", "triggerOperation": "All"}
    container.scripts.create_trigger(trigger)
    assert status(lambda: container.create_item({"id": "1", "pk": "a"}, post_trigger_include="no")) == 400
    assert ids(container.read_all_items()) == []


def test_functions_are_called_by_queries(container):
    for n in range(4):
        container.create_item({"id": str(n), "pk": "a", "n": n})
    container.scripts.create_user_defined_function({"id": "square", "body": "function (x) { return x * x; }"})
    found = all_of(container, "SELECT VALUE udf.square(c.n) FROM c WHERE udf.square(c.n) > 1")
    assert sorted(found) == [4, 9]
    assert status(lambda: all_of(container, "SELECT VALUE udf.none(c.n) FROM c")) == 400
