//! Plans for people: what is read and why, as a value that is shown as JSON.

use lazuli_value::{Object, Value};

use super::{Access, IndexScan, KeyRange, Order, Plan, UnservedOrder};

impl Plan {
    /// The plan as an object with plain names.
    pub fn explain(&self) -> Value {
        let mut out = Object::new();
        let (access, scans): (&str, Vec<&IndexScan>) = match &self.access {
            Access::Nothing => ("nothing", Vec::new()),
            Access::OneRow => ("one row without items", Vec::new()),
            Access::Items => ("all items", Vec::new()),
            Access::Index(scan) => ("index", vec![scan]),
            Access::AnyOf(scans) => ("any of several indexes", scans.iter().collect()),
            Access::Composite { .. } => ("composite index", Vec::new()),
        };
        out.insert("access", access.into());
        if !scans.is_empty() {
            out.insert("indexes", Value::Array(scans.into_iter().map(explain_scan).collect()));
        }
        if let Access::Composite { composite, ranges, is_descending } = &self.access {
            out.insert("composite", Value::Int64(*composite as i64));
            out.insert("rangeCount", Value::Int64(ranges.len() as i64));
            out.insert("bounded", (*ranges != [KeyRange::all()]).into());
            out.insert("descending", (*is_descending).into());
        }
        if !self.partition_key.is_empty() {
            let key = self.partition_key.iter().map(|value| match value {
                Some(value) => value.clone(),
                None => Value::Object(Object::new()),
            });
            out.insert("partitionKey", Value::Array(key.collect()));
        }
        let order = match self.order {
            Order::Any => "none",
            Order::Merged => "by index, partitions merged",
        };
        out.insert("order", order.into());
        out.insert("residualFilter", (!self.is_exact).into());
        out.insert("countsEntries", self.is_count.into());
        let unserved = match self.unserved_order {
            None => None,
            Some(UnservedOrder::Path) => Some("sorted in memory: no index of the path"),
            Some(UnservedOrder::Composite) => Some("sorted in memory: no composite index"),
        };
        if let Some(unserved) = unserved {
            out.insert("sort", unserved.into());
        }
        Value::Object(out)
    }
}

fn explain_scan(scan: &IndexScan) -> Value {
    let mut out = Object::new();
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    out.insert("path", scan.path.to_string().into());
    // A long list of ranges says no more than its length does.
    const SHOWN_MAX: usize = 10;
    let ranges = scan.ranges.iter().take(SHOWN_MAX);
    let ranges = ranges.map(|range| format!("{}..{}", hex(&range.from), hex(&range.to)).into());
    out.insert("ranges", Value::Array(ranges.collect()));
    out.insert("rangeCount", Value::Int64(scan.ranges.len() as i64));
    out.insert("descending", scan.is_descending.into());
    out.insert("withMissing", scan.has_missing.into());
    Value::Object(out)
}
