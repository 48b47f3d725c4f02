//! The rule by which copies are told from what they are copies of. It changes nothing.

use std::fmt;

use super::{Standing, Start, Witness};

/// Why a member and the catalog do not belong together as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The member has not taken part in starts that the catalog saw it take part in: it is an older copy.
    OlderStart { found: Option<Start>, expected: Start },
    /// The member is of the right start and has lost commits: it is a copy that was made while the process ran.
    OlderCommits { found: u64, floor: u64, floor_ms: u64 },
    /// The member knows a later start than the catalog: the catalog is an older copy, or the member was in use with
    /// another copy of it.
    OlderCatalog { found: Start, known: Option<Start> },
    /// The catalog has lost commits that the member knows of: it is a copy that was made while the process ran.
    OlderCatalogCommits { found: u64, floor: u64 },
    /// Both have taken part in a start of this number, but not in the same one: each was in use without the other.
    Parted { found: Start, expected: Option<Start> },
}

/// Whether a member is what the catalog remembers, given how many commits each of them has.
pub fn judge(
    witness: Option<&Witness>,
    standing: Option<&Standing>,
    commits: u64,
    catalog_commits: u64,
) -> Option<Doubt> {
    let known = witness.and_then(Witness::newest);
    let Some(standing) = standing else {
        // Before the first start of a member nobody has written anything down.
        let expected = witness.and_then(|witness| witness.agreed)?;
        return Some(Doubt::OlderStart { found: None, expected });
    };
    let found = standing.start;
    let Some(witness) = witness.filter(|witness| witness.knows(found)) else {
        return Some(unknown(found, witness.and_then(|witness| witness.agreed), known));
    };
    let Witness { floor, floor_ms, .. } = *witness;
    if commits < floor {
        return Some(Doubt::OlderCommits { found: commits, floor, floor_ms });
    }
    let floor = standing.catalog_floor;
    let now = (catalog_commits < floor).then_some((catalog_commits, floor));
    let behind = witness.behind.or(now);
    behind.map(|(found, floor)| Doubt::OlderCatalogCommits { found, floor })
}

/// The member has a start that the catalog does not know it by.
fn unknown(found: Start, agreed: Option<Start>, known: Option<Start>) -> Doubt {
    match (agreed, known) {
        (Some(expected), _) if found.number < expected.number => {
            Doubt::OlderStart { found: Some(found), expected }
        }
        (_, Some(newest)) if found.number <= newest.number => {
            Doubt::Parted { found, expected: known }
        }
        _ => Doubt::OlderCatalog { found, known },
    }
}

impl Doubt {
    /// Whether it is the catalog that seems to be the older one.
    pub fn is_about_catalog(&self) -> bool {
        matches!(self, Self::OlderCatalog { .. } | Self::OlderCatalogCommits { .. })
    }

