//! Any text is read as a litmus test or refused with places inside the text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weakspot_front::litmus;
use weakspot_model::source::SourceFile;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let source = SourceFile::new("fuzz.litmus", text.as_ref());
    match litmus::parse(&source) {
        Ok(test) => {
            for observable in litmus::all_observables(&test) {
                assert!(!litmus::observable_name(&test, observable).is_empty());
            }
        }
        Err(diagnostics) => {
            assert!(!diagnostics.is_empty());
            for diagnostic in diagnostics {
                assert!(source.text.get(diagnostic.span.range()).is_some());
            }
        }
    }
});
