//! What can be run: a name, and a future that ends with what it found.

use lazuli_env::BoxFuture;

use crate::executor::World;
use crate::workloads;

/// What was found wrong, in a sentence.
pub type Found = Result<(), String>;

pub struct Scenario {
    pub name: &'static str,
    pub about: &'static str,
    pub run: fn(World) -> BoxFuture<'static, Found>,
}

/// Every scenario that must hold for every seed.
pub const SCENARIOS: &[Scenario] = &[Scenario {
    name: "store_crash",
    about: "the simulated disk itself: whole transactions, nothing answered is lost",
    run: |world| Box::pin(workloads::store_crash::run(world)),
}];

/// A scenario by its name.
pub fn find(name: &str) -> Option<&'static Scenario> {
    SCENARIOS.iter().find(|scenario| scenario.name == name)
}

/// Fails with a sentence if something that must hold does not.
#[macro_export]
macro_rules! ensure {
    ($holds:expr, $($words:tt)+) => {
        if !$holds {
            return Err(format!($($words)+));
        }
    };
}
