"""Documents: queries over one partition and over all, pages, parameters, and what is refused."""

import pytest

from documents import all_of, container, ids, refusal


@pytest.fixture(scope="module")
def people(documents_database):
    """Twenty items over five partition keys."""
    from documents import make
    container = make(documents_database)
    for n in range(20):
        container.create_item({
            "id": f"{n:02}", "pk": f"p{n % 5}", "n": n, "name": f"Name {n}", "even": n % 2 == 0,
            "tags": [f"t{n % 3}", "all"], "address": {"city": ["Berlin", "Bonn"][n % 2]},
        })
    return container


def test_all_items_are_found_over_all_partitions(people):
    assert sorted(ids(all_of(people, "SELECT * FROM c"))) == [f"{n:02}" for n in range(20)]


def test_one_partition_is_asked_by_its_key(people):
    found = people.query_items("SELECT * FROM c WHERE c.n > 5", partition_key="p1")
    assert sorted(ids(found)) == ["06", "11", "16"]


def test_a_query_over_partitions_must_be_allowed(people):
    refused = refusal(lambda: list(people.query_items("SELECT * FROM c")))
    assert refused.status_code == 400
    assert "Cross partition query is required but disabled" in refused.message


def test_parameters_are_values(people):
    parameters = [{"name": "@city", "value": "Bonn"}, {"name": "@n", "value": 10}]
    query = "SELECT VALUE c.id FROM c WHERE c.address.city = @city AND c.n < @n"
    assert sorted(all_of(people, query, parameters=parameters)) == ["01", "03", "05", "07", "09"]


@pytest.mark.parametrize(
    "query, expected",
    [
        ("SELECT VALUE COUNT(1) FROM c", [20]),
        ("SELECT VALUE SUM(c.n) FROM c WHERE c.even", [90]),
        ("SELECT VALUE MAX(c.n) FROM c", [19]),
        ("SELECT VALUE AVG(c.n) FROM c", [9.5]),
        ("SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n DESC", [19, 18, 17]),
        ("SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 2 LIMIT 3", [2, 3, 4]),
        ("SELECT DISTINCT VALUE c.address.city FROM c ORDER BY c.address.city", ["Berlin", "Bonn"]),
        ("SELECT VALUE c.id FROM c WHERE c.name LIKE '%1_'", [f"{n}" for n in range(10, 20)]),
        ("SELECT VALUE c.id FROM c WHERE c.n BETWEEN 3 AND 5", ["03", "04", "05"]),
        ("SELECT VALUE c.id FROM c WHERE c.n IN (1, 7)", ["01", "07"]),
        ("SELECT VALUE t FROM c JOIN t IN c.tags WHERE c.n = 4", ["t1", "all"]),
        ("SELECT c.n, c.missing FROM c WHERE c.id = '03'", [{"n": 3}]),
        ("SELECT VALUE {id: c.id, up: UPPER(c.name)} FROM c WHERE c.n = 1", [{"id": "01", "up": "NAME 1"}]),
        ("SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(c.tags, 't2') AND c.n < 6", ["02", "05"]),
        ("SELECT VALUE c.id FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t = 't0') AND c.n < 4", ["00", "03"]),
        ("SELECT VALUE c.even ? 'yes' : 'no' FROM c WHERE c.n = 2", ["yes"]),
        ("SELECT VALUE 1 + 2", [3]),
        ("SELECT VALUE c.id FROM c WHERE NOT IS_DEFINED(c.missing) AND c.n = 0", ["00"]),
    ],
)
def test_a_query_gives_its_rows(people, query, expected):
    found = all_of(people, query)
    if "ORDER BY" not in query and "JOIN" not in query:
        found = sorted(found, key=str)
    assert found == expected


def test_groups_are_counted(people):
    found = all_of(people, "SELECT c.address.city AS city, COUNT(1) AS n FROM c GROUP BY c.address.city")
    assert sorted(found, key=str) == [{"city": "Berlin", "n": 10}, {"city": "Bonn", "n": 10}]


def test_pages_go_on_where_the_last_one_ended(people):
    for query in ["SELECT VALUE c.n FROM c", "SELECT VALUE c.n FROM c ORDER BY c.n"]:
        pages, token = [], None
        while True:
            pager = people.query_items(query, enable_cross_partition_query=True, max_item_count=6).by_page(token)
            pages.append(list(pager.next()))
            token = pager.continuation_token
            if token is None:
                break
        assert all(len(page) <= 6 for page in pages) and len(pages) >= 4
        found = sum(pages, [])
        assert sorted(found) == list(range(20))
        if "ORDER" in query:
            assert found == list(range(20))


@pytest.mark.parametrize("query", ["SELEC * FROM c", "SELECT * FROM", "SELECT c.n FROM c WHERE", "SELECT VALUE nope(1)"])
def test_a_bad_query_is_refused_with_its_errors(people, query):
    refused = refusal(lambda: all_of(people, query))
    assert refused.status_code == 400 and "errors" in refused.message


def test_queries_tell_what_they_did(people):
    headers = {}
    hook = lambda found, _: headers.update(found)
    list(people.query_items("SELECT * FROM c", partition_key="p1", populate_query_metrics=True, response_hook=hook))
    assert float(headers["x-ms-request-charge"]) > 2
    assert "retrievedDocumentCount=4" in headers["x-ms-documentdb-query-metrics"]


def test_order_by_sorts_types_and_missing_values(container):
    values = [3, "b", None, True, False, "a", -1.5, [1], {"x": 1}]
    for n, value in enumerate(values):
        container.create_item({"id": str(n), "pk": "a", "v": value})
    container.create_item({"id": "missing", "pk": "a"})
    found = all_of(container, "SELECT c.id, c.v FROM c ORDER BY c.v")
    assert [row.get("v", "missing") for row in found] == ["missing", None, False, True, -1.5, 3, "a", "b", [1], {"x": 1}]
