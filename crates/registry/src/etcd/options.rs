//! Where etcd is and who asks: from a URL, without looking at the world.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// How long a call takes at most. Members beat every few seconds, so to wait longer is of no use.
pub const TIMEOUT: Duration = Duration::from_secs(2);
/// The password is looked for here if the URL names a user and says nothing of a password.
pub const PASSWORD_VARIABLE: &str = "CATRACA_ETCD_PASSWORD";
/// The longest name of a group, in bytes.
const LONGEST_GROUP: usize = 128;
/// Where etcd listens if the URL does not say.
const PORT: u16 = 2379;

/// Where etcd is, who asks, and for which group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The members of etcd, each as host and port. The next is asked if one does not answer.
    pub endpoints: Vec<(String, u16)>,
    /// The group. Groups do not see each other.
    pub group: String,
    /// As whom to ask, if etcd knows users.
    pub user: Option<User>,
    /// How to know etcd, and be known to it, if connections are encrypted.
    pub tls: Option<Tls>,
    /// How long a call takes at most.
    pub timeout: Duration,
}

/// A user of etcd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Its name.
    pub name: String,
    /// How it proves that.
    pub password: Password,
}

/// Where a password is. It is looked up whenever it is needed, so it can be changed meanwhile.
#[derive(Clone, PartialEq, Eq)]
pub enum Password {
    /// Here.
    Given(String),
    /// In this environment variable.
    Variable(String),
    /// In this file, whose last line break does not count.
    File(PathBuf),
}

/// A log must not show a password.
impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Password::Given(_) => f.write_str("Given(..)"),
            Password::Variable(name) => f.debug_tuple("Variable").field(name).finish(),
            Password::File(path) => f.debug_tuple("File").field(path).finish(),
        }
    }
}

/// Certificates, as files in PEM format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// Who vouches for etcd.
    pub ca: PathBuf,
    /// Our own certificate and its key, if etcd asks for one.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// What is wrong with a URL of etcd.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadUrl {
    /// It begins with something else.
    #[error("the URL of etcd begins with 'etcd://', or with 'etcds://' for TLS")]
    Scheme,
    /// It names no host, or one of them is empty.
    #[error("the URL of etcd names no host where one is expected: write 'etcd://host:2379'")]
    NoHost,
    /// What follows a host is not a port.
    #[error("'{0}' in the URL of etcd is not a port")]
    Port(String),
    /// What follows the hosts is neither the end nor '?'.
    #[error("the URL of etcd has a path: write options such as 'ca' after '?'")]
    Path,
    /// An option that does not exist.
    #[error(
        "the URL of etcd has an unknown option '{0}': there are 'ca', 'cert', 'key', \
         'password-file' and 'password-env'"
    )]
    Unknown(String),
    /// An option that is there more than once, or has no value.
    #[error("the option '{0}' in the URL of etcd needs one value")]
    Value(String),
    /// Certificates without TLS.
    #[error("the option '{0}' is for TLS: begin the URL of etcd with 'etcds://'")]
    NeedsTls(&'static str),
    /// TLS without anybody who vouches for etcd.
    #[error(
        "the URL of etcd asks for TLS: add '?ca=FILE' with the certificate of etcd's authority"
    )]
    NeedsCa,
    /// A certificate without its key, or a key without certificate.
    #[error("the URL of etcd needs both 'cert=FILE' and 'key=FILE', or neither")]
    HalfIdentity,
    /// More than one password.
    #[error("the URL of etcd has more than one password")]
    TwoPasswords,
    /// A password without a user.
    #[error("the URL of etcd has a password and no user: write 'etcd://user@host'")]
    NoUser,
    /// A percent sign that is not followed by two hexadecimal digits, or bytes that are not UTF-8.
    #[error("'{0}' in the URL of etcd is not well encoded: a percent sign is written '%25'")]
    Encoding(String),
    /// The name of a group that cannot be used.
    #[error(
        "a group's name has 1 to {LONGEST_GROUP} bytes, and neither '/' nor control characters"
    )]
    Group,
}

