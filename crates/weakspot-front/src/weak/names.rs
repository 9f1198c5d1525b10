//! Interned names. Words of the language come first, so that a keyword is recognised by its number.
//!
//! Only the words that begin or join constructs are reserved. The names of operations (`lock`, `swap`, `wait`, …) are
//! recognised where they are used as operations, so that a model may have a variable called `lock`.

use rustc_hash::FxHashMap;

/// An interned name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Name(u32);

macro_rules! words {
    ($($constant:ident = $text:literal),* $(,)?) => {
        const WORDS: &[&str] = &[$($text),*];
        words!(@constants 0; $($constant)*);
    };
    (@constants $number:expr; $constant:ident $($rest:ident)*) => {
        #[allow(dead_code, reason = "some words are recognised by a range of numbers")]
        pub(super) const $constant: Name = Name($number);
        words!(@constants $number + 1; $($rest)*);
    };
    (@constants $number:expr;) => {};
}

words! {
    // reserved
    CONST = "const", SHARED = "shared", MUTEX = "mutex", CONDVAR = "condvar", THREAD = "thread", FN = "fn",
    LET = "let", IF = "if", ELSE = "else", WHILE = "while", LOOP = "loop", BREAK = "break", CONTINUE = "continue",
    RETURN = "return", TRUE = "true", FALSE = "false", ME = "me",
    // recognised by where they stand
    FINAL = "final", FENCE = "fence", ASSERT = "assert", ASSUME = "assume", AWAIT = "await", LOCK = "lock",
    UNLOCK = "unlock", WAIT = "wait", NOTIFY_ONE = "notify_one", NOTIFY_ALL = "notify_all", CRITICAL = "critical",
    SKIP = "skip", CHOOSE = "choose", CAS = "cas", SWAP = "swap", FETCH_ADD = "fetch_add", FETCH_OR = "fetch_or",
    FETCH_AND = "fetch_and", STORE_STORE = "store_store", STORE_LOAD = "store_load",
}

/// Words that begin an item.
pub(super) const ITEM_WORDS: [&str; 7] = ["const", "shared", "mutex", "condvar", "thread", "fn", "final"];

/// Words that begin a statement and are not operations with parentheses.
pub(super) const STATEMENT_WORDS: [&str; 11] =
    ["let", "if", "else", "while", "loop", "break", "continue", "return", "fence", "critical", "skip"];

/// Operations that are statements of their own.
pub(super) const STATEMENT_OPERATIONS: [&str; 8] =
    ["assert", "assume", "await", "lock", "unlock", "wait", "notify_one", "notify_all"];

/// Operations that have a value.
pub(super) const VALUE_OPERATIONS: [&str; 6] = ["cas", "swap", "fetch_add", "fetch_or", "fetch_and", "choose"];

impl Name {
    /// May never be the name of anything else.
    pub(super) fn is_reserved(self) -> bool {
        self <= ME
    }

    /// One of `cas`, `swap`, `fetch_add`, `fetch_or`, `fetch_and`.
    pub(super) fn is_atomic(self) -> bool {
        (CAS..=FETCH_AND).contains(&self)
    }

    /// An operation or statement word that is not reserved: no function may take its name.
    pub(super) fn is_operation(self) -> bool {
        (FENCE..=FETCH_AND).contains(&self)
    }

    /// Index for tables with one entry a name.
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// All names of one file.
#[derive(Debug)]
pub(super) struct Names<'source> {
    texts: Vec<&'source str>,
    numbers: FxHashMap<&'source str, Name>,
}

impl<'source> Names<'source> {
    /// The words of the language.
    pub(super) fn new() -> Self {
        let numbers = WORDS.iter().enumerate().map(|(number, &word)| (word, Name(number as u32))).collect();
        Self { texts: WORDS.to_vec(), numbers }
    }

    /// The number of a name.
    pub(super) fn intern(&mut self, text: &'source str) -> Name {
        *self.numbers.entry(text).or_insert_with(|| {
            self.texts.push(text);
            Name(self.texts.len() as u32 - 1)
        })
    }

    /// The text of a name.
    pub(super) fn text(&self, name: Name) -> &'source str {
        self.texts[name.index()]
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.texts.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_their_constants() {
        let mut names = Names::new();
        assert_eq!(names.intern("notify_one"), NOTIFY_ONE);
        assert_eq!(names.intern("me"), ME);
        assert_eq!(names.intern("store_load"), STORE_LOAD);
        assert_eq!(names.text(FETCH_AND), "fetch_and");
        assert!(LET.is_reserved() && !LOCK.is_reserved() && !FINAL.is_reserved());
        assert!(CAS.is_atomic() && !CHOOSE.is_atomic() && CHOOSE.is_operation() && !FINAL.is_operation());
        let own = names.intern("turn");
        assert_eq!(names.intern("turn"), own);
    }
}
