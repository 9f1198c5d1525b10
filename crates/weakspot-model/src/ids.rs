//! Newtypes for everything that is counted. An id is an index into exactly one table, named in its doc.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($repr:ty), $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $repr);

        impl $name {
            /// The id of table entry `index`.
            pub fn new(index: usize) -> Self {
                debug_assert!(<$repr>::try_from(index).is_ok(), "id out of range");
                Self(index as $repr)
            }

            /// The table entry this id names.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

id!(
    /// A thread: index into [`crate::ir::Program::threads`].
    ThreadId(u16), "t"
);
id!(
    /// A shared memory cell: index into [`crate::ir::Program::locations`].
    Loc(u32), "loc"
);
id!(
    /// A mutex: index into [`crate::ir::Program::mutexes`].
    MutexId(u16), "m"
);
id!(
    /// A condition variable: index into [`crate::ir::Program::condvars`].
    CondvarId(u16), "c"
);
id!(
    /// A thread-local variable or temporary: index into [`crate::ir::Thread::registers`].
    Reg(u16), "r"
);
id!(
    /// An instruction of one thread: index into [`crate::ir::Thread::code`].
    Pc(u32), "pc"
);
id!(
    /// A place in the source text: index into [`crate::ir::Program::sites`].
    Site(u32), "site"
);