impl Options {
    /// Reads `etcd://[user[:password]@]host[:port],host2[:port]..[?option=value&..]`; with `etcds` the
    /// connections are encrypted. Options are `ca`, `cert` and `key` for certificates, and
    /// `password-file` and `password-env` for a password that is not in the URL itself.
    pub fn parse(url: &str, group: &str) -> Result<Self, BadUrl> {
        let (is_encrypted, rest) = match (url.strip_prefix("etcd://"), url.strip_prefix("etcds://"))
        {
            (Some(rest), _) => (false, rest),
            (_, Some(rest)) => (true, rest),
            _ => return Err(BadUrl::Scheme),
        };
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (user, hosts) = match place.rsplit_once('@') {
            Some((user, hosts)) => (Some(user), hosts),
            None => (None, place),
        };
        let hosts = hosts.strip_suffix('/').unwrap_or(hosts);
        if hosts.contains('/') {
            return Err(BadUrl::Path);
        }
        let mut query = Query::parse(query)?;
        let options = Options {
            endpoints: hosts.split(',').map(endpoint).collect::<Result<_, _>>()?,
            group: group.to_string(),
            user: query.user(user)?,
            tls: query.tls(is_encrypted)?,
            timeout: TIMEOUT,
        };
        options.check()?;
        Ok(options)
    }

    /// Checks what is not right by its type.
    pub(super) fn check(&self) -> Result<(), BadUrl> {
        let is_bad = |c: char| c == '/' || c.is_control();
        if self.group.is_empty() || self.group.len() > LONGEST_GROUP || self.group.contains(is_bad)
        {
            return Err(BadUrl::Group);
        }
        if self.endpoints.is_empty() {
            return Err(BadUrl::NoHost);
        }
        Ok(())
    }
}

/// What follows the question mark.
#[derive(Default)]
struct Query {
    ca: Option<String>,
    cert: Option<String>,
    key: Option<String>,
    password_file: Option<String>,
    password_env: Option<String>,
}

impl Query {
    fn parse(text: &str) -> Result<Self, BadUrl> {
        let mut query = Query::default();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let field = match name {
                "ca" => &mut query.ca,
                "cert" => &mut query.cert,
                "key" => &mut query.key,
                "password-file" => &mut query.password_file,
                "password-env" => &mut query.password_env,
                _ => return Err(BadUrl::Unknown(name.to_string())),
            };
            if value.is_empty() || field.is_some() {
                return Err(BadUrl::Value(name.to_string()));
            }
            *field = Some(decode(value)?);
        }
        Ok(query)
    }

    fn tls(&mut self, is_encrypted: bool) -> Result<Option<Tls>, BadUrl> {
        if !is_encrypted {
            let given = [("ca", &self.ca), ("cert", &self.cert), ("key", &self.key)];
            return match given.iter().find(|(_, value)| value.is_some()) {
                Some((name, _)) => Err(BadUrl::NeedsTls(name)),
                None => Ok(None),
            };
        }
        let ca = self.ca.take().ok_or(BadUrl::NeedsCa)?.into();
        let identity = match (self.cert.take(), self.key.take()) {
            (Some(cert), Some(key)) => Some((cert.into(), key.into())),
            (None, None) => None,
            _ => return Err(BadUrl::HalfIdentity),
        };
        Ok(Some(Tls { ca, identity }))
    }

    fn user(&mut self, text: Option<&str>) -> Result<Option<User>, BadUrl> {
        let (name, given) = match text.map(|text| text.split_once(':').unwrap_or((text, ""))) {
            Some((name, password)) => (decode(name)?, decode(password)?),
            None => Default::default(),
        };
        let given = Some(given).filter(|given| !given.is_empty()).map(Password::Given);
        let file = self.password_file.take().map(|path| Password::File(path.into()));
        let variable = self.password_env.take().map(Password::Variable);
        let mut passwords = [given, file, variable].into_iter().flatten();
        let password = passwords.next();
        if passwords.next().is_some() {
            return Err(BadUrl::TwoPasswords);
        }
        match (name.is_empty(), password) {
            (true, None) if text.is_none() => Ok(None),
            (true, _) => Err(BadUrl::NoUser),
            (false, password) => {
                let password =
                    password.unwrap_or(Password::Variable(PASSWORD_VARIABLE.to_string()));
                Ok(Some(User { name, password }))
            }
        }
    }
}

/// A host, with a port or without; an address of version 6 is in brackets.
fn endpoint(text: &str) -> Result<(String, u16), BadUrl> {
    let (host, port) = match text.strip_prefix('[').and_then(|text| text.split_once(']')) {
        Some((host, rest)) => match rest.strip_prefix(':') {
            Some(port) => (host, port),
            None if rest.is_empty() => (host, ""),
            None => return Err(BadUrl::Port(rest.to_string())),
        },
        None => match text.split_once(':') {
            Some((_, "")) => return Err(BadUrl::Port(text.to_string())),
            Some((host, port)) => (host, port),
            None => (text, ""),
        },
    };
    if host.is_empty() {
        return Err(BadUrl::NoHost);
    }
    let port = match port {
        "" => PORT,
        port => port
            .parse()
            .ok()
            .filter(|port| *port != 0)
            .ok_or_else(|| BadUrl::Port(port.to_string()))?,
    };
    Ok((host.to_string(), port))
}

