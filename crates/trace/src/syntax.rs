//! Starts and claims as people write them. Traces and commands write them with `Display`.

use std::collections::BTreeMap;

use catraca_core::{Claim, NodeId, ResourceId, Start};

/// Why a text is no claim.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    /// Not a list of resources.
    #[error("'{0}' is no claim: list resources as in 0,1")]
    Form(String),
    /// A resource listed more than once.
    #[error("'{0}' claims a resource twice; name it once")]
    Twice(String),
}

/// Why a text is no start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// Not one of the forms.
    #[error(
        "'{0}' is no start: say idle, inside:NODE or token:NODE, as in inside:0, or name claims as in inside:0=0,1|2=2"
    )]
    Form(String),
    /// A node that is named twice.
    #[error("'{0}' has a node inside twice; name it once, with all that it holds")]
    Twice(String),
    /// A claim that is none.
    #[error(transparent)]
    Claim(#[from] ClaimError),
}

/// Reads resources with commas between them.
pub fn parse_claim(text: &str) -> Result<Claim, ClaimError> {
    let resource = |word: &str| word.trim().parse().map(ResourceId);
    let resources: Result<Vec<ResourceId>, _> = text.split(',').map(resource).collect();
    let resources = resources.map_err(|_| ClaimError::Form(text.to_string()))?;
    let listed = resources.len();
    let claim = Claim::of(resources);
    if claim.resources().len() < listed {
        return Err(ClaimError::Twice(text.to_string()));
    }
    Ok(claim)
}

/// Reads `idle`, `token:2`, or who is inside: `inside:1`, or `inside:0=0,1|2=2` with what each holds.
/// The token is at the first of them, unless it is said, as in `inside:0=0|2=2 token:1`.
pub fn parse_start(text: &str) -> Result<Start, StartError> {
    let form = || StartError::Form(text.to_string());
    let node = |word: &str| word.trim().parse().map(NodeId).map_err(|_| form());
    if text == "idle" {
        return Ok(Start::idle());
    }
    let (mut inside, mut token) = (BTreeMap::new(), None);
    let mut first = None;
    for part in text.split_whitespace() {
        match part.split_once(':').ok_or_else(form)? {
            ("token", at) if token.is_none() => token = Some(node(at)?),
            ("inside", holders) if first.is_none() => {
                for holder in holders.split('|') {
                    let (at, claim) = match holder.split_once('=') {
                        Some((at, claim)) => (node(at)?, parse_claim(claim)?),
                        None => (node(holder)?, Claim::single()),
                    };
                    first.get_or_insert(at);
                    if inside.insert(at, claim).is_some() {
                        return Err(StartError::Twice(text.to_string()));
                    }
                }
            }
            _ => return Err(form()),
        }
    }
    let start = Start::token_at(token.or(first).ok_or_else(form)?);
    Ok(inside.into_iter().fold(start, |start, (node, claim)| start.and_inside(node, claim)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_reads_back_as_it_is_written_and_what_is_none_is_refused() {
        assert_eq!(parse_claim("0,3").unwrap().to_string(), "0,3");
        assert_eq!(parse_claim("0,0"), Err(ClaimError::Twice("0,0".into())));
        for text in ["", "0,", "x", "-1"] {
            assert_eq!(parse_claim(text), Err(ClaimError::Form(text.into())));
        }
    }

    #[test]
    fn a_start_reads_back_as_it_is_written() {
        let texts = ["idle", "token:2", "inside:1", "inside:0=0,1|2=2", "inside:0|2=2 token:1"];
        for text in texts {
            assert_eq!(parse_start(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn the_token_is_at_the_first_that_is_named_unless_it_is_said() {
        let start = parse_start("inside:2=2|0=0,1").unwrap();
        assert_eq!(start.token(), NodeId(2));
        assert_eq!(start.claim_of(NodeId(0)), Some(&Claim::of([0, 1].map(ResourceId))));
        let elsewhere = parse_start("inside:2=2|0=0 token:1").unwrap();
        assert_eq!(elsewhere.token(), NodeId(1));
    }

    #[test]
    fn what_is_no_start_is_refused() {
        let texts = ["", "asleep", "inside:", "inside:x", "token:1 token:2", "inside:0 inside:1"];
        for text in texts {
            assert_eq!(parse_start(text), Err(StartError::Form(text.into())));
        }
        assert!(matches!(parse_start("inside:0=0|0=1"), Err(StartError::Twice(_))));
        assert!(matches!(parse_start("inside:0=1,1"), Err(StartError::Claim(_))));
    }
}
