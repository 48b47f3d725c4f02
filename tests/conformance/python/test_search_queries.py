"""Queries of Search: words, syntaxes, filters, order, pages, facets, highlights, scoring, synonyms, vectors."""

import pytest
from azure.search.documents.indexes.models import (
    MagnitudeScoringFunction,
    MagnitudeScoringParameters,
    ScoringProfile,
    SearchableField,
    SynonymMap,
    TextWeights,
)
from azure.search.documents.models import VectorizedQuery

from search_target import HOTELS, fresh, hotel_index, ids, refusal, service, shown, status


@pytest.fixture(scope="module")
def hotels(service):
    return service.hotels()


def found(hotels, text=None, **how):
    return sorted(ids(hotels.search(text, **how)))


def test_words_find_documents_by_relevance(hotels):
    results = list(hotels.search("luxury palace"))
    assert ids(results)[0] == "2" and sorted(ids(results)) == ["2", "4"]
    scores = [result["@search.score"] for result in results]
    assert scores == sorted(scores, reverse=True) and scores[0] > 0
    assert found(hotels, "palaces") == ["2", "4"], "words are stemmed"
    assert found(hotels, "zebra") == []
    assert all(result["@search.score"] == 1.0 for result in hotels.search("*"))


def test_a_search_mode_of_all_needs_every_word(hotels):
    assert found(hotels, "garden pool") == ["1", "2", "4"]
    assert found(hotels, "garden quiet", search_mode="all") == ["1", "4"]
    assert found(hotels, "garden +wifi", search_mode="all") == ["1"]
    assert found(hotels, '"free wifi"') == ["1", "2"]
    assert found(hotels, "garden -palace", search_mode="all") == ["1"]
    assert found(hotels, "boutique", search_fields=["category"]) == ["1", "4"]
    assert found(hotels, "boutique", search_fields=["name"]) == []


def test_lucene_syntax_has_fields_phrases_and_fuzziness(hotels):
    full = lambda text: found(hotels, text, query_type="full")
    assert full("name:palace") == ["4"]
    assert full("description:palace AND category:luxury") == ["2"]
    assert full("palce~1") == ["4"]
    assert full('"classic town"~6') == ["1"]
    assert full("gast*") == ["3"]
    assert full("/palac[ei]/") == ["4"]
    assert full("garden NOT classic") == ["4"]
    boosted = hotels.search("pool^10 OR garden", query_type="full")
    assert ids(boosted)[0] == "2"


@pytest.mark.parametrize(
    "filter, expected",
    [
        ("rating gt 4.5", "234"),
        ("rating ge 4.8 and category ne 'Luxury'", "3"),
        ("parking eq true or stories eq 2", "345"),
        ("parking eq null", "5"),
        ("not (rating lt 4)", "234"),
        ("category eq 'Boutique' and (stories lt 6 or stories gt 20)", "4"),
        ("tags/any(t: t eq 'view')", "14"),
        ("tags/all(t: t ne 'view')", "235"),
        ("tags/any()", "1234"),
        ("not tags/any()", "5"),
        ("search.in(category, 'Resort|Budget', '|')", "35"),
        ("tags/any(t: search.in(t, 'pool,bar'))", "23"),
        ("renovated ge 2020-01-01T00:00:00Z", "14"),
        ("address/city eq 'Berlin'", "5"),
        ("search.ismatch('palace', 'name')", "4"),
        ("search.ismatch('palace') or rating lt 3", "245"),
        ("4.7 le rating", "23"),
        ("parking", "34"),
    ],
)
def test_a_filter_finds_what_it_says(hotels, filter, expected):
    assert found(hotels, filter=filter) == list(expected)


def test_complex_collections_are_filtered_by_element(hotels):
    assert found(hotels, filter="rooms/any(r: r/kind eq 'Suite' and r/price lt 100)") == ["2"]
    assert found(hotels, filter="rooms/any(r: r/kind eq 'Budget') and rooms/any(r: r/price gt 200)") == ["1"]
    assert found(hotels, filter="rooms/all(r: r/price gt 100)") == ["3", "4", "5"]


def test_results_are_ordered_and_paged(hotels):
    ordered = lambda **how: ids(hotels.search("*", **how))
    assert ordered(order_by=["rating desc", "name"]) == ["3", "2", "4", "1", "5"]
    assert ordered(order_by=["stories asc", "id desc"]) == ["5", "3", "2", "4", "1"]
    assert ordered(order_by=["id"], skip=1, top=2) == ["2", "3"]
    results = hotels.search("*", order_by=["id"], top=2, include_total_count=True)
    assert results.get_count() == 5 and ids(results) == ["1", "2"]
    one = next(iter(hotels.search("*", order_by=["id"], select=["id", "address/city"])))
    assert one["address"] == {"city": "New York"} and "name" not in one


def test_all_pages_are_followed(service):
    documents = service.documents(service.indexes.create_index(hotel_index()).name)
    documents.upload_documents([{"id": f"{number:04}", "stories": number} for number in range(120)])
    shown(documents, 120)
    everything = ids(documents.search("*", order_by=["id"]))
    assert everything == [f"{number:04}" for number in range(120)]
    pages = list(documents.search("*", order_by=["id"], filter="stories lt 70").by_page())
    assert [len(list(page)) for page in pages] == [50, 20]


