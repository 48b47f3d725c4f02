//! Functions on dates: texts such as `2021-01-08T18:35:00.1234567Z`, ticks of 100 ns, milliseconds.
//!
//! The present is the moment at which the query began, for all rows: of GETCURRENTDATETIME the service says only that it
//! may differ from row to row, of GETCURRENTDATETIMESTATIC that it does not.

use lazuli_value::Value;

use super::calendar::{Fields, Moment, Part};
use super::types::integer;
use super::{Call, Function};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("AGO", 2, 2, ago).impure(),
    Function::new("DATETIMEADD", 3, 3, add),
    Function::new("DATETIMEBIN", 2, 4, bin),
    Function::new("DATETIMEDIFF", 3, 3, diff),
    Function::new("DATETIMEFORMAT", 2, 2, format),
    Function::new("DATETIMEFROMPARTS", 3, 7, from_parts),
    Function::new("DATETIMEPART", 2, 2, |call| part_of(moment(call, 1)?, part(call, 0)?)),
    Function::new("DATETIMETOTICKS", 1, 1, |call| Some(Value::Int64(moment(call, 0)?.ticks()))),
    Function::new("DATETIMETOTIMESTAMP", 1, 1, to_timestamp),
    Function::new("DAY", 1, 1, |call| part_of(moment(call, 0)?, Part::Day)),
    Function::new("GETCURRENTDATETIME", 0, 0, current).impure(),
    Function::new("GETCURRENTDATETIMESTATIC", 0, 0, current).impure(),
    Function::new("GETCURRENTTICKS", 0, 0, current_ticks).impure(),
    Function::new("GETCURRENTTICKSSTATIC", 0, 0, current_ticks).impure(),
    Function::new("GETCURRENTTIMESTAMP", 0, 0, current_timestamp).impure(),
    Function::new("GETCURRENTTIMESTAMPSTATIC", 0, 0, current_timestamp).impure(),
    Function::new("MONTH", 1, 1, |call| part_of(moment(call, 0)?, Part::Month)),
    Function::new("NOW", 0, 0, current).impure(),
    Function::new("TICKSTODATETIME", 1, 1, from_ticks),
    Function::new("TIMESTAMPTODATETIME", 1, 1, from_timestamp),
    Function::new("YEAR", 1, 1, |call| part_of(moment(call, 0)?, Part::Year)),
];

fn moment(call: &Call<'_>, place: usize) -> Option<Moment> {
    Moment::read(call.string(place)?)
}

fn part(call: &Call<'_>, place: usize) -> Option<Part> {
    Part::read(call.string(place)?)
}

fn whole(call: &Call<'_>, place: usize) -> Option<i64> {
    integer(call.value(place)?.as_number()?)
}

fn text(moment: Moment) -> Option<Value> {
    Some(moment.text().into())
}

fn now(call: &Call<'_>) -> Option<Moment> {
    Moment::from_millis(call.context.now_ms)
}

fn current(call: &Call<'_>) -> Option<Value> {
    text(now(call)?)
}

fn current_ticks(call: &Call<'_>) -> Option<Value> {
    Some(Value::Int64(now(call)?.ticks()))
}

fn current_timestamp(call: &Call<'_>) -> Option<Value> {
    Some(Value::Int64(call.context.now_ms))
}

fn ago(call: &Call<'_>) -> Option<Value> {
    text(now(call)?.add(part(call, 0)?, whole(call, 1)?.checked_neg()?)?)
}

fn add(call: &Call<'_>) -> Option<Value> {
    text(moment(call, 2)?.add(part(call, 0)?, whole(call, 1)?)?)
}

fn from_ticks(call: &Call<'_>) -> Option<Value> {
    text(Moment::from_ticks(whole(call, 0)?)?)
}

fn from_timestamp(call: &Call<'_>) -> Option<Value> {
    text(Moment::from_millis(whole(call, 0)?)?)
}

