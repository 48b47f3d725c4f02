//! The arguments of one command: ranges of a buffer.

/// Where an argument begins and how long it is.
pub(crate) type Range = (u32, u32);

/// Borrowed arguments; the first is the name of the command. Cheap to copy.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a> {
    pub(crate) buffer: &'a [u8],
    pub(crate) ranges: &'a [Range],
}

impl<'a> Args<'a> {
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The argument at this place. Commands ask only for places that their arity promises; any other is empty.
    #[inline]
    pub fn at(&self, index: usize) -> &'a [u8] {
        self.get(index).unwrap_or_default()
    }

    #[inline]
    pub fn get(&self, index: usize) -> Option<&'a [u8]> {
        let (start, length) = *self.ranges.get(index)?;
        self.buffer.get(start as usize..start as usize + length as usize)
    }

    /// All arguments from this place on.
    pub fn from(&self, index: usize) -> Args<'a> {
        Args { buffer: self.buffer, ranges: self.ranges.get(index..).unwrap_or_default() }
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        let args = *self;
        (0..args.len()).map(move |index| args.at(index))
    }

    /// Whether the argument at this place is this word, in any case.
    pub fn is(&self, index: usize, word: &str) -> bool {
        self.get(index).is_some_and(|it| it.eq_ignore_ascii_case(word.as_bytes()))
    }

    pub fn to_owned(&self) -> OwnedArgs {
        self.iter().collect()
    }
}

/// Arguments that outlive the buffer they were read into: queued by MULTI, kept by a client that waits, made by a script.
#[derive(Clone, Debug, Default)]
pub struct OwnedArgs {
    buffer: Vec<u8>,
    ranges: Vec<Range>,
}

impl OwnedArgs {
    /// Adds an argument. Together they must stay under the limit of a request, which the caller checks.
    pub fn push(&mut self, argument: &[u8]) {
        let range = (self.buffer.len() as u32, argument.len() as u32);
        self.buffer.extend_from_slice(argument);
        self.ranges.push(range);
    }

    pub fn args(&self) -> Args<'_> {
        Args { buffer: &self.buffer, ranges: &self.ranges }
    }

    /// What it takes in memory.
    pub fn bytes(&self) -> usize {
        self.buffer.len() + self.ranges.len() * size_of::<Range>()
    }

    pub fn clear(&mut self) {
        self.buffer.clear();
        self.ranges.clear();
    }
}

impl<T: AsRef<[u8]>> FromIterator<T> for OwnedArgs {
    fn from_iter<I: IntoIterator<Item = T>>(arguments: I) -> Self {
        let mut owned = Self::default();
        for argument in arguments {
            owned.push(argument.as_ref());
        }
        owned
    }
}
