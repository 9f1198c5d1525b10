//! What came of a model.

mod left_out;
mod violation;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use weakspot_model::buffer::MemoryModel;

use crate::failure::{Failure, FailureKind, SourcePlace};
use crate::impact::{Harm, Impact, Witness};
use crate::replay::Which;
use crate::rt::runtime::Runtime;
use crate::source;
use crate::strengthen::{Candidate, Suggestion, words};
use crate::timeline::Timeline;
use crate::{again, replay, suggestions};
pub use left_out::LoopLeftOut;
pub use violation::{Party, Violation};

/// What kept the exploration from being complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// The limit on executions.
    Executions,
    /// The limit on time.
    Time,
    /// What has to be kept of executions that wait for others took too much memory.
    Memory,
    /// The bound on preemptions.
    Preemptions(u32),
    /// Schedules were chosen at random.
    Random,
    /// Not all rounds of some loops: see [`Report::left_out`].
    Loops,
    /// No execution ran to its end: all of them go round loops for ever.
    NoEnd,
    /// One schedule was run, because it was asked for.
    Schedule,
}

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Every SC execution is correct, and the memory model adds none.
    Safe,
    /// An SC execution fails: a bug on every processor.
    Failed,
    /// The memory model adds executions, and one of them fails.
    Harmful,
    /// The memory model adds executions, and none of them fails.
    Benign,
    /// The memory model adds executions; none that fails was found, and not all were looked at.
    Unknown,
    /// Nothing found, and not everything was looked at.
    Bounded(Bound),
}

/// What came of a model.
#[derive(Debug)]
#[non_exhaustive]
pub struct Report {
    /// The answer.
    pub verdict: Verdict,
    /// The memory model.
    pub model: MemoryModel,
    /// SC executions that ran to their end: one for each trace.
    pub executions: u64,
    /// Explorations that turned out to be no executions.
    pub blocked: u64,
    /// How often the closure was run. Several workers run it more often than one does: each begins with a part of the search by
    /// running it once, and finds out by itself what loops do.
    pub runs: u64,
    /// Events in all.
    pub events: u64,
    /// Executions that tripped the monitor.
    pub borderline: u64,
    /// Every execution was explored.
    pub exhaustive: bool,
    /// How much of the search is done, of 1, if all branches at a point are taken to be equally large: a guess. Executions
    /// divided by this are how many there may be.
    pub covered: f64,
    /// How long it took.
    pub elapsed: Duration,
    /// Why an SC execution failed.
    pub failure: Option<Failure>,
    /// That execution.
    pub timeline: Option<Timeline>,
    /// Its schedule, for a replay.
    pub schedule: Option<String>,
    /// Which model of its test this is.
    pub(crate) which: Which,
    /// The file that its schedule is in, if that is too long for a line.
    pub(crate) schedule_file: Option<PathBuf>,
    /// How the model was explored, where that is out of the ordinary.
    pub notes: Vec<String>,
    /// Loops some of whose rounds were not explored.
    pub left_out: Vec<LoopLeftOut>,
    /// Store-buffer violations, one for each pair of places.
    pub violations: Vec<Violation>,
    /// What comes of them.
    pub impact: Option<Impact>,
    /// A relaxed execution, if none fails and violations are failures in themselves.
    pub(crate) witness: Option<Witness>,
    /// What helps.
    pub suggestions: Vec<Suggestion>,
    /// Why these: of each clause one change has to be made.
    pub(crate) clauses: Vec<Vec<Candidate>>,
    /// What helps where stronger orderings do not, in words.
    pub help: Option<String>,
    pub(crate) bound: Option<Bound>,
    /// The model whose violations were looked for: SC has none.
    pub(crate) watched: MemoryModel,
    pub(crate) fails_on_unsafe: bool,
    pub(crate) fails_on_harmful: bool,
}

