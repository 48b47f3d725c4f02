//! The lengths of steps, and how many of each are kept.

/// Length of the steps of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The last ten minutes.
    TenSeconds,
    /// The last two hours.
    Minute,
    /// The last day.
    TenMinutes,
}

impl Step {
    pub const ALL: [Self; 3] = [Self::TenSeconds, Self::Minute, Self::TenMinutes];

    pub fn ms(self) -> u64 {
        match self {
            Self::TenSeconds => 10_000,
            Self::Minute => 60_000,
            Self::TenMinutes => 600_000,
        }
    }

    /// How many steps are kept.
    pub fn kept(self) -> u32 {
        match self {
            Self::TenSeconds => 60,
            Self::Minute => 120,
            Self::TenMinutes => 144,
        }
    }

    /// As written in a request.
    pub fn name(self) -> &'static str {
        match self {
            Self::TenSeconds => "10s",
            Self::Minute => "1m",
            Self::TenMinutes => "10m",
        }
    }

    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|step| step.name() == name)
    }

    /// The number of the step that contains this time.
    pub(crate) fn number(self, at_ms: u64) -> u32 {
        // Steps of ten seconds overflow the type in the year 3331.
        u32::try_from(at_ms / self.ms()).unwrap_or(u32::MAX)
    }

    pub(crate) fn begin_ms(self, number: u32) -> u64 {
        u64::from(number) * self.ms()
    }
}
