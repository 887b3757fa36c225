//! Times in files: decimal numbers, read without rounding, counted in instants from an origin.

use alloc::string::String;
use core::str::FromStr;

use super::{LineFault, shortened};

/// Six decimals are kept; more are dropped.
const DECIMALS: u32 = 6;
const ONE: u64 = 10u64.pow(DECIMALS);

/// How long an instant is, in the unit of time of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolution(pub(super) u64);

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

/// The time at which instant 0 begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// That of the first contact.
    First,
    /// This time of the file.
    At(Moment),
}

/// Why a text is no origin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is no beginning of time: say 'first' for the first contact, or a time of the file such as 0"
)]
pub struct OriginError(String);

impl FromStr for Origin {
    type Err = OriginError;

    fn from_str(text: &str) -> Result<Self, OriginError> {
        match text {
            "first" => Ok(Origin::First),
            time => fixed(time)
                .map(|time| Origin::At(Moment(time)))
                .map_err(|_| OriginError(shortened(text))),
        }
    }
}

/// A time of a file, in its unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub(super) u64);

impl Moment {
    /// The time that stands in a file as `text`.
    pub(super) fn read(text: &str) -> Result<Self, LineFault> {
        match fixed(text) {
            Ok(time) => Ok(Moment(time)),
            Err(_) if is_negative(text) => Err(LineFault::Negative(shortened(text))),
            Err(Fault::Overflow) => Err(LineFault::TooLarge(shortened(text))),
            Err(Fault::Form) => Err(LineFault::Unreadable(shortened(text), "a time")),
        }
    }

    /// So many whole units.
    pub fn units(units: u64) -> Self {
        Moment(units.saturating_mul(ONE))
    }

    /// In whole units, with what is left in thousandths.
    pub fn units_and_thousandths(self) -> (u64, u64) {
        (self.0 / ONE, self.0 % ONE / 1000)
    }
}

/// When instants are, in the unit of the file that they were read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// When instant 0 begins.
    pub origin: Moment,
    /// How long an instant is.
    pub instant: Resolution,
}

impl Clock {
    /// When `instant` begins; the last time that fits, if it is too far.
    pub fn begins(&self, instant: u64) -> Moment {
        Moment(self.origin.0.saturating_add(self.lasts(instant).0))
    }

    /// How long so many instants take.
    pub fn lasts(&self, instants: u64) -> Moment {
        Moment(instants.saturating_mul(self.instant.0))
    }

    /// The instant that has `moment`, which is not before the origin, in it.
    pub(super) fn instant_of(&self, moment: u64) -> u64 {
        moment.saturating_sub(self.origin.0) / self.instant.0
    }
}

impl Resolution {
    /// How long an instant is.
    pub fn length(self) -> Moment {
        Moment(self.0)
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