impl Report {
    /// How many executions there may be, where a limit ended the search before it was done.
    fn guess(&self) -> Option<f64> {
        let ended_early = matches!(self.bound, Some(Bound::Executions | Bound::Time | Bound::Memory));
        (ended_early && self.covered > 0.0 && self.failure.is_none()).then(|| self.executions as f64 / self.covered)
    }

    pub(crate) fn new(model: MemoryModel) -> Self {
        Self {
            verdict: Verdict::Safe,
            model,
            executions: 0,
            blocked: 0,
            runs: 0,
            events: 0,
            borderline: 0,
            exhaustive: false,
            covered: 0.0,
            elapsed: Duration::ZERO,
            failure: None,
            timeline: None,
            schedule: None,
            which: Which::FIRST,
            schedule_file: None,
            violations: Vec::new(),
            notes: Vec::new(),
            left_out: Vec::new(),
            impact: None,
            witness: None,
            suggestions: Vec::new(),
            clauses: Vec::new(),
            help: None,
            bound: None,
            watched: model,
            fails_on_unsafe: false,
            fails_on_harmful: true,
        }
    }

    /// It fails as another report says.
    pub(crate) fn take_over_failure(&mut self, other: Self) {
        (self.failure, self.timeline, self.schedule) = (other.failure, other.timeline, other.schedule);
    }

    /// Does a test with this report fail?
    pub fn is_failure(&self) -> bool {
        match self.verdict {
            Verdict::Failed => true,
            Verdict::Harmful => self.fails_on_harmful,
            Verdict::Benign | Verdict::Unknown => self.fails_on_unsafe,
            Verdict::Safe | Verdict::Bounded(_) => false,
        }
    }

    /// Does it end its test? A failure does, unless suggestions are collected (`WEAKSPOT_SUGGESTIONS`): then only what fails
    /// on every processor does, and the models behind it have their turn.
    pub fn ends_test(&self) -> bool {
        self.is_failure() && (self.verdict == Verdict::Failed || !suggestions::are_collected())
    }

    /// Which model of its OS thread it is about, from 1 on.
    pub(crate) fn number(&self) -> u32 {
        self.which.number
    }

    /// The same as [`Self::is_failure`].
    pub fn failed(&self) -> bool {
        self.is_failure()
    }

    /// The schedule of the execution that fails, if one does: what `WEAKSPOT_REPLAY` takes. With
    /// [`FailOn::Unsafe`](crate::FailOn::Unsafe), that of an execution that store buffers add.
    pub fn replay(&self) -> Option<&str> {
        match (&self.impact, &self.witness) {
            (Some(Impact::Harmful(harm)), _) => Some(&harm.schedule),
            (_, Some(witness)) => Some(&witness.schedule),
            _ => self.schedule.as_deref(),
        }
    }

    /// Puts the schedule of a failure into a file, if it is too long for a line.
    pub(crate) fn keep_long_schedule(&mut self) {
        if self.is_failure() && !self.is_no_schedule() {
            self.schedule_file =
                self.replay().and_then(|schedule| again::long::keep(&replay::of_model(schedule, self.which)));
        }
    }

    /// The line that runs the execution of a schedule again.
    fn line(&self, schedule: &str, timeline: Option<&Timeline>) -> String {
        let name = self.schedule_file.as_deref().map(again::long::name_of);
        again::line(&name.unwrap_or_else(|| replay::of_model(schedule, self.which)), timeline)
    }

    /// Schedules belong to what was observed.
    pub(crate) fn note_observed(&mut self, runtime: &Runtime) {
        let harm = match &mut self.impact {
            Some(Impact::Harmful(harm)) => Some(&mut harm.schedule),
            _ => None,
        };
        let witness = self.witness.as_mut().map(|witness| &mut witness.schedule);
        for schedule in self.schedule.as_mut().into_iter().chain(harm).chain(witness) {
            *schedule = replay::with_observed(schedule, runtime);
        }
    }

