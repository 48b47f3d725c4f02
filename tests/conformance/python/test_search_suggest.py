"""Suggestions of Search while somebody types."""

import pytest

from search_target import service, status


@pytest.fixture(scope="module")
def hotels(service):
    return service.hotels()


def test_suggestions_come_from_the_beginnings_of_words(hotels):
    suggestions = hotels.suggest("pal", "sg")
    assert [(it["@search.text"], it["id"]) for it in suggestions] == [("Sublime Palace Hotel", "4")]
    marked = hotels.suggest("gast", "sg", highlight_pre_tag="<b>", highlight_post_tag="</b>", select=["id", "rating"])
    assert "<b>Gast" in marked[0]["@search.text"] and marked[0]["rating"] == 4.8
    assert hotels.suggest("palce", "sg") == []
    assert hotels.suggest("palce", "sg", use_fuzzy_matching=True)[0]["id"] == "4"
    assert len(hotels.suggest("hotel", "sg", top=2)) == 2
    filtered = hotels.suggest("hotel", "sg", filter="rating lt 3")
    assert [it["id"] for it in filtered] == ["5"]
    assert status(lambda: hotels.suggest("pal", "other")) == 400


def test_completions_in_three_modes(hotels):
    texts = lambda text, **how: [(it.text, it.query_plus_text) for it in hotels.autocomplete(text, "sg", **how)]
    assert texts("cent") == [("century", "century")]
    assert ("century hotel", "century hotel") in texts("cent", mode="twoTerms")
    assert texts("old cent", mode="oneTermWithContext") == [("old century", "old century")]
    assert texts("zzz") == []
    assert status(lambda: hotels.autocomplete("cent", "other")) == 400
