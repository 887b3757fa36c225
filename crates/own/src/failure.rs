//! Why a command fails, and with which exit code. They are those of `catraca`.

use std::io;
use std::process::ExitCode;

use catraca_draw::DrawError;
use catraca_sim::{KEYS, ScenarioError};

/// The ways to fail.
#[derive(Debug, PartialEq, Eq)]
pub enum Failure {
    /// The system failed us. Code 1.
    System(String),
    /// The input is wrong. What was wrong and what to do. Code 2.
    Input(String),
    /// A violation was found. It has been printed already. Code 3.
    Violation,
    /// No verdict. Why has been printed already. Code 4.
    GaveUp,
    /// Nobody reads what is printed any more. Code 1, and nothing to say.
    Unread,
}

impl Failure {
    /// Says why on standard error and returns the code.
    #[allow(clippy::print_stderr, reason = "this is where the program speaks")]
    pub(crate) fn report(self, name: &str) -> ExitCode {
        ExitCode::from(match self {
            Failure::System(what) => {
                eprintln!("{name}: {what}");
                1
            }
            Failure::Input(what) => {
                eprintln!("{name}: {what}");
                2
            }
            Failure::Violation => 3,
            Failure::GaveUp => 4,
            Failure::Unread => 1,
        })
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::Unread,
            _ => Failure::System(format!("cannot write to standard output: {error}")),
        }
    }
}

/// Everything that is said of a run is said by flags here.
impl From<ScenarioError> for Failure {
    fn from(error: ScenarioError) -> Self {
        match error {
            ScenarioError::Value { key, what } => {
                let flag = KEYS.iter().find(|known| known.path == key).map_or(key, |key| key.flag);
                Failure::Input(format!("--{flag}: {what}"))
            }
            other => Failure::Input(other.to_string()),
        }
    }
}

impl From<DrawError> for Failure {
    fn from(error: DrawError) -> Self {
        let remedy = match error {
            DrawError::TooManySteps { .. } => "; choose a part with --from and --to, or --rounds 1",
            _ => "",
        };
        Failure::Input(format!("the run {error}{remedy}"))
    }
}