    /// Is there something to tell although the test does not fail?
    pub fn has_notes(&self) -> bool {
        let is_one_schedule = self.verdict == Verdict::Bounded(Bound::Schedule);
        is_one_schedule || !self.violations.is_empty() || !self.left_out.is_empty() || !self.notes.is_empty()
    }

    /// What a test that does not fail prints: the report, if there are notes or it was asked for (`all`); one line, if not
    /// everything was explored; otherwise nothing.
    pub fn remark(&self, all: bool) -> Option<String> {
        if all || self.has_notes() {
            return Some(self.to_string());
        }
        let Verdict::Bounded(bound) = self.verdict else { return None };
        let thread = std::thread::current();
        let name = thread.name().filter(|name| *name != "main").map(|name| format!("{name}: ")).unwrap_or_default();
        Some(format!("weakspot: {name}nothing found {}: {}", bound_text(bound), self.extent()))
    }

    /// How much was explored.
    fn extent(&self) -> String {
        let more = if self.blocked > 0 { format!(" (and {} that ended blocked)", self.blocked) } else { String::new() };
        // Branches are taken to be equally large, and what comes first is small as a rule.
        let all = match self.guess() {
            _ if self.exhaustive => "all of them".to_owned(),
            Some(guess) if guess < 1e5 => format!("not all: a guess at their number is {guess:.0}, or many more"),
            Some(guess) => format!("not all: a guess at their number is {guess:.0e}, or many more"),
            None => "not all".to_owned(),
        };
        let executions = if self.executions == 1 { "execution" } else { "executions" };
        let advice = advice_on_speed(env!("WEAKSPOT_OPT_LEVEL"), self.elapsed);
        format!("{} {executions}{more}, {all}, in {:.3?}{advice}", self.executions, self.elapsed)
    }

