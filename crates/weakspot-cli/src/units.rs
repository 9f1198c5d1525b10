//! Amounts of time and memory on the command line: a plain number as [the help](crate::args) says, or one with a unit.

use std::num::NonZeroUsize;
use std::time::Duration;

/// Units of time, in seconds. The longer name first where one ends like another.
const TIMES: [(&str, f64); 5] = [("ms", 1e-3), ("min", 60.0), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];

/// Units of memory, in MiB. A gigabyte is taken for a GiB: a limit need not be exact.
const SIZES: [(&str, usize); 6] = [("MiB", 1), ("GiB", 1 << 10), ("MB", 1), ("GB", 1 << 10), ("M", 1), ("G", 1 << 10)];

/// The most MiB that may be asked for.
const MOST: usize = 1 << 30;

/// A positive number of seconds that fits a duration.
pub fn seconds(text: &str) -> Result<f64, String> {
    let (digits, unit) = split(text, &TIMES, 1.0);
    let wrong = "give a number of seconds greater than 0, or one with a unit: 500ms, 90s, 5m, 1h";
    let seconds = digits.parse::<f64>().map_err(|_| wrong.to_owned())? * unit;
    let is_one = seconds > 0.0 && Duration::try_from_secs_f64(seconds).is_ok();
    is_one.then_some(seconds).ok_or_else(|| wrong.to_owned())
}

/// A positive number of MiB.
pub fn mebibytes(text: &str) -> Result<NonZeroUsize, String> {
    let (digits, unit) = split(text, &SIZES, 1);
    let number = digits.parse::<usize>().ok().and_then(|number| number.checked_mul(unit));
    let number = number.filter(|&mib| mib <= MOST).and_then(NonZeroUsize::new);
    number.ok_or_else(|| format!("give a whole number of MiB from 1 to {MOST}, or one with a unit: 512M, 4G"))
}

/// What stands before a unit, and the unit; without one, `plain`.
fn split<'t, U: Copy>(text: &'t str, units: &[(&str, U)], plain: U) -> (&'t str, U) {
    let with = |&(name, unit): &(&str, U)| Some((text.strip_suffix(name)?.trim_end(), unit));
    units.iter().find_map(with).unwrap_or((text, plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        let good = [("60", 60.0), ("0.2", 0.2), ("60s", 60.0), ("500ms", 0.5), ("2m", 120.0), ("2min", 120.0)];
        for (text, expected) in good.into_iter().chain([("1.5 h", 5400.0), ("1e2", 100.0)]) {
            assert_eq!(seconds(text), Ok(expected), "{text}");
        }
        for text in ["", "s", "0", "0s", "-5", "-5s", "soon", "inf", "NaN", "infs", "3 days", "1e300h", "5sm"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes() {
        for (text, expected) in [("1", 1), ("512M", 512), ("512MiB", 512), ("4G", 4096), ("4 GB", 4096), ("2GiB", 2048)]
        {
            assert_eq!(mebibytes(text).map(NonZeroUsize::get), Ok(expected), "{text}");
        }
        for text in ["", "0", "0G", "-1", "-1G", "x", "1.5G", "1T", "1073741825", "1048577G", "18446744073709551615G"] {
            assert!(mebibytes(text).is_err(), "{text}");
        }
    }
}
