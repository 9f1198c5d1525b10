//! A directory to work in and the command to run there.

use std::path::Path;
use std::process::Command;

/// Store buffering: broken by tso, not by sc.
pub const STORE_BUFFERING: &str = "\
shared x, y;
thread a { x = 1; let r = y; }
thread b { y = 1; let r = x; }
final { assert(a.r == 1 || b.r == 1); }
";

/// The same as a litmus test.
pub const SB_LITMUS: &str = "\
X86 SB
{ x=0; y=0; }
 P0          | P1          ;
 MOV [x],$1  | MOV [y],$1  ;
 MOV EAX,[y] | MOV EAX,[x] ;
exists (0:EAX=0 /\\ 1:EAX=0)
";

/// Store buffering with fences: not broken by tso.
pub const SB_FENCED: &str = "\
X86 SB+mfences
{ x=0; y=0; }
 P0          | P1          ;
 MOV [x],$1  | MOV [y],$1  ;
 MFENCE      | MFENCE      ;
 MOV EAX,[y] | MOV EAX,[x] ;
~exists (0:EAX=0 /\\ 1:EAX=0)
";

/// Far too many states to be explored in a test.
pub const ENDLESS: &str = "\
shared a, b, c, d, e, f;
thread p[6] {
    let i = 0;
    while i < 1000 {
        let v = choose(0..=9);
        a = a + v; b = b + i; c = c + a; d = d + b; e = e + c; f = f + d;
        i = i + 1;
    }
}
";

/// The same with executions that are not long, of which there are very many.
pub fn very_many() -> String {
    ENDLESS.replace("1000", "60")
}

/// A directory of files, and `weakspot` run inside it.
pub struct Workspace {
    directory: tempfile::TempDir,
}

/// What a run left behind.
#[derive(Debug)]
pub struct Run {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Run {
    /// Standard output on one line: where it was folded does not matter.
    pub fn unfolded(&self) -> String {
        self.out.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// The object on standard output.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Workspace {
    pub fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    pub fn with(name: &str, text: impl AsRef<[u8]>) -> Self {
        let workspace = Self::new();
        workspace.write(name, text);
        workspace
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap()
    }

    /// The command, with an environment that decides nothing.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weakspot"));
        command.args(arguments).current_dir(self.path());
        for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
            command.env_remove(variable);
        }
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Run {
        finish(&mut self.command(arguments))
    }

    /// Runs with a text on standard input.
    pub fn run_with_input(&self, arguments: &[&str], input: &str) -> Run {
        let mut command = assert_cmd::Command::from_std(self.command(arguments));
        let output = command.write_stdin(input).output().unwrap();
        read(&output)
    }
}

pub fn finish(command: &mut Command) -> Run {
    read(&command.output().unwrap())
}

fn read(output: &std::process::Output) -> Run {
    Run {
        code: output.status.code().expect("the command ended by itself"),
        out: String::from_utf8(output.stdout.clone()).unwrap(),
        err: String::from_utf8(output.stderr.clone()).unwrap(),
    }
}
