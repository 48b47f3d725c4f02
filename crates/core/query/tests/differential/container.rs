//! A container in memory with real indexes: entries are sorted by their bytes and read by ranges.

use std::collections::BTreeSet;

use lazuli_env::SplitMix64;
use lazuli_query::plan::{Access, Composite, IndexScan, Path, Plan, Schema, Step};
use lazuli_query::{Continuation, Position};
use lazuli_value::{Kind, ValueRef, View, kind_bounds, order_key, undefined_key};

/// Items, in partitions by turns.
pub(crate) struct Container {
    pub(crate) items: Vec<Vec<u8>>,
    partitions: usize,
    key: Vec<Path>,
    composites: Vec<Composite>,
    /// Whether items without a value can be found, which decides if an index can serve an order.
    finds_missing: bool,
}

/// The key of the item at a place.
pub(crate) fn key(place: usize) -> [u8; 2] {
    (place as u16).to_be_bytes()
}

impl Container {
    pub(crate) fn new(items: Vec<Vec<u8>>, chance: &mut SplitMix64) -> Self {
        let composite = |paths: &[(&str, bool)]| Composite {
            paths: paths.iter().map(|(name, down)| (Path::of(&[name]), *down)).collect(),
        };
        Self {
            items,
            partitions: 1 + chance.below(3),
            key: vec![Path::of(&["k"])],
            composites: vec![
                composite(&[("n", false), ("s", false)]),
                composite(&[("s", true), ("n", false)]),
            ],
            finds_missing: chance.below(3) > 0,
        }
    }

    fn view(&self, place: usize) -> ValueRef<'_> {
        View::parse(&self.items[place]).expect("an item").into()
    }

    /// The items that a plan yields, in the order in which they are pushed.
    pub(crate) fn places(&self, plan: &Plan) -> Vec<usize> {
        let is_wanted = |place: &usize| {
            plan.partition_key.iter().zip(&self.key).all(|(wanted, path)| {
                let mut found = None;
                path.visit(self.view(*place), &mut |value| found = Some(value.to_value()));
                match (&found, wanted) {
                    (Some(one), Some(two)) => lazuli_value::equal(one.into(), two.into()),
                    (one, two) => one.is_none() && two.is_none(),
                }
            })
        };
        let mut places = match &plan.access {
            Access::Nothing | Access::OneRow => Vec::new(),
            Access::Items => self.by_partition((0..self.items.len()).map(|it| (vec![], it))),
            Access::Index(scan) if plan.order == lazuli_query::plan::Order::Merged => {
                let mut entries = self.entries(scan);
                entries.sort_unstable();
                if scan.is_descending {
                    entries.reverse();
                }
                entries.into_iter().map(|(_, place)| place).collect()
            }
            Access::Index(scan) => self.by_partition(self.entries(scan).into_iter()),
            Access::AnyOf(scans) => {
                self.by_partition(scans.iter().flat_map(|scan| self.entries(scan)))
            }
            Access::Composite { composite, ranges, is_descending } => {
                let mut entries: Vec<_> = (0..self.items.len())
                    .map(|place| (self.composed(*composite, place), place))
                    .filter(|(key, _)| ranges.iter().any(|range| range.contains(key)))
                    .collect();
                entries.sort_unstable();
                if *is_descending {
                    entries.reverse();
                }
                entries.into_iter().map(|(_, place)| place).collect()
            }
        };
        let mut seen = BTreeSet::new();
        places.retain(|place| is_wanted(place) && seen.insert(*place));
        places
    }

    /// One partition after another, each in the order of its entries.
    fn by_partition(&self, entries: impl Iterator<Item = (Vec<u8>, usize)>) -> Vec<usize> {
        let mut entries: Vec<_> =
            entries.map(|(key, place)| (place % self.partitions, key, place)).collect();
        entries.sort_unstable();
        entries.into_iter().map(|(_, _, place)| place).collect()
    }

    /// The entries of an index in some ranges, with those of missing values if they are wanted.
    fn entries(&self, scan: &IndexScan) -> Vec<(Vec<u8>, usize)> {
        let mut entries = Vec::new();
        for place in 0..self.items.len() {
            let mut is_missing = true;
            scan.path.visit(self.view(place), &mut |value| {
                is_missing = false;
                let key = entry(value);
                if scan.ranges.iter().any(|range| range.contains(&key)) {
                    entries.push((key, place));
                }
            });
            if is_missing && scan.has_missing {
                let mut key = Vec::new();
                undefined_key(&mut key);
                entries.push((key, place));
            }
        }
        entries
    }

    fn composed(&self, composite: usize, place: usize) -> Vec<u8> {
        let mut key = Vec::new();
        for (path, is_descending) in &self.composites[composite].paths {
            let start = key.len();
            let mut found = None;
            path.visit(self.view(place), &mut |value| found = Some(value.to_value()));
            match &found {
                Some(value) => order_key(value.into(), &mut key),
                None => undefined_key(&mut key),
            }
            if *is_descending {
                key[start..].iter_mut().for_each(|byte| *byte = !*byte);
            }
        }
        // Of rows that are equal in the order, those of a descending last path come backwards.
        let is_descending = self.composites[composite].paths.last().is_some_and(|(_, down)| *down);
        let tie = self::key(place).map(|byte| if is_descending { !byte } else { byte });
        key.extend(tie);
        key
    }

    /// Where reading goes on in the list of a plan's items.
    pub(crate) fn first_place(&self, places: &[usize], start: &Continuation) -> usize {
        let (place, is_done) = match &start.position {
            Position::Item { place, rows } => (place, rows.is_none()),
            Position::Sums { place, .. } => (place, true),
            Position::Key(_) => return 0,
        };
        if place.is_empty() {
            return 0;
        }
        let at = places.iter().position(|it| key(*it).as_slice() == place.as_slice());
        at.expect("the item is still there") + usize::from(is_done)
    }
}

/// The key of an entry: of arrays and objects it says only that they are there.
fn entry(value: ValueRef<'_>) -> Vec<u8> {
    let mut key = Vec::new();
    match value.kind() {
        kind @ (Kind::Array | Kind::Object) => key.push(kind_bounds(kind).0),
        _ => order_key(value, &mut key),
    }
    key
}

impl Schema for Container {
    fn partition_key(&self) -> &[Path] {
        &self.key
    }

    fn is_indexed(&self, path: &Path) -> bool {
        !path.0.contains(&Step::Name("secret".into()))
    }

    fn has_containers(&self) -> bool {
        true
    }

    fn finds_missing(&self) -> bool {
        self.finds_missing
    }

    fn composites(&self) -> &[Composite] {
        &self.composites
    }
}
