//! A published crate that is in no list: its name, version and flags come from the command line.

use clap::{Args, ValueEnum};

use super::suites::{LoomVersion, Suite};
use crate::repository::ChoreError;

/// What has to be known of such a crate.
#[derive(Debug, Args)]
pub struct OtherArgs {
    /// Another crate, as `name@version`
    #[arg(long = "crate", value_name = "CRATE")]
    name: Option<String>,

    /// The `--cfg` that turns loom on in it (`loom` unless said otherwise; `none`: it has none)
    #[arg(long, value_name = "CFG", requires = "name")]
    cfg: Option<String>,

    /// What else it asks of the compiler, as in `RUSTFLAGS`
    #[arg(long, value_name = "FLAGS", requires = "name", allow_hyphen_values = true)]
    flags: Option<String>,

    /// Its features, separated by commas
    #[arg(long, value_name = "FEATURES", requires = "name")]
    features: Option<String>,

    /// Leave out its default features
    #[arg(long, requires = "name")]
    no_default_features: bool,

    /// A variable that its own runs set, as `NAME=VALUE`; may be given several times
    #[arg(long = "env", value_name = "NAME=VALUE", requires = "name")]
    environment: Vec<String>,

    /// Which of its targets are tested, as for `cargo test` (`--lib` unless said otherwise)
    #[arg(long, value_name = "WORDS", requires = "name", allow_hyphen_values = true)]
    targets: Option<String>,

    /// Which loom it was written for
    #[arg(long, value_enum, requires = "name", default_value = "0.7")]
    loom: LoomVersion,
}

impl ValueEnum for LoomVersion {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Seven, Self::Six, Self::Five]
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(match self {
            Self::Seven => "0.7",
            Self::Six => "0.6",
            Self::Five => "0.5",
        }))
    }
}

/// Suites are made of text that lasts as long as the command does.
fn lasting(text: &str) -> &'static str {
    text.to_owned().leak()
}

impl OtherArgs {
    /// The crate as a suite, if one is named.
    pub fn suite(&self) -> Result<Option<&'static Suite>, ChoreError> {
        let Some(name) = &self.name else { return Ok(None) };
        let Some((name, version)) = name.split_once('@') else {
            return Err(ChoreError::Failed(format!("`{name}` has no version: write `{name}@1.2.3`")));
        };
        let targets: Vec<_> = self.targets.as_deref().unwrap_or("--lib").split_whitespace().map(lasting).collect();
        let variable = |variable: &String| match variable.split_once('=') {
            Some((name, value)) => Ok((lasting(name), lasting(value))),
            None => Err(ChoreError::Failed(format!("`{variable}` has no value: write `{variable}=1`"))),
        };
        let environment: Vec<_> = self.environment.iter().map(variable).collect::<Result<_, _>>()?;
        let suite = Suite {
            environment: environment.leak(),
            default_features: !self.no_default_features,
            cfg: Some(lasting(self.cfg.as_deref().unwrap_or("loom"))).filter(|&cfg| cfg != "none"),
            flags: lasting(self.flags.as_deref().unwrap_or_default()),
            features: lasting(self.features.as_deref().unwrap_or_default()),
            loom: self.loom,
            ..Suite::new(lasting(name), lasting(version), targets.leak())
        };
        Ok(Some(Box::leak(Box::new(suite))))
    }
}
