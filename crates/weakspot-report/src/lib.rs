//! Everything a person or a script reads: diagnostics, timelines, JSON, herd logs.
