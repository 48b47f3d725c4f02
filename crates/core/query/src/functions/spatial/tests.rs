//! Functions on GeoJSON, by tables of calls.

use lazuli_value::ValueRef;

use crate::functions::check::{check_all, evaluate};

fn point(longitude: f64, latitude: f64) -> String {
    format!("{{'type':'Point','coordinates':[{longitude},{latitude}]}}")
}

fn polygon(rings: &str) -> String {
    format!("{{'type':'Polygon','coordinates':{rings}}}")
}

fn number(text: &str) -> f64 {
    let value = evaluate(text).unwrap_or_else(|| panic!("{text} is undefined"));
    ValueRef::from(&value).as_f64().expect("it is a number")
}

/// Counterclockwise, from 0 to 10 degrees.
const SQUARE: &str = "[[[0,0],[10,0],[10,10],[0,10],[0,0]]]";
const CLOCKWISE: &str = "[[[0,0],[0,10],[10,10],[10,0],[0,0]]]";
const WITH_HOLE: &str = "[[[0,0],[10,0],[10,10],[0,10],[0,0]],[[4,4],[4,6],[6,6],[6,4],[4,4]]]";

#[test]
fn distances_are_those_of_the_ellipsoid() {
    // A degree of latitude and of longitude at the equator; Flinders Peak to Buninyong, the textbook's example.
    for (one, two, metres) in [
        (point(0.0, 0.0), point(0.0, 1.0), 110_574.388_5),
        (point(0.0, 0.0), point(1.0, 0.0), 111_319.490_8),
        (point(144.424_867_89, -37.951_033_42), point(143.926_495_53, -37.652_821_14), 54_972.271),
        (point(179.5, 0.0), point(-179.5, 0.0), 111_319.490_8),
        (point(5.0, 5.0), point(5.0, 5.0), 0.0),
        // What the service answers in its documentation.
        (
            point(-122.128_268_223_046_72, 47.639_802_393_357_18),
            point(-122.117_581_139_535_35, 47.669_010_870_061_31),
            3_345.269_817_267_368,
        ),
        (
            point(-96.843_686_647_659_94, 46.812_977_943_146_63),
            point(-122.117_581_139_535_35, 47.669_010_870_061_31),
            1_907_438.421_299_902,
        ),
    ] {
        let found = number(&format!("ST_DISTANCE({one}, {two})"));
        assert!((found - metres).abs() < 0.001 + metres * 1e-7, "{one} {two}: {found}");
    }
    let opposite = number(&format!("ST_DISTANCE({}, {})", point(0.0, 0.0), point(180.0, 0.0)));
    assert!((opposite - 20_003_931.0).abs() < 15_000.0, "{opposite}");
}

#[test]
fn distances_to_lines_and_polygons_are_those_to_their_nearest_place() {
    let line = "{'type':'LineString','coordinates':[[0,0],[10,0]]}";
    let found = number(&format!("ST_DISTANCE({}, {line})", point(5.0, 1.0)));
    assert!((found - 110_574.4).abs() < 1.0, "{found}");
    let found = number(&format!("ST_DISTANCE({}, {line})", point(11.0, 0.0)));
    assert!((found - 111_319.5).abs() < 1.0, "{found}");
    let square = polygon(SQUARE);
    let found = number(&format!("ST_DISTANCE({}, {square})", point(5.0, -1.0)));
    assert!((found - 110_574.4).abs() < 1.0, "{found}");
    let other = polygon("[[[12,0],[14,0],[14,2],[12,2],[12,0]]]");
    let found = number(&format!("ST_DISTANCE({square}, {other})"));
    assert!((found - 222_639.0).abs() < 500.0, "{found}");
    check_all(&[
        (&format!("ST_DISTANCE({}, {square})", point(5.0, 5.0)), "0"),
        (&format!("ST_DISTANCE({}, 5)", point(5.0, 5.0)), "undefined"),
        (&format!("ST_DISTANCE({}, undefined)", point(5.0, 5.0)), "undefined"),
        (&format!("ST_DISTANCE({}, {})", point(5.0, 5.0), point(5.0, 95.0)), "undefined"),
    ]);
}