fn to_timestamp(call: &Call<'_>) -> Option<Value> {
    Some(Value::Int64(moment(call, 0)?.ticks().div_euclid(10_000)))
}

fn from_parts(call: &Call<'_>) -> Option<Value> {
    let optional = |place| if call.has(place) { whole(call, place) } else { Some(0) };
    let fields = Fields {
        year: whole(call, 0)?,
        month: whole(call, 1)?,
        day: whole(call, 2)?,
        hour: optional(3)?,
        minute: optional(4)?,
        second: optional(5)?,
        fraction: optional(6)?,
    };
    text(Moment::from_fields(fields)?)
}

fn part_of(moment: Moment, part: Part) -> Option<Value> {
    let fields = moment.fields();
    Some(Value::Int64(match part {
        Part::Year => fields.year,
        Part::Month => fields.month,
        Part::Day => fields.day,
        Part::Hour => fields.hour,
        Part::Minute => fields.minute,
        Part::Second => fields.second,
        Part::Millisecond => fields.fraction / 10_000,
        Part::Microsecond => fields.fraction / 10,
        Part::Nanosecond => fields.fraction * 100,
    }))
}

/// How many boundaries of the part are between the moments: from 23:59 to 0:00 it is one day.
fn diff(call: &Call<'_>) -> Option<Value> {
    let part = part(call, 0)?;
    let (from, to) = (moment(call, 1)?, moment(call, 2)?);
    let count = |moment: Moment| -> Option<i128> {
        Some(match part.nanos() {
            Some(nanos) => (i128::from(moment.ticks()) * 100).div_euclid(i128::from(nanos)),
            None => i128::from(moment.months().div_euclid(part.months()?)),
        })
    };
    Some(Value::Int64(i64::try_from(count(to)? - count(from)?).ok()?))
}

/// The start of the bin that a moment is in. Bins are counted from the Unix epoch, or from the moment given.
fn bin(call: &Call<'_>) -> Option<Value> {
    let (at, part) = (moment(call, 0)?, part(call, 1)?);
    let size = if call.has(2) { whole(call, 2)? } else { 1 };
    let origin = if call.has(3) { moment(call, 3)? } else { Moment::from_ticks(0)? };
    if size <= 0 {
        return None;
    }
    if let Some(nanos) = part.nanos() {
        let width = i128::from(nanos) * i128::from(size);
        let since = (i128::from(at.ticks()) - i128::from(origin.ticks())) * 100;
        let start = i128::from(origin.ticks()) + since.div_euclid(width) * width / 100;
        return text(Moment::from_ticks(i64::try_from(start).ok()?)?);
    }
    let width = part.months()?.checked_mul(size)?;
    let mut bins = (at.months() - origin.months()).div_euclid(width);
    let start = |bins: i64| origin.add(Part::Month, bins.checked_mul(width)?);
    // The bin of the month may begin later in the month than the moment is.
    if start(bins)?.ticks() > at.ticks() {
        bins -= 1;
    }
    text(start(bins)?)
}

/// Writes a moment by a format: letters stand for parts, as long as they are repeated, and a backslash makes the next one
/// stand for itself.
fn format(call: &Call<'_>) -> Option<Value> {
    let (fields, format) = (moment(call, 0)?.fields(), call.string(1)?);
    let mut letters = format.chars().peekable();
    let mut out = String::new();
    while let Some(letter) = letters.next() {
        if letter == '\\' {
            out.extend(letters.next());
            continue;
        }
        let mut count = 1;
        while letters.next_if_eq(&letter).is_some() {
            count += 1;
        }
        write_part(&fields, letter, count, &mut out);
    }
    Some(out.into())
}

