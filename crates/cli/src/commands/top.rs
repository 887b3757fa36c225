//! `catraca top`: a live view of a group.

mod asking;
mod rows;
mod screen;
mod terminal;
#[cfg(test)]
mod testing;
mod view;

use std::ffi::OsStr;
use std::io::{self, IsTerminal};
use std::time::Duration;

use catraca_client::Nodes;
use nix::sys::signal::Signal;
use ratatui::crossterm::event::{Event, KeyEventKind};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval};

use self::asking::{Answer, force, look, sample};
use self::screen::Theme;
use self::terminal::Terminal;
use self::view::{Effect, View};
use crate::Outcome;
use crate::failure::Failure;
use crate::nodes::NodeArguments;
use crate::output::reason;
use crate::service::{block_on, ends_with};
use crate::signals::Signals;

/// Shows members, locks, queues and rates of a group, live in a terminal.
///
/// It looks once a second. A node that goes away is asked again until it is back. Without colours where
/// NO_COLOR is set.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Arguments {
    #[command(flatten)]
    nodes: NodeArguments,
}

const HELP: &str = "\
Keys:
  ?       all keys             q      quit
  Enter   inspect a lock       /      show only some locks
  s       sort                 n      ask the next member
  m v     members, views       p      pause
  F       release by force, after a question

Exit codes:
    0  the user has quit
    2  wrong input, or not at a terminal
  122  a node answers, but stops
  125  no node answers at the beginning
  128 + N  signal N came";

/// How often the screen says how old it is.
const TICK: Duration = Duration::from_millis(500);

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        let term = std::env::var_os("TERM").unwrap_or_default();
        let is_dumb = term.is_empty() || term == OsStr::new("dumb");
        if is_dumb || !io::stdout().is_terminal() || !io::stdin().is_terminal() {
            return Err(Failure::input(
                "top needs a terminal that can move its cursor; 'catraca status' and 'catraca locks' print the same",
            ));
        }
        block_on(self.show())
    }

    async fn show(self) -> Outcome {
        let Nodes { addresses, credentials } = self.nodes.nodes()?;
        let mut view = View::new(addresses);
        // Where nobody answers at all, the shell is a better place to say so than an empty screen.
        let wish = view.wish();
        let result = Ok(sample(&mut None, &credentials, &wish).await?);
        view.on_answer(Answer { wish, result });
        // From here on there is a terminal to be given back.
        let mut signals = Signals::listen().map_err(of_terminal)?;
        let (wishes, wished) = watch::channel(view.wish());
        let (answers, mut answered) = mpsc::channel(1);
        tokio::spawn(look(credentials.clone(), wished, answers));
        let (forced, mut ended) = mpsc::channel(1);
        let theme = Theme::new(std::env::var_os("NO_COLOR").is_none_or(|it| it.is_empty()));
        let mut terminal = Terminal::take().map_err(of_terminal)?;
        view.on_resize(terminal.size().map_err(of_terminal)?.height);
        let mut events = terminal::events();
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut last = Instant::now();
        loop {
            terminal.draw(|frame| screen::draw(&view, theme, frame)).map_err(of_terminal)?;
            tokio::select! {
                signal = signals.next() => match signal {
                    Signal::SIGUSR1 | Signal::SIGUSR2 => {}
                    which => return ends_with(128 + which as u8),
                },
                event = events.recv() => match event {
                    None => return Ok(()),
                    Some(Event::Key(key)) if key.kind != KeyEventKind::Release => {
                        match view.on_key(key) {
                            Some(Effect::Quit) => return Ok(()),
                            Some(Effect::Suspend) => terminal.suspend().map_err(of_terminal)?,
                            Some(Effect::Force(meant)) => {
                                let nodes = Nodes::at(view.wish().nodes);
                                let nodes = nodes.showing(credentials.clone());
                                let forced = forced.clone();
                                tokio::spawn(async move {
                                    // If nobody hears it any more, the view is closed.
                                    forced.send(force(nodes, meant).await).await.ok();
                                });
                            }
                            None => {}
                        }
                    }
                    Some(Event::Resize(_, rows)) => view.on_resize(rows),
                    Some(_) => {}
                },
                Some(answer) = answered.recv() => view.on_answer(answer),
                Some(words) = ended.recv() => view.on_forced(words),
                now = ticks.tick() => {
                    view.on_time(now.saturating_duration_since(last));
                    last = now;
                }
            }
            let wish = view.wish();
            wishes.send_if_modified(|old| {
                let is_new = *old != wish;
                *old = wish;
                is_new
            });
        }
    }
}

fn of_terminal(error: io::Error) -> Failure {
    Failure::System(anyhow::anyhow!("cannot use the terminal: {}", reason(&error)))
}
