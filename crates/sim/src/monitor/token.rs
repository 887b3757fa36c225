//! Exactly one token, counted over nodes and channels.
//!
//! Reference: S2, section 8.5 (lost and duplicated tokens). A crash or a partition may take the
//! token away; then there may be none, but never two.

use catraca_core::property;

use super::Broken;

/// Counts tokens.
#[derive(Debug)]
pub(crate) struct OneToken {
    tokens: i64,
    may_be_lost: bool,
}

impl OneToken {
    pub(crate) fn new() -> Self {
        OneToken { tokens: 0, may_be_lost: false }
    }

    /// `change` more tokens than before at nodes and in messages.
    #[inline]
    pub(crate) fn change(&mut self, change: i64) {
        self.tokens += change;
    }

    /// A token is lost, at a node that crashed or in a message that was lost.
    pub(crate) fn lose(&mut self) {
        self.tokens -= 1;
        self.may_be_lost = true;
    }

    /// Counts, between two steps.
    #[inline]
    pub(crate) fn check(&self) -> Result<(), Broken> {
        if self.tokens == 1 || (self.tokens == 0 && self.may_be_lost) {
            return Ok(());
        }
        let what = format!("there are {} tokens", self.tokens);
        Err(Broken { invariant: property::ONE_TOKEN, what })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_token_is_only_right_after_a_loss_and_two_never_are() {
        let mut token = OneToken::new();
        assert!(token.check().is_err());
        token.change(1);
        assert_eq!(token.check(), Ok(()));
        token.lose();
        assert_eq!(token.check(), Ok(()));
        token.change(2);
        assert!(token.check().is_err());
    }
}