    fn model_name(&self) -> &'static str {
        match self.model {
            MemoryModel::Sc => "SC",
            MemoryModel::Tso => "TSO",
            MemoryModel::Pso => "PSO",
        }
    }

    /// Was a schedule to be run that is none of this model?
    fn is_no_schedule(&self) -> bool {
        self.failure.as_ref().is_some_and(|failure| matches!(failure.kind, FailureKind::Schedule))
    }

    /// Does the model not repeat itself?
    fn is_not_deterministic(&self) -> bool {
        self.failure.as_ref().is_some_and(|failure| matches!(failure.kind, FailureKind::NotDeterministic))
    }

    fn headline(&self) -> String {
        let model = self.model_name();
        match self.verdict {
            Verdict::Safe if self.watched != self.model => {
                format!("weakspot: correct on SC; the monitor is off, so that what {model} adds was not looked at")
            }
            Verdict::Safe => format!("weakspot: correct on {model}"),
            Verdict::Failed if self.is_not_deterministic() => "weakspot: the model is not deterministic".to_owned(),
            Verdict::Failed if self.is_no_schedule() => "weakspot: this schedule cannot be run".to_owned(),
            // A replay.
            Verdict::Failed if self.schedule.as_ref().is_some_and(|schedule| !schedule.starts_with("sc")) => {
                "weakspot: this execution, in which a store is delayed, fails".to_owned()
            }
            Verdict::Failed => "weakspot: an execution fails, on every processor".to_owned(),
            Verdict::Harmful => format!("weakspot: an execution fails on {model} because a store is delayed"),
            Verdict::Benign => format!("weakspot: not store-buffer safe on {model}, but no execution fails"),
            // A replay as well.
            Verdict::Unknown if self.impact.is_none() && self.schedule.is_some() => {
                "weakspot: this execution, in which a store is delayed, is like no SC execution".to_owned()
            }
            Verdict::Unknown => {
                format!(
                    "weakspot: not store-buffer safe on {model}; no execution that fails was found, not all were looked at"
                )
            }
            Verdict::Bounded(bound) => format!("weakspot: nothing found {}", bound_text(bound)),
        }
    }

    fn write_failure(&self, f: &mut fmt::Formatter<'_>, failure: &Failure) -> fmt::Result {
        write!(f, "\n\n{}", describe(failure, self.timeline.as_ref()))?;
        if let FailureKind::Panic { backtrace: Some(backtrace) } = &failure.kind
            && std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0")
        {
            write!(f, "\n\n{}", frames_of_the_model(&backtrace.to_string()))?;
        }
        Ok(())
    }

    fn write_harm(&self, f: &mut fmt::Formatter<'_>, harm: &Harm) -> fmt::Result {
        let Harm { failure, timeline, schedule, .. } = harm;
        write!(f, "\n\nwhat happens then: {}\n\n{timeline}", describe(failure, Some(timeline)))?;
        write!(f, "\n\n{}", self.line(schedule, Some(timeline)))
    }

    fn write_witness(&self, f: &mut fmt::Formatter<'_>, witness: &Witness) -> fmt::Result {
        let Witness { timeline, schedule, .. } = witness;
        write!(f, "\n\nan execution in which it is, and which no SC execution is like:\n\n{timeline}")?;
        write!(f, "\n\n{}", self.line(schedule, Some(timeline)))
    }

    /// What the relaxed execution that is shown does comes first, with the threads of that execution: in an algorithm that all
    /// threads run alike, the monitor may have seen it in another one, with other threads at the same places.
    pub(crate) fn begin_with_shown(&mut self) {
        let shown = match (&self.impact, &self.witness) {
            (Some(Impact::Harmful(harm)), _) => &harm.violations,
            (_, Some(witness)) => &witness.violations,
            _ => return,
        };
        for violation in &mut self.violations {
            if let Some(own) = shown.iter().find(|own| own.is_like(violation)) {
                *violation = Violation { is_of_harm: true, executions: violation.executions, ..own.clone() };
            }
        }
        self.violations.sort_by_key(|violation| !violation.is_of_harm);
        let is_explained = self.violations.first().is_some_and(|first| first.is_of_harm);
        if let Some(own) = shown.first().filter(|_| !is_explained) {
            self.violations.insert(0, Violation { is_of_harm: true, executions: 1, ..own.clone() });
        }
    }

    fn write_violations(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (own, others): (Vec<_>, Vec<_>) = self.violations.iter().partition(|violation| violation.is_of_harm);
        for violation in own {
            write!(f, "\n\n{}", violation.describe())?;
        }
        let elsewhere = match (&self.impact, &self.witness) {
            (Some(Impact::Harmful(harm)), _) => {
                self.write_harm(f, harm)?;
                "in another execution, "
            }
            (_, Some(witness)) => {
                self.write_witness(f, witness)?;
                "in another execution, "
            }
            _ => "",
        };
        others.into_iter().try_for_each(|violation| write!(f, "\n\n{elsewhere}{}", violation.describe()))
    }
}

/// The frames of a backtrace between the panic and the runtime.
fn frames_of_the_model(backtrace: &str) -> String {
    let lines: Vec<&str> = backtrace.lines().collect();
    let is_frame = |line: &str| !line.trim_start().starts_with("at ");
    let first = lines.iter().rposition(|line| line.contains("core::panicking::") || line.contains("begin_panic"));
    let from = first.map_or(0, |at| at + 1 + lines[at + 1..].iter().take_while(|line| !is_frame(line)).count());
    let to = lines.iter().position(|line| line.contains("weakspot::rt::system")).unwrap_or(lines.len());
    lines[from.min(to)..to].join("\n")
}

pub(crate) fn bound_text(bound: Bound) -> String {
    match bound {
        Bound::Executions => "up to the limit on executions".to_owned(),
        Bound::Time => "until the time was over".to_owned(),
        Bound::Memory => "until it took too much memory".to_owned(),
        Bound::Preemptions(1) => "with up to 1 preemption".to_owned(),
        Bound::Preemptions(most) => format!("with up to {most} preemptions"),
        Bound::Random => "in random schedules".to_owned(),
        Bound::Loops => "except in rounds of loops that were left out".to_owned(),
        Bound::NoEnd => "but no execution ran to its end".to_owned(),
        Bound::Schedule => "in the one schedule that was run".to_owned(),
    }
}