def test_facets_count_values_and_intervals(hotels):
    facets = hotels.search(
        "*",
        facets=["category,sort:value", "tags,count:2", "rating,interval:1", "stories,values:3|10", "address/country"],
    ).get_facets()
    assert [(it["value"], it["count"]) for it in facets["category"]] == [
        ("Boutique", 2),
        ("Budget", 1),
        ("Luxury", 1),
        ("Resort", 1),
    ]
    assert len(facets["tags"]) == 2 and facets["tags"][0] == {"value": "concierge", "count": 3}
    assert [(it["value"], it["count"]) for it in facets["rating"]] == [(2.0, 1), (3.0, 1), (4.0, 3)]
    assert [it["count"] for it in facets["stories"]] == [1, 3, 1]
    assert {it["value"]: it["count"] for it in facets["address/country"]} == {"USA": 4, "Germany": 1}


def test_highlights_mark_what_was_found(hotels):
    one = next(iter(hotels.search("pool", highlight_fields="description")))
    assert "<em>pool</em>" in one["@search.highlights"]["description"][0]
    how = {"highlight_pre_tag": "[", "highlight_post_tag": "]"}
    one = next(iter(hotels.search("century", search_fields=["name"], highlight_fields="name", **how)))
    assert one["@search.highlights"]["name"] == ["Old [Century] Hotel"]


def test_geography_filters_and_orders_by_distance(hotels):
    here = "geography'POINT(-73.97 40.76)'"
    assert found(hotels, filter=f"geo.distance(place, {here}) le 100") == ["1"]
    nearest = ids(hotels.search("*", filter="place ne null", order_by=[f"geo.distance(place, {here})"]))
    assert nearest == ["1", "3", "2", "4"]
    box = "geography'POLYGON((-85 26, -80 26, -80 34, -85 34, -85 26))'"
    assert found(hotels, filter=f"geo.intersects(place, {box})") == ["2", "3"]


def test_a_scoring_profile_lifts_documents(service):
    by_rating = ScoringProfile(
        name="rated",
        functions=[
            MagnitudeScoringFunction(
                field_name="rating",
                boost=50,
                parameters=MagnitudeScoringParameters(boosting_range_start=3, boosting_range_end=5),
                interpolation="linear",
            )
        ],
    )
    by_name = ScoringProfile(name="named", text_weights=TextWeights(weights={"name": 20, "description": 1}))
    hotels = service.hotels(scoring_profiles=[by_rating, by_name])
    assert ids(hotels.search("hotel OR garden", query_type="full", scoring_profile="rated"))[0] in ("2", "3", "4")
    assert ids(hotels.search("palace", scoring_profile="named"))[0] == "4"
    assert status(lambda: list(hotels.search("palace", scoring_profile="other"))) == 400


def test_synonyms_find_what_was_not_written(service):
    name = fresh("s")
    service.indexes.create_synonym_map(SynonymMap(name=name, synonyms=["bicycle, bikes", "castle => palace"]))
    index = hotel_index()
    described = next(field for field in index.fields if field.name == "description")
    described.synonym_map_names = [name]
    described.analyzer_name = "standard.lucene"
    service.indexes.create_index(index)
    hotels = service.documents(index.name)
    hotels.upload_documents(HOTELS)
    shown(hotels, 5)
    assert found(hotels, "bicycle", search_fields=["description"]) == ["5"]
    assert found(hotels, "castle", search_fields=["description"]) == ["2", "4"]


def test_vectors_find_the_nearest(hotels):
    near = lambda vector, k=2, **more: VectorizedQuery(vector=vector, k_nearest_neighbors=k, fields="vector", **more)
    assert ids(hotels.search(vector_queries=[near([1.0, 0.0, 0.0])])) == ["1", "2"]
    filtered = hotels.search(vector_queries=[near([1.0, 0.0, 0.0], 1)], filter="rating gt 4.7")
    assert ids(filtered) == ["2"]
    exhaustive = hotels.search(vector_queries=[near([0.0, 0.0, 1.0], 1, exhaustive=True)])
    assert ids(exhaustive) == ["4"]
    hybrid = hotels.search("beach", vector_queries=[near([0.0, 1.0, 0.0], 1)])
    assert sorted(ids(hybrid)) == ["3", "5"]
    wrong = lambda: list(hotels.search(vector_queries=[near([1.0])]))
    assert status(wrong) == 400


@pytest.mark.parametrize(
    "how, what",
    [
        ({"filter": "nothing eq 1"}, "nothing"),
        ({"filter": "rating eq"}, ""),
        ({"filter": "description eq 'x'"}, "description"),
        ({"order_by": ["description"]}, "description"),
        ({"facets": ["nothing"]}, "nothing"),
        ({"select": ["nothing"]}, "nothing"),
        ({"query_type": "full", "search_text": "name:(palace"}, ""),
        ({"skip": 100001}, "skip"),
        ({"semantic_configuration_name": "x", "query_type": "semantic"}, "not supported"),
    ],
)
def test_a_bad_query_is_refused_by_name(hotels, how, what):
    error = refusal(lambda: list(hotels.search(**how)))
    assert error.status_code in (400, 501) and what in error.message