#[test]
fn places_are_within_polygons_or_not() {
    let (square, clockwise, with_hole) = (polygon(SQUARE), polygon(CLOCKWISE), polygon(WITH_HOLE));
    let at_date_line = polygon("[[[179,-1],[-179,-1],[-179,1],[179,1],[179,-1]]]");
    let at_pole = polygon("[[[0,80],[90,80],[180,80],[-90,80],[0,80]]]");
    for (place, container, expected) in [
        (point(5.0, 5.0), &square, "true"),
        (point(15.0, 5.0), &square, "false"),
        (point(-5.0, -5.0), &square, "false"),
        (point(-175.0, -5.0), &square, "false"),
        (point(0.0, 5.0), &square, "true"),
        (point(10.0, 10.0), &square, "true"),
        (point(5.0, 5.0), &clockwise, "false"),
        (point(15.0, 5.0), &clockwise, "true"),
        (point(5.0, 5.0), &with_hole, "false"),
        (point(2.0, 2.0), &with_hole, "true"),
        (point(180.0, 0.0), &at_date_line, "true"),
        (point(0.0, 0.0), &at_date_line, "false"),
        (point(17.0, 89.0), &at_pole, "true"),
        (point(17.0, 70.0), &at_pole, "false"),
        (point(17.0, -89.0), &at_pole, "false"),
    ] {
        check_all(&[(&format!("ST_WITHIN({place}, {container})"), expected)]);
    }
    check_all(&[
        (&format!("ST_WITHIN({}, {})", point(5.0, 5.0), point(5.0, 5.0)), "false"),
        (&format!("ST_WITHIN(5, {square})"), "undefined"),
    ]);
}

#[test]
fn lines_and_polygons_are_within_polygons_or_not() {
    let (square, with_hole) = (polygon(SQUARE), polygon(WITH_HOLE));
    let small = polygon("[[[1,1],[3,1],[3,3],[1,3],[1,1]]]");
    let around_hole = polygon("[[[3,3],[7,3],[7,7],[3,7],[3,3]]]");
    let across = polygon("[[[5,5],[15,5],[15,8],[5,8],[5,5]]]");
    let line = "{'type':'LineString','coordinates':[[1,1],[9,9]]}";
    let both = "{'type':'MultiPolygon','coordinates':[[[[1,1],[3,1],[3,3],[1,3],[1,1]]],[[[20,1],[22,1],[22,3],[20,3],[20,1]]]]}";
    check_all(&[
        (&format!("ST_WITHIN({small}, {square})"), "true"),
        (&format!("ST_WITHIN({square}, {small})"), "false"),
        (&format!("ST_WITHIN({square}, {square})"), "true"),
        (&format!("ST_WITHIN({across}, {square})"), "false"),
        (&format!("ST_WITHIN({around_hole}, {square})"), "true"),
        (&format!("ST_WITHIN({around_hole}, {with_hole})"), "false"),
        (&format!("ST_WITHIN({line}, {square})"), "true"),
        (&format!("ST_WITHIN({line}, {with_hole})"), "false"),
        (&format!("ST_WITHIN({small}, {both})"), "true"),
        (&format!("ST_WITHIN({both}, {square})"), "false"),
    ]);
}

#[test]
fn geometries_intersect_or_not() {
    let square = polygon(SQUARE);
    let line = "{'type':'LineString','coordinates':[[-5,5],[15,5]]}";
    let touching = "{'type':'LineString','coordinates':[[10,5],[15,5]]}";
    let apart = "{'type':'LineString','coordinates':[[11,5],[15,5]]}";
    let small = polygon("[[[1,1],[3,1],[3,3],[1,3],[1,1]]]");
    check_all(&[
        (&format!("ST_INTERSECTS({square}, {line})"), "true"),
        (&format!("ST_INTERSECTS({touching}, {square})"), "true"),
        (&format!("ST_INTERSECTS({apart}, {square})"), "false"),
        (&format!("ST_INTERSECTS({small}, {square})"), "true"),
        (&format!("ST_INTERSECTS({square}, {small})"), "true"),
        (&format!("ST_INTERSECTS({}, {square})", point(5.0, 5.0)), "true"),
        (&format!("ST_INTERSECTS({}, {square})", point(5.0, 15.0)), "false"),
        (&format!("ST_INTERSECTS({}, {line})", point(-5.0, 5.0)), "true"),
        (&format!("ST_INTERSECTS({0}, {0})", point(1.0, 2.0)), "true"),
        (&format!("ST_INTERSECTS({}, {})", point(1.0, 2.0), point(1.0, 3.0)), "false"),
        (&format!("ST_INTERSECTS({square}, null)"), "undefined"),
    ]);
}

