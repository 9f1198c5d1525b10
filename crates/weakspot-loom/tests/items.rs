//! Every public item of loom 0.7 with its signature, once for loom and once for `weakspot-loom`: what loom does not have
//! does not compile in `theirs`, and what is missing here does not compile in `ours`. (What loom 0.5 and 0.6 have is a
//! part of that.) All of it is a matter of compiling.
#![allow(
    clippy::items_after_statements,
    clippy::no_effect_underscore_binding,
    clippy::type_complexity,
    dead_code,
    unused_qualifications
)]

mod theirs {
    use loom as tested;

    include!("items/list.rs");
}

mod ours {
    use weakspot_loom as tested;

    include!("items/list.rs");
}

#[test]
fn what_loom_has_is_here() {
    assert_eq!(theirs::GROUPS.len(), ours::GROUPS.len());
}
