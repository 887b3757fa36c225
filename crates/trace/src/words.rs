//! Steps in words, for people.

use std::fmt;

use catraca_core::Input;
use serde_json::Value;

use crate::record::{Event, Outcome, Payload, Step};

impl fmt::Display for Payload {
    /// The kind, and what the message carries: `request 3`, `token {fence:2}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        let content = match &self.body {
            Value::Object(variant) if variant.len() == 1 => variant.values().next(),
            _ => None,
        };
        match content {
            Some(content) => write!(f, " {}", content.to_string().replace('"', "")),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Send { to, message, .. } => write!(f, "sends {message} to {to}"),
            Outcome::Granted(fence) => write!(f, "enters with fence {fence}"),
            Outcome::SetTimer { tag, after } => write!(f, "sets timer {} to {after:?}", tag.0),
            Outcome::CancelTimer(tag) => write!(f, "cancels timer {}", tag.0),
            Outcome::Anomaly(what) => write!(f, "reports an anomaly: {what}"),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {} ", self.node)?;
        match &self.input {
            Input::Start => f.write_str("starts")?,
            Input::Request(claim) if claim.resources().len() > 1 => {
                f.write_str("asks for")?;
                claim.resources().iter().try_for_each(|resource| write!(f, " {resource}"))?;
            }
            Input::Request(_) => f.write_str("asks")?,
            Input::Release => f.write_str("leaves")?,
            Input::Message { from, message } => write!(f, "gets {message} from {from}")?,
            Input::Timer(tag) => write!(f, "finds timer {} run out", tag.0)?,
            Input::Suspect(node) => write!(f, "suspects {node}")?,
            Input::Trust(node) => write!(f, "trusts {node} again")?,
        }
        let mut separator = ": ";
        for outcome in &self.outcomes {
            write!(f, "{separator}{outcome}")?;
            separator = ", ";
        }
        Ok(())
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Step(step) => step.fmt(f),
            Event::Crash { node, .. } => write!(f, "node {node} crashes"),
            Event::Lost { id, .. } => write!(f, "message {} is lost", id.0),
        }
    }
}
