//! Any bytes as a `.weak` file: compiling and formatting never panic, and the canonical form is stable and means the
//! same.
//!
//! `cargo +nightly fuzz run weak -- -dict=fuzz_targets/weak.dict`

#![no_main]

use libfuzzer_sys::fuzz_target;
use weakspot_front::weak;
use weakspot_model::source::SourceFile;

/// The instructions without their places.
fn meaning(text: &str) -> Option<String> {
    let compiled = weak::compile(&SourceFile::new("fuzz.weak", text)).ok()?;
    let dump = compiled.program.to_string();
    Some(dump.lines().filter_map(|line| line.split(" ; ").next()).collect::<Vec<_>>().join("\n"))
}

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let before = meaning(&text);
    let Ok(once) = weak::format(&SourceFile::new("fuzz.weak", text.as_ref())) else {
        assert!(before.is_none(), "a file that compiles can be formatted");
        return;
    };
    let twice = weak::format(&SourceFile::new("fuzz.weak", once.clone()));
    assert_eq!(twice.as_ref(), Ok(&once), "the canonical form is stable");
    assert_eq!(before, meaning(&once), "formatting keeps the meaning");
});