    pub fn code(&self) -> &'static str {
        match self {
            Self::OlderStart { .. } | Self::OlderCommits { .. } => "folder-older",
            Self::OlderCatalog { .. } | Self::OlderCatalogCommits { .. } => "catalog-older",
            Self::Parted { .. } => "folder-parted",
        }
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |start: &Option<Start>| match start {
            Some(start) => format!("start {}", start.number),
            None => "no start at all".to_owned(),
        };
        match self {
            Self::OlderStart { found, expected } => write!(
                f,
                "the folder is an older copy: it knows {}, \
                 the catalog saw it take part in start {}",
                number(found),
                expected.number
            ),
            Self::OlderCommits { found, floor, .. } => write!(
                f,
                "the folder is an older copy: it has {found} commits, the catalog saw {floor}"
            ),
            Self::OlderCatalog { found, known } => write!(
                f,
                "the catalog is an older copy, or the folder was in use with another copy of it: \
                 the folder took part in start {}, the catalog saw it with {}",
                found.number,
                number(known)
            ),
            Self::OlderCatalogCommits { found, floor } => write!(
                f,
                "the catalog is an older copy: it has {found} commits, the folder saw {floor}"
            ),
            Self::Parted { found, expected } => write!(
                f,
                "folder and catalog were in use without each other: the folder took part in \
                 another start {} than the catalog, which saw it with {}",
                found.number,
                number(expected)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use lazuli_env::Id;

    use super::*;

    /// A catalog with one member, each with its commits, as a power cut leaves them.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    struct World {
        witness: Option<Witness>,
        standing: Option<Standing>,
        commits: u64,
        catalog_commits: u64,
        starts: u64,
    }

    impl World {
        fn judge(&self) -> Option<Doubt> {
            let Self { witness, standing, commits, catalog_commits, .. } = self;
            judge(witness.as_ref(), standing.as_ref(), *commits, *catalog_commits)
        }

        /// The member of one world beside the catalog of another.
        fn with_member_of(self, other: Self) -> Self {
            Self { standing: other.standing, commits: other.commits, ..self }
        }
    }

    /// The steps of a start, of writing, and of a clean stop.
    const STEPS: usize = 7;

    /// Every state that a start goes through, the first one being that in which it finds the world.
    fn run(world: World, token: u128) -> Vec<World> {
        let mut states = vec![world];
        let mut at = world;
        at.starts += 1;
        let start = Start { number: at.starts, token: Id::from_bytes(token.to_be_bytes()) };
        let found = at.standing.map(|it| it.start);
        at.witness = Some(at.witness.unwrap_or_default().before(found, start));
        at.catalog_commits += 1;
        states.push(at);
        at.standing = Some(Standing { start, catalog_floor: at.catalog_commits });
        at.commits += 1;
        states.push(at);
        at.witness = Some(Witness::after(start, at.commits, 0));
        at.catalog_commits += 1;
        states.push(at);
        // Clients write, then floors are recorded, as at a clean stop.
        at.commits += 1;
        at.catalog_commits += 1;
        states.push(at);
        at.standing = Some(Standing { start, catalog_floor: at.catalog_commits });
        at.commits += 1;
        states.push(at);
        at.witness = Some(Witness::after(start, at.commits, 0));
        at.catalog_commits += 1;
        states.push(at);
        assert_eq!(states.len(), STEPS);
        states
    }

    /// All ways in which so many starts can each end after any of their steps.
    fn histories(starts: u32) -> Vec<Vec<World>> {
        let mut all = vec![vec![World::default()]];
        for round in 0..starts {
            let mut longer = Vec::new();
            for history in all {
                let last = *history.last().unwrap();
                let states = run(last, u128::from(round) + 1);
                for end in 0..states.len() {
                    longer.push([&history[..], &states[1..=end]].concat());
                }
            }
            all = longer;
        }
        all
    }

    #[test]
    fn a_process_that_ends_after_any_step_of_any_start_leaves_nothing_in_doubt() {
        let histories = histories(4);
        assert_eq!(histories.len(), STEPS.pow(4));
        for history in histories {
            let last = history.last().unwrap();
            assert_eq!(last.judge(), None, "{history:?}");
        }
    }

    #[test]
    fn a_member_from_before_the_last_start_that_was_agreed_is_older() {
        for history in histories(3) {
            let now = *history.last().unwrap();
            let Some(agreed) = now.witness.and_then(|it| it.agreed) else { continue };
            for copy in history.iter().filter(|it| !is_of(it.standing, agreed)) {
                let start = copy.standing.map(|it| it.start);
                if now.witness.unwrap().pending.is_some_and(|it| Some(it) == start) {
                    continue;
                }
                let doubt = now.with_member_of(*copy).judge();
                assert!(matches!(doubt, Some(Doubt::OlderStart { .. })), "{history:?} {copy:?}");
            }
        }
    }

    fn is_of(standing: Option<Standing>, start: Start) -> bool {
        standing.is_some_and(|it| it.start == start)
    }

    #[test]
    fn a_member_or_a_catalog_from_before_a_clean_stop_is_older() {
        for history in histories(2) {
            let stopped = *run(*history.last().unwrap(), 9).last().unwrap();
            let states = run(*history.last().unwrap(), 9);
            for copy in history.iter().chain(&states).filter(|it| it.commits < stopped.commits) {
                let code = stopped.with_member_of(*copy).judge().map(|it| it.code());
                assert_eq!(code, Some("folder-older"), "{copy:?}");
            }
            // The last commit of a catalog holds floors and nothing else.
            let is_older = |it: &&World| it.catalog_commits + 1 < stopped.catalog_commits;
            for copy in history.iter().chain(&states).filter(is_older) {
                let code = copy.with_member_of(stopped).judge().map(|it| it.code());
                assert_eq!(code, Some("catalog-older"), "{copy:?}");
            }
        }
    }

    #[test]
    fn a_catalog_that_was_found_to_be_older_stays_so_though_it_goes_on_counting() {
        let states = run(World::default(), 1);
        let (copy, stopped) = (states[3], *states.last().unwrap());
        let mut older = copy.with_member_of(stopped);
        let Some(Doubt::OlderCatalogCommits { found, floor }) = older.judge() else { panic!() };
        let witness = older.witness.as_mut().unwrap();
        witness.behind = Some((found, floor));
        older.catalog_commits += 100;
        assert_eq!(older.judge(), Some(Doubt::OlderCatalogCommits { found, floor }));
        // The operator takes the member as it is, or puts the right catalog back.
        assert_eq!(run(older, 2).last().unwrap().judge(), None);
        assert_eq!(stopped.judge(), None);
    }

    #[test]
    fn what_was_in_use_elsewhere_is_told_from_what_is_older() {
        let base = *run(World::default(), 1).last().unwrap();
        let here = *run(base, 2).last().unwrap();
        let elsewhere = *run(base, 3).last().unwrap();
        let doubt = here.with_member_of(elsewhere).judge().unwrap();
        assert_eq!(doubt.code(), "folder-parted");
        let longer = *run(elsewhere, 4).last().unwrap();
        assert_eq!(here.with_member_of(longer).judge().unwrap().code(), "catalog-older");
        assert_eq!(longer.with_member_of(here).judge().unwrap().code(), "folder-older");
    }

    #[test]
    fn what_never_wrote_a_start_down_is_taken_as_it_is() {
        assert_eq!(judge(None, None, 7, 9), None);
        let before = World { commits: 7, catalog_commits: 9, ..World::default() };
        assert!(run(before, 1).iter().all(|it| it.judge().is_none()));
        let doubt = run(before, 1).last().unwrap().with_member_of(before).judge().unwrap();
        assert_eq!(doubt.code(), "folder-older");
        assert!(doubt.to_string().contains("it knows no start at all"), "{doubt}");
    }
}