#[test]
fn areas_are_those_of_the_ellipsoid() {
    let small = polygon("[[[31.8,-5],[32,-5],[32,-4.7],[31.8,-4.7],[31.8,-5]]]");
    let found = number(&format!("ST_AREA({small})"));
    // What the service answers in its documentation.
    assert!((found / 735_970_283.052_261_4 - 1.0).abs() < 0.0005, "{found}");
    let with_hole = number(&format!("ST_AREA({})", polygon(WITH_HOLE)));
    let whole = number(&format!("ST_AREA({})", polygon(SQUARE)));
    let hole = number(&format!("ST_AREA({})", polygon("[[[4,4],[6,4],[6,6],[4,6],[4,4]]]")));
    assert!((whole - hole - with_hole).abs() < 1.0);
    let rest = number(&format!("ST_AREA({})", polygon(CLOCKWISE)));
    assert!(((rest + whole) / 510_065_621_724_088.0 - 1.0).abs() < 1e-6, "{}", rest + whole);
    check_all(&[(&format!("ST_AREA({})", point(1.0, 2.0)), "0"), ("ST_AREA('a')", "undefined")]);
}

#[test]
fn what_is_wrong_is_said() {
    let reasons = [
        (point(-84.4, 33.8), None),
        (point(133.8, -184.4), Some("Latitude values must be between -90 and 90 degrees.")),
        (point(190.0, 0.0), Some("Longitude values must be between -180 and 180 degrees.")),
        ("{'type':'Point','coordinates':[1]}".to_owned(), Some("two or three numbers")),
        ("{'type':'Point','coordinates':['a',2]}".to_owned(), Some("two or three numbers")),
        ("{'type':'Point'}".to_owned(), Some("no array of coordinates")),
        ("{'coordinates':[1,2]}".to_owned(), Some("no type")),
        ("{'type':'Circle','coordinates':[1,2]}".to_owned(), Some("must be Point")),
        ("{'type':'LineString','coordinates':[[1,2]]}".to_owned(), Some("at least two")),
        (polygon("[[[0,0],[1,0],[0,0]]]"), Some("at least four")),
        (polygon("[[[0,0],[1,0],[1,1],[0,1]]]"), Some("must be the same")),
        (polygon("[[[0,0],[2,2],[2,0],[0,2],[0,0]]]"), Some("must not cross")),
        (polygon("[]"), Some("arrays of positions")),
        (polygon(WITH_HOLE), None),
        ("5".to_owned(), Some("not a GeoJSON object")),
    ];
    for (geometry, reason) in reasons {
        let answer = evaluate(&format!("ST_ISVALIDDETAILED({geometry})")).unwrap().to_json();
        match reason {
            Some(reason) => assert!(answer.contains(reason), "{geometry}: {answer}"),
            None => assert_eq!(answer, "{\"valid\":true}"),
        }
        let expected = if reason.is_some() { "false" } else { "true" };
        check_all(&[(&format!("ST_ISVALID({geometry})"), expected)]);
    }
    check_all(&[
        ("ST_ISVALID(undefined)", "undefined"),
        ("ST_ISVALIDDETAILED(undefined)", "undefined"),
    ]);
}

#[test]
fn a_polygon_has_at_most_4096_points() {
    let ring = |points: usize| {
        let places: Vec<String> = (0..points)
            .map(|at| (at % (points - 1)) as f64 / (points - 1) as f64 * std::f64::consts::TAU)
            .map(|angle| format!("[{},{}]", 10.0 * angle.cos(), 10.0 * angle.sin()))
            .collect();
        polygon(&format!("[[{}]]", places.join(",")))
    };
    let largest = ring(4096);
    check_all(&[
        (&format!("ST_WITHIN({}, {largest})", point(1.0, 1.0)), "true"),
        (&format!("ST_ISVALID({})", ring(4097)), "false"),
    ]);
}