/// The text without percent signs.
fn decode(text: &str) -> Result<String, BadUrl> {
    let wrong = || BadUrl::Encoding(text.to_string());
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let (high, low) = (digit().ok_or_else(wrong)?, digit().ok_or_else(wrong)?);
        bytes.push(u8::try_from(high * 16 + low).map_err(|_| wrong())?);
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<Options, BadUrl> {
        Options::parse(url, "g")
    }

    #[test]
    fn hosts_have_ports_or_the_usual_one() {
        let options = parse("etcd://a:1,b,[::1]:3,[::2]/").unwrap();
        let expected = [("a", 1), ("b", 2379), ("::1", 3), ("::2", 2379)];
        assert_eq!(options.endpoints, expected.map(|(host, port)| (host.to_string(), port)));
        assert_eq!((options.user, options.tls, options.timeout), (None, None, TIMEOUT));
    }

    #[test]
    fn a_password_is_in_the_url_in_a_file_or_in_a_variable() {
        let password = |url| parse(url).unwrap().user.unwrap();
        let user = |password| User { name: "u@x".to_string(), password };
        let given = Password::Given("p:%@".to_string());
        assert_eq!(password("etcd://u%40x:p:%25%40@h"), user(given));
        let file = Password::File("/a b".into());
        assert_eq!(password("etcd://u%40x@h?password-file=/a%20b"), user(file));
        let named = Password::Variable("P".to_string());
        assert_eq!(password("etcd://u%40x@h?password-env=P"), user(named));
        let usual = Password::Variable(PASSWORD_VARIABLE.to_string());
        assert_eq!(password("etcd://u%40x@h"), user(usual));
    }

    #[test]
    fn a_password_is_not_shown() {
        let options = parse("etcd://u:secret@h").unwrap();
        assert!(!format!("{options:?}").contains("secret"));
    }

    #[test]
    fn certificates_are_files() {
        let tls = |url| parse(url).unwrap().tls.unwrap();
        assert_eq!(tls("etcds://h?ca=c"), Tls { ca: "c".into(), identity: None });
        let identity = Some(("d".into(), "e".into()));
        assert_eq!(tls("etcds://h?key=e&cert=d&ca=c"), Tls { ca: "c".into(), identity });
    }

    #[test]
    fn whatever_is_wrong_is_told() {
        for (url, expected) in [
            ("http://h", BadUrl::Scheme),
            ("h:2379", BadUrl::Scheme),
            ("etcd://", BadUrl::NoHost),
            ("etcd://a,,b", BadUrl::NoHost),
            ("etcd://:2379", BadUrl::NoHost),
            ("etcd://h:x", BadUrl::Port("x".to_string())),
            ("etcd://h:0", BadUrl::Port("0".to_string())),
            ("etcd://h:70000", BadUrl::Port("70000".to_string())),
            ("etcd://h:", BadUrl::Port("h:".to_string())),
            ("etcd://::1", BadUrl::NoHost),
            ("etcd://[::1]2", BadUrl::Port("2".to_string())),
            ("etcd://h/group", BadUrl::Path),
            ("etcds://h", BadUrl::NeedsCa),
            ("etcd://h?ca=c", BadUrl::NeedsTls("ca")),
            ("etcd://h?key=c", BadUrl::NeedsTls("key")),
            ("etcds://h?ca=c&cert=d", BadUrl::HalfIdentity),
            ("etcds://h?ca=c&ca=d", BadUrl::Value("ca".to_string())),
            ("etcds://h?ca", BadUrl::Value("ca".to_string())),
            ("etcd://h?tls=1", BadUrl::Unknown("tls".to_string())),
            ("etcd://u:p@h?password-env=P", BadUrl::TwoPasswords),
            ("etcd://u@h?password-env=P&password-file=f", BadUrl::TwoPasswords),
            ("etcd://h?password-env=P", BadUrl::NoUser),
            ("etcd://@h", BadUrl::NoUser),
            ("etcd://:p@h", BadUrl::NoUser),
            ("etcd://u:100%@h", BadUrl::Encoding("100%".to_string())),
            ("etcd://u:%ff@h", BadUrl::Encoding("%ff".to_string())),
        ] {
            assert_eq!(parse(url), Err(expected), "{url}");
        }
        for group in ["", "a/b", "a\0", &"g".repeat(LONGEST_GROUP + 1)] {
            assert_eq!(Options::parse("etcd://h", group), Err(BadUrl::Group));
        }
    }
}
