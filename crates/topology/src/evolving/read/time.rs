//! Times in files: decimal numbers, read without rounding, counted in instants.

use alloc::string::String;
use core::str::FromStr;

use super::{LineFault, shortened};

/// Six decimals are kept; more are dropped.
const DECIMALS: u32 = 6;
const ONE: u64 = 10u64.pow(DECIMALS);

/// How long an instant is, in the unit of time of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolution(u64);

impl Default for Resolution {
    /// One unit.
    fn default() -> Self {
        Resolution(ONE)
    }
}

/// Why a text is no length of an instant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no length of an instant: give a number above 0 such as 20 or 0.1")]
pub struct ResolutionError(String);

impl FromStr for Resolution {
    type Err = ResolutionError;

    fn from_str(text: &str) -> Result<Self, ResolutionError> {
        let length = fixed(text).ok().filter(|&length| length > 0);
        length.map(Resolution).ok_or_else(|| ResolutionError(shortened(text)))
    }
}

impl Resolution {
    /// The instant that has the time `text` in it.
    pub(super) fn instant(self, text: &str) -> Result<u64, LineFault> {
        match fixed(text) {
            Ok(time) => Ok(time / self.0),
            Err(_) if is_negative(text) => Err(LineFault::Negative(shortened(text))),
            Err(Fault::Overflow) => Err(LineFault::TooLarge(shortened(text))),
            Err(Fault::Form) => Err(LineFault::Unreadable(shortened(text), "a time")),
        }
    }

    /// Whether an instant begins at the time `text`, which is readable.
    pub(super) fn begins_at(self, text: &str) -> bool {
        fixed(text).is_ok_and(|time| time.is_multiple_of(self.0))
    }
}

/// An instant by its number.
pub(super) fn instant(text: &str) -> Result<u64, LineFault> {
    match text.parse::<u64>() {
        Ok(instant) => Ok(instant),
        Err(_) if is_negative(text) => Err(LineFault::Negative(shortened(text))),
        Err(_) if text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() => {
            Err(LineFault::TooLarge(shortened(text)))
        }
        Err(_) => Err(LineFault::Unreadable(shortened(text), "an instant, a whole number")),
    }
}

fn is_negative(text: &str) -> bool {
    text.strip_prefix('-').is_some_and(|rest| fixed(rest).is_ok())
}

enum Fault {
    Form,
    Overflow,
}

/// A decimal number in millionths. Some tools write every time with an exponent or a sign; these do
/// not name a time to the instant, and are refused.
fn fixed(text: &str) -> Result<u64, Fault> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(part) {
        return Err(Fault::Form);
    }
    let whole: u64 = whole.parse().map_err(|_| Fault::Overflow)?;
    let decimals = part.bytes().chain(core::iter::repeat(b'0')).take(DECIMALS as usize);
    let part = decimals.fold(0, |value, digit| value * 10 + u64::from(digit - b'0'));
    whole.checked_mul(ONE).and_then(|whole| whole.checked_add(part)).ok_or(Fault::Overflow)
}