/// From here on an exploration is slow.
const SLOW: Duration = Duration::from_secs(2);

/// What makes a slow exploration faster, if weakspot was built with this `opt-level`.
fn advice_on_speed(opt_level: &str, elapsed: Duration) -> &'static str {
    if opt_level != "0" || elapsed < SLOW {
        return "";
    }
    "\n(weakspot was built without optimisation; with it, it is about ten times as fast: \
     `[profile.dev.package.\"*\"]` with `opt-level = 1` in Cargo.toml, or `cargo test --release`)"
}

/// A failure of an execution.
fn describe(failure: &Failure, execution: Option<&Timeline>) -> String {
    let place = failure.place.as_ref();
    match (&failure.kind, failure.thread) {
        (FailureKind::Panic { .. }, Some(thread)) => {
            let place = place.map(|place| format!("\n{}", source::excerpt(place, "here").trim_end()));
            let name = execution.and_then(|execution| execution.given_name(thread));
            let name = name.map_or_else(|| format!("thread {thread}"), str::to_owned);
            format!("{name} panicked: {}{}", failure.message, place.unwrap_or_default())
        }
        (FailureKind::Race { first, second }, _) => {
            let kind = |writes| if writes { "writes" } else { "reads" };
            let side = |access: &crate::failure::RacingAccess| {
                let here = format!("{} it here", kind(access.writes));
                let does = if access.makes { "makes it before this" } else { &here };
                source::excerpt(&access.place, &format!("thread {} {does}", access.thread))
            };
            let what = if first.thread == second.thread {
                "two accesses of one thread overlap: the first is not over when the second begins"
            } else {
                "data race: nothing orders these two accesses to the same memory"
            };
            format!("{what}\n{}{}", side(first), side(second).trim_end())
        }
        (FailureKind::UsedAfterFree(freeing), Some(user)) => {
            let side = |place: Option<&SourcePlace>, label: String| {
                place.map(|place| source::excerpt(place, &label)).unwrap_or_default()
            };
            let freed = side(freeing.after.as_ref(), format!("thread {} frees it after this", freeing.thread));
            let used = side(place, format!("thread {user} uses it here"));
            format!("{}\n{freed}{}", failure.message, used.trim_end())
        }
        _ => {
            let place = place.map(|place| format!("\n{}", source::excerpt(place, "here").trim_end()));
            format!("{}{}", failure.message, place.unwrap_or_default())
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.headline())?;
        if let Some(failure) = &self.failure {
            self.write_failure(f, failure)?;
        }
        if let Some(timeline) = self.timeline.as_ref().filter(|timeline| !timeline.is_empty()) {
            write!(f, "\n\n{timeline}")?;
        }
        if let Some(schedule) = self.schedule.as_ref().filter(|_| !self.is_no_schedule()) {
            write!(f, "\n\n{}", self.line(schedule, self.timeline.as_ref()))?;
        }
        self.write_violations(f)?;
        words::write(f, &self.suggestions, self.fails_on_unsafe)?;
        if let Some(help) = &self.help {
            write!(f, "\n\nhelp: {help}")?;
        }
        for note in &self.notes {
            write!(f, "\n\nnote: {note}")?;
        }
        for LoopLeftOut { place, why } in &self.left_out {
            write!(f, "\n\nnote: the loop at {place} {why}")?;
        }
        write!(f, "\n\n{}", self.extent())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::advice_on_speed;

    #[test]
    fn only_a_slow_exploration_without_optimisation_gets_advice() {
        let advice = advice_on_speed("0", Duration::from_secs(3));
        assert!(advice.contains("opt-level = 1"), "{advice}");
        assert_eq!(advice_on_speed("1", Duration::from_secs(3)), "");
        assert_eq!(advice_on_speed("0", Duration::from_millis(3)), "");
    }
}