fn write_part(fields: &Fields, letter: char, count: usize, out: &mut String) {
    let mut number = |number: i64| out.push_str(&format!("{number:0width$}", width = count.min(2)));
    let hour_of_twelve = (fields.hour + 11) % 12 + 1;
    match letter {
        'd' => number(fields.day),
        'M' => number(fields.month),
        'H' => number(fields.hour),
        'h' => number(hour_of_twelve),
        'm' => number(fields.minute),
        's' => number(fields.second),
        'y' if count <= 2 => number(fields.year % 100),
        'y' => out.push_str(&format!("{:0count$}", fields.year, count = count.min(5))),
        'f' | 'F' if count <= 7 => {
            let digits = &format!("{:07}", fields.fraction)[..count];
            // Capitals leave out zeros at the end.
            out.push_str(if letter == 'F' { digits.trim_end_matches('0') } else { digits });
        }
        't' => out.push_str(&["AM", "PM"][usize::from(fields.hour >= 12)][..count.min(2)]),
        other => out.extend(std::iter::repeat_n(other, count)),
    }
}

#[cfg(test)]
mod tests {
    use crate::functions::check::check_all;

    #[test]
    fn parts_are_added_and_the_end_of_a_month_is_kept() {
        check_all(&[
            (
                "DATETIMEADD('yyyy', 1, '2020-07-03T00:00:00.0000000')",
                "\"2021-07-03T00:00:00.0000000Z\"",
            ),
            (
                "DATETIMEADD('mm', -1, '2020-07-31T00:00:00.0000000')",
                "\"2020-06-30T00:00:00.0000000Z\"",
            ),
            ("DATETIMEADD('month', 1, '2020-01-31')", "\"2020-02-29T00:00:00.0000000Z\""),
            ("DATETIMEADD('yy', 1, '2020-02-29')", "\"2021-02-28T00:00:00.0000000Z\""),
            ("DATETIMEADD('dd', 1, '2020-12-31')", "\"2021-01-01T00:00:00.0000000Z\""),
            (
                "DATETIMEADD('hh', -1, '2020-07-03T00:00:00.0000000')",
                "\"2020-07-02T23:00:00.0000000Z\"",
            ),
            (
                "DATETIMEADD('ss', -25, '2020-07-03T00:00:00.0000000')",
                "\"2020-07-02T23:59:35.0000000Z\"",
            ),
            ("DATETIMEADD('mcs', 1, '2020-07-03')", "\"2020-07-03T00:00:00.0000010Z\""),
            ("DATETIMEADD('ns', 150, '2020-07-03')", "\"2020-07-03T00:00:00.0000001Z\""),
            ("DATETIMEADD('week', 1, '2020-07-03')", "undefined"),
            ("DATETIMEADD('dd', 1.5, '2020-07-03')", "undefined"),
            ("DATETIMEADD('yyyy', 9000, '2020-07-03')", "undefined"),
            ("DATETIMEADD('yyyy', 9223372036854775807, '2020-07-03')", "undefined"),
            ("DATETIMEADD('hh', 9223372036854775807, '2020-07-03')", "undefined"),
            ("DATETIMEADD('dd', 1, 'soon')", "undefined"),
            ("DATETIMEADD('dd', null, '2020-07-03')", "undefined"),
            ("DATETIMEADD('dd', undefined, '2020-07-03')", "undefined"),
        ]);
    }

    #[test]
    fn differences_count_boundaries() {
        check_all(&[
            (
                "DATETIMEDIFF('yyyy', '2028-01-01T01:02:03.1234527Z', '2020-01-03T01:02:03.1234567Z')",
                "-8",
            ),
            (
                "DATETIMEDIFF('month', '2000-01-01T01:02:03.1234527Z', '2020-01-02T01:02:03.1234567Z')",
                "240",
            ),
            ("DATETIMEDIFF('dd', '2020-01-01T23:59:59', '2020-01-02T00:00:00')", "1"),
            ("DATETIMEDIFF('hour', '2020-01-01T23:59:59', '2020-01-02T00:00:00')", "1"),
            ("DATETIMEDIFF('ms', '2020-01-01', '2020-01-02')", "86400000"),
            (
                "DATETIMEDIFF('ns', '2020-01-01T00:00:00.0000000', '2020-01-01T00:00:00.0000005')",
                "500",
            ),
            ("DATETIMEDIFF('ns', '0001-01-01', '9999-01-01')", "undefined"),
            ("DATETIMEDIFF('yyyy', '2020-01-01', 5)", "undefined"),
        ]);
    }

