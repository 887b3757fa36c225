//! The address of a repository's locks, and which settings of git are meant for it.

use std::fmt;

/// `http(s)://[USER[:PASSWORD]@]HOST[:PORT]/PATH`, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) is_safe: bool,
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    /// Without the brackets of an IPv6 address.
    pub(super) host: String,
    pub(super) port: u16,
    /// Begins with '/' unless it is empty; no '/' at its end.
    pub(super) path: String,
}

impl Address {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| {
            format!("'{}' is no URL of a server for locks: {why}", without_secrets(text))
        };
        let form = "say https://HOST:PORT/git/TEAM/REPOSITORY";
        let (scheme, rest) = text.split_once("://").ok_or_else(|| wrong(form))?;
        let is_safe = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return Err(wrong(&format!("it has to be http or https; {form}"))),
        };
        if text.contains(['?', '#', ' ', '\\']) || text.chars().any(char::is_control) {
            return Err(wrong(&format!("it has a character that cannot be there; {form}")));
        }
        let (place, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (who, place) = match place.rsplit_once('@') {
            Some((who, place)) => (Some(who), place),
            None => (None, place),
        };
        let (user, password) = match who.map(|who| who.split_once(':').unwrap_or((who, ""))) {
            Some((user, password)) => (decoded(user), decoded(password)),
            None => (String::new(), String::new()),
        };
        let said = |text: String| Some(text).filter(|text| !text.is_empty());
        let (host, port) = host_and_port(place, is_safe).ok_or_else(|| wrong(form))?;
        let path = path.trim_matches('/');
        let path = if path.is_empty() { String::new() } else { format!("/{path}") };
        Ok(Address { is_safe, user: said(user), password: said(password), host, port, path })
    }

    /// What is asked to be connected with, and what a certificate is for.
    pub(super) fn authority(&self) -> String {
        let host = match self.host.contains(':') {
            true => format!("[{}]", self.host),
            false => self.host.clone(),
        };
        match self.port == usual_port(self.is_safe) {
            true => host,
            false => format!("{host}:{}", self.port),
        }
    }

    pub(super) fn scheme(&self) -> &'static str {
        if self.is_safe { "https" } else { "http" }
    }

    /// How well a setting for `pattern`, as in `http.PATTERN.extraHeader`, fits; not at all, or the larger
    /// the better.
    pub(super) fn fits(&self, pattern: &str) -> Option<(usize, bool)> {
        let other = Address::parse(pattern).ok()?;
        let is_host = {
            let (mut own, mut its) = (self.host.split('.'), other.host.split('.'));
            loop {
                match (own.next(), its.next()) {
                    (None, None) => break true,
                    (Some(label), Some(pattern))
                        if pattern == "*" || label.eq_ignore_ascii_case(pattern) => {}
                    _ => break false,
                }
            }
        };
        let is_below = self.path == other.path
            || self.path.strip_prefix(&other.path).is_some_and(|rest| rest.starts_with('/'));
        let is_user = other.user.is_none() || other.user == self.user;
        let fits = self.is_safe == other.is_safe && is_host && self.port == other.port;
        (fits && is_below && is_user).then_some((other.path.len() + 1, other.user.is_some()))
    }
}

/// Without name and password.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme(), self.authority(), self.path)
    }
}

/// A URL as it may be shown: a password stays a secret.
pub(super) fn without_secrets(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_string() };
    let (place, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    match place.rsplit_once('@') {
        Some((who, place)) => {
            let user = who.split(':').next().unwrap_or_default();
            let secret = if who.contains(':') { ":***" } else { "" };
            format!("{scheme}://{user}{secret}@{place}{path}")
        }
        None => url.to_string(),
    }
}

fn usual_port(is_safe: bool) -> u16 {
    if is_safe { 443 } else { 80 }
}

fn host_and_port(place: &str, is_safe: bool) -> Option<(String, u16)> {
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']')?;
            (host, port.strip_prefix(':').or(Some(port).filter(|it| it.is_empty()))?)
        }
        None => place.split_once(':').unwrap_or((place, "")),
    };
    let port = if port.is_empty() { usual_port(is_safe) } else { port.parse().ok()? };
    (!host.is_empty() && !host.contains('@')).then(|| (host.to_string(), port))
}

/// The text of which `%41` stands for 'A'. What is no such code stays.
fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let code = text.get(at + 1..at + 3).and_then(|code| u8::from_str_radix(code, 16).ok());
        match code.filter(|_| bytes[at] == b'%') {
            Some(byte) => {
                plain.push(byte);
                at += 3;
            }
            None => {
                plain.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

/// A text as a part of a query.
pub(super) fn encoded(text: &str) -> String {
    let mut code = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                code.push(char::from(byte));
            }
            _ => code += &format!("%{byte:02X}"),
        }
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_apart_and_shown_without_its_secret() {
        let address = Address::parse("https://ana:p%40ss@Host.example:7880/git/art/game/").unwrap();
        assert_eq!(
            (address.user.as_deref(), address.password.as_deref()),
            (Some("ana"), Some("p@ss"))
        );
        assert_eq!(address.to_string(), "https://Host.example:7880/git/art/game");
        let local = Address::parse("http://[::1]:80/git/a/b").unwrap();
        assert_eq!((local.host.as_str(), local.port), ("::1", 80));
        assert_eq!(local.to_string(), "http://[::1]/git/a/b");
        let bare = Address::parse("http://ana@h/x").unwrap();
        assert_eq!((bare.user.as_deref(), bare.password), (Some("ana"), None));
        for text in [
            "",
            "host/x",
            "ssh://host/x",
            "https://",
            "http://h:x/y",
            "http://h/a b",
            "http://h/?q",
        ] {
            let why = Address::parse(text).unwrap_err();
            assert!(why.contains("https://HOST:PORT/git/TEAM/REPOSITORY"), "{text}: {why}");
        }
        let shown = without_secrets("ftp://ana:secret@h/x");
        assert_eq!(shown, "ftp://ana:***@h/x");
        assert!(!Address::parse("ftp://ana:secret@h/x").unwrap_err().contains("secret"));
    }

    #[test]
    fn settings_are_for_a_host_and_what_is_below_a_path() {
        let address = Address::parse("https://ana@a.example:7880/git/art/game").unwrap();
        let fits = |pattern: &str| address.fits(pattern);
        assert!(fits("https://a.example:7880/git") > fits("https://a.example:7880"));
        assert!(fits("https://ana@a.example:7880/git") > fits("https://a.example:7880/git"));
        assert!(fits("https://*.example:7880/").is_some());
        for pattern in [
            "https://a.example/",
            "http://a.example:7880/",
            "https://a.example:7880/gi",
            "https://bo@a.example:7880/",
            "https://b.example:7880/",
            "nonsense",
        ] {
            assert_eq!(fits(pattern), None, "{pattern}");
        }
    }

    #[test]
    fn queries_carry_every_character() {
        assert_eq!(encoded("a b/ü&=%?-"), "a%20b/%C3%BC%26%3D%25%3F-");
        assert_eq!(decoded("100%25%zz%"), "100%%zz%");
    }
}
