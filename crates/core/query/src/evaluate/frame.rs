//! Frames: the values that a row binds to slots, one frame for each, the newest on top.

use lazuli_value::ValueRef;

/// A bound value and the frames below it.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'f> {
    value: Option<ValueRef<'f>>,
    slot: usize,
    below: Option<&'f Frame<'f>>,
}

impl<'f> Frame<'f> {
    /// Binds a value to the next slot.
    pub fn on(below: Option<&'f Frame<'f>>, value: Option<ValueRef<'f>>) -> Self {
        Self { value, slot: below.map_or(0, |below| below.slot + 1), below }
    }

    pub fn get(&'f self, slot: usize) -> Option<ValueRef<'f>> {
        let mut frame = self;
        while frame.slot > slot {
            frame = frame.below?;
        }
        frame.value
    }
}
