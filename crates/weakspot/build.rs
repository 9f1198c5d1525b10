//! Tells the library how it is optimised: reports say so where it matters.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-env=WEAKSPOT_OPT_LEVEL={}", env::var("OPT_LEVEL").unwrap_or_default());
}