    #[test]
    fn bins_begin_at_the_epoch_or_at_a_moment() {
        check_all(&[
            (
                "DATETIMEBIN('2021-01-08T18:35:00.0000000', 'dd')",
                "\"2021-01-08T00:00:00.0000000Z\"",
            ),
            (
                "DATETIMEBIN('2021-01-08T18:35:00.0000000', 'hh')",
                "\"2021-01-08T18:00:00.0000000Z\"",
            ),
            (
                "DATETIMEBIN('2021-01-08T18:35:00.0000000', 'ss')",
                "\"2021-01-08T18:35:00.0000000Z\"",
            ),
            (
                "DATETIMEBIN('2021-01-08T18:35:00.0000000', 'hh', 5)",
                "\"2021-01-08T15:00:00.0000000Z\"",
            ),
            (
                "DATETIMEBIN('2021-01-08T18:35:00.0000000', 'dd', 7)",
                "\"2021-01-07T00:00:00.0000000Z\"",
            ),
            (
                "DATETIMEBIN('2021-01-08T18:35:00.0000000', 'dd', 7, '1601-01-01T00:00:00.0000000')",
                "\"2021-01-04T00:00:00.0000000Z\"",
            ),
            ("DATETIMEBIN('2021-05-08T18:35:00', 'mm', 3)", "\"2021-04-01T00:00:00.0000000Z\""),
            ("DATETIMEBIN('2021-05-08T18:35:00', 'yyyy', 10)", "\"2020-01-01T00:00:00.0000000Z\""),
            (
                "DATETIMEBIN('2021-05-08', 'mm', 1, '2021-01-15')",
                "\"2021-04-15T00:00:00.0000000Z\"",
            ),
            ("DATETIMEBIN('2021-01-08', 'dd', 0)", "undefined"),
            ("DATETIMEBIN('2021-01-08', 'dd', -1)", "undefined"),
            ("DATETIMEBIN('2021-01-08', 'dd', 1.5)", "undefined"),
            ("DATETIMEBIN('2021-01-08', 'xx')", "undefined"),
            ("DATETIMEBIN('', 'dd')", "undefined"),
        ]);
    }

    #[test]
    fn dates_are_taken_apart_and_put_together() {
        check_all(&[
            ("DATETIMEPART('yyyy', '2016-05-29T08:30:00.1301617')", "2016"),
            ("DATETIMEPART('mm', '2016-05-29T08:30:00.1301617')", "5"),
            ("DATETIMEPART('dd', '2016-05-29T08:30:00.1301617')", "29"),
            ("DATETIMEPART('hh', '2016-05-29T08:30:00.1301617')", "8"),
            ("DATETIMEPART('mi', '2016-05-29T08:30:00.1301617')", "30"),
            ("DATETIMEPART('ss', '2016-05-29T08:30:00.1301617')", "0"),
            ("DATETIMEPART('ms', '2016-05-29T08:30:00.1301617')", "130"),
            ("DATETIMEPART('mcs', '2016-05-29T08:30:00.1301617')", "130161"),
            ("DATETIMEPART('ns', '2016-05-29T08:30:00.1301617')", "130161700"),
            ("DATETIMEPART('dd', '')", "undefined"),
            ("YEAR('2016-05-29')", "2016"),
            ("MONTH('2016-05-29')", "5"),
            ("DAY('2016-05-29')", "29"),
            ("DAY(5)", "undefined"),
            (
                "DATETIMEFROMPARTS(2017, 4, 20, 13, 15, 20, 3456789)",
                "\"2017-04-20T13:15:20.3456789Z\"",
            ),
            ("DATETIMEFROMPARTS(2017, 4, 20)", "\"2017-04-20T00:00:00.0000000Z\""),
            ("DATETIMEFROMPARTS(2017, 4, 31)", "undefined"),
            ("DATETIMEFROMPARTS(2017, -4, 2)", "undefined"),
            ("DATETIMEFROMPARTS(2017, 4, 2, 24)", "undefined"),
            ("DATETIMEFROMPARTS('2017', 4, 2)", "undefined"),
        ]);
    }

