//! `--value NAME=DOMAIN`: which variables have abstract values.

use weakspot_front::suggest;
use weakspot_model::ir::Program;
use weakspot_verify::abstraction::ValueDomain;

use crate::exit::Failure;

/// What a proof with abstract values leaves out.
pub const RESERVATION: &str =
    "  variables with a `--value` domain are taken as integers without end: 64-bit overflow is not looked for\n";

/// The domains of all locations from `NAME=DOMAIN` arguments. A name means a scalar or all cells of an array.
pub fn value_domains(program: &Program, arguments: &[String]) -> Result<Vec<Option<ValueDomain>>, Failure> {
    let mut domains = vec![None; program.locations.len()];
    for argument in arguments {
        let refuse = |message: String, help: String| Err(Failure::Usage { message, help });
        let Some((name, domain)) = argument.split_once('=') else {
            let message = format!("`--value {argument}` names no domain");
            return refuse(
                message,
                "write `--value NAME=DOMAIN`; the domains are sign, parity and interval".to_owned(),
            );
        };
        let Some(domain) = ValueDomain::ALL.into_iter().find(|known| known.name() == domain.trim()) else {
            let close = suggest::did_you_mean(domain, ValueDomain::ALL.map(ValueDomain::name));
            let help = close.unwrap_or_else(|| "the domains are sign, parity and interval".to_owned());
            return refuse(format!("`{domain}` is no domain of values"), help);
        };
        let name = name.trim();
        let cells = program.locations.iter().map(|location| base_name(&location.name));
        let found: Vec<usize> = cells.clone().enumerate().filter(|(_, cell)| *cell == name).map(|(i, _)| i).collect();
        if found.is_empty() {
            let help = suggest::did_you_mean(name, cells).unwrap_or_else(|| names(program));
            return refuse(format!("there is no shared variable `{name}`"), help);
        }
        for cell in found {
            match domains[cell].replace(domain) {
                Some(other) if other != domain => {
                    let message = format!("`{name}` is given two domains, {} and {}", other.name(), domain.name());
                    return refuse(message, "give each variable one domain".to_owned());
                }
                _ => {}
            }
        }
    }
    Ok(domains)
}

/// The variable a cell belongs to: `a` for `a[2]`.
fn base_name(cell: &str) -> &str {
    cell.split('[').next().unwrap_or(cell)
}

/// What there is, for somebody who named something else.
fn names(program: &Program) -> String {
    let mut names: Vec<String> =
        program.locations.iter().map(|location| format!("`{}`", base_name(&location.name))).collect();
    names.dedup();
    if names.is_empty() {
        return "the program has no shared variables".to_owned();
    }
    names.truncate(8);
    format!("the program has {}", names.join(", "))
}