    #[test]
    fn dates_are_written_by_a_format() {
        check_all(&[
            ("DATETIMEFORMAT('2024-10-10 14:40:20', 'yyyyMMdd')", "\"20241010\""),
            (
                "DATETIMEFORMAT('2024-10-10 14:40:20', 'yyyy-MM-dd [HH:mm:ss]')",
                "\"2024-10-10 [14:40:20]\"",
            ),
            (
                "DATETIMEFORMAT('2024-10-10 14:40:20', 'To\\\\da\\\\y i\\\\s: yyyy-MM-ddTHH:mm:ss.fff')",
                "\"Today is: 2024-10-10T14:40:20.000\"",
            ),
            ("DATETIMEFORMAT('2024-10-10 14:40:20', 'ss.FFF')", "\"20.\""),
            (
                "DATETIMEFORMAT('2024-03-04T02:05:06.1200000', 'd/M/yy h:m:s tt ff F')",
                "\"4/3/24 2:5:6 AM 12 1\"",
            ),
            ("DATETIMEFORMAT('2024-03-04T00:05:06', 'hh tt')", "\"12 AM\""),
            ("DATETIMEFORMAT('2024-03-04', '')", "\"\""),
            ("DATETIMEFORMAT('2024', 'yyyy')", "undefined"),
            ("DATETIMEFORMAT('2024-03-04', 5)", "undefined"),
        ]);
    }

    #[test]
    fn ticks_and_timestamps_are_counted_from_the_epoch() {
        check_all(&[
            ("DATETIMETOTICKS('2020-01-02T03:04:05.6789123Z')", "15779342456789123"),
            ("DATETIMETOTICKS('1970-01-01')", "0"),
            ("DATETIMETOTICKS('1969-12-31T23:59:59.9999999')", "-1"),
            ("TICKSTODATETIME(15943368134575530)", "\"2020-07-09T23:20:13.4575530Z\""),
            ("TICKSTODATETIME(1.5)", "undefined"),
            ("TICKSTODATETIME(9223372036854775807)", "undefined"),
            ("DATETIMETOTIMESTAMP('2020-07-09T23:20:13.4575530Z')", "1594336813457"),
            ("DATETIMETOTIMESTAMP('x')", "undefined"),
            ("TIMESTAMPTODATETIME(1594227912345)", "\"2020-07-08T17:05:12.3450000Z\""),
            ("TIMESTAMPTODATETIME('1')", "undefined"),
        ]);
    }

    #[test]
    fn the_present_is_that_of_the_query() {
        for name in ["GETCURRENTDATETIME", "GETCURRENTDATETIMESTATIC", "NOW"] {
            check_all(&[(&format!("{name}()"), "\"2023-11-14T22:13:20.0000000Z\"")]);
        }
        check_all(&[
            ("GETCURRENTTICKS()", "17000000000000000"),
            ("GETCURRENTTICKSSTATIC()", "17000000000000000"),
            ("GETCURRENTTIMESTAMP()", "1700000000000"),
            ("GETCURRENTTIMESTAMPSTATIC()", "1700000000000"),
            ("AGO('yyyy', 1)", "\"2022-11-14T22:13:20.0000000Z\""),
            ("AGO('ss', -30)", "\"2023-11-14T22:13:50.0000000Z\""),
            ("AGO('x', 1)", "undefined"),
            ("AGO('dd', 'a')", "undefined"),
        ]);
    }
}
