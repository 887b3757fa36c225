//! The normal form of a script: what is left of it when everything is unified that means nothing.
//!
//! Comments and white space go, and `;` between statements. Texts are quoted in one way, the names of
//! Redis commands are in capitals, and local names are numbered in the order in which they are declared.
//! Two scripts with the same normal form do the same: names are replaced one for one, and a number is no
//! name that a script could have. Nothing here runs a script, or could.

use std::borrow::Cow;
use std::collections::HashMap;

/// Why a script has no normal form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token<'a> {
    Name(&'a [u8]),
    Text(Vec<u8>),
    Number(&'a [u8]),
    Symbol(&'a [u8]),
}

impl Token<'_> {
    fn is(&self, text: &str) -> bool {
        match self {
            Token::Name(name) => *name == text.as_bytes(),
            Token::Symbol(symbol) => *symbol == text.as_bytes(),
            Token::Text(_) | Token::Number(_) => false,
        }
    }
}

/// The normal form of `script`.
pub(crate) fn normal_form(script: &[u8]) -> Result<Vec<u8>, Unreadable> {
    let mut tokens = tokens(script)?;
    capitalise_commands(&mut tokens);
    let locals = locals(&tokens);
    let mut form = Vec::new();
    let mut braces = 0_usize;
    for (place, token) in tokens.iter().enumerate() {
        let before = place.checked_sub(1).map(|before| &tokens[before]);
        let after = tokens.get(place + 1);
        if token.is("{") {
            braces += 1;
        } else if token.is("}") {
            braces = braces.saturating_sub(1);
        }
        // A statement that begins with a parenthesis would be taken for arguments without it.
        if token.is(";") && braces == 0 && !after.is_some_and(|after| after.is("(")) {
            continue;
        }
        if !form.is_empty() {
            form.push(b' ');
        }
        match token {
            Token::Name(name) => {
                let of_what_is_before = before.is_some_and(|it| it.is(".") || it.is(":"));
                let begins_field = before.is_some_and(|it| it.is("{") || it.is(",") || it.is(";"));
                let is_key = braces > 0 && begins_field && after.is_some_and(|it| it.is("="));
                match locals.get(name).filter(|_| !of_what_is_before && !is_key) {
                    Some(number) => form.extend(format!("%{number}").bytes()),
                    None => form.extend_from_slice(name),
                }
            }
            Token::Text(text) => form.extend(quoted(text)),
            Token::Number(text) | Token::Symbol(text) => form.extend_from_slice(text),
        }
    }
    Ok(form)
}

/// The names of commands do not depend on their case: they are the first arguments of calls.
fn capitalise_commands(tokens: &mut [Token<'_>]) {
    for place in 0..tokens.len() {
        if let Some([redis, dot, call, open, Token::Text(name), ..]) = tokens.get_mut(place..)
            && is_call(redis, dot, call, open)
        {
            name.make_ascii_uppercase();
        }
    }
}

fn is_call(redis: &Token<'_>, dot: &Token<'_>, call: &Token<'_>, open: &Token<'_>) -> bool {
    redis.is("redis") && dot.is(".") && (call.is("call") || call.is("pcall")) && open.is("(")
}

/// The local names, numbered in the order in which they are declared.
fn locals<'a>(tokens: &[Token<'a>]) -> HashMap<&'a [u8], usize> {
    let mut locals = HashMap::new();
    let mut declare = |token: &Token<'a>| {
        if let Token::Name(name) = token {
            let next = locals.len() + 1;
            locals.entry(*name).or_insert(next);
        }
    };
    for (place, token) in tokens.iter().enumerate() {
        let rest = &tokens[place + 1..];
        if token.is("function") {
            // Its own name, if it is a local one, is declared by the word before.
            let open = rest.iter().position(|it| it.is("(")).unwrap_or(rest.len());
            let parameters = rest.get(open + 1..).unwrap_or_default();
            parameters.iter().take_while(|it| !it.is(")")).for_each(&mut declare);
        } else if token.is("local") && rest.first().is_some_and(|it| it.is("function")) {
            rest.iter().skip(1).take(1).for_each(&mut declare);
        } else if token.is("local") || token.is("for") {
            let is_listed = |it: &&Token<'_>| it.is(",") || matches!(it, Token::Name(_));
            // Between two names of a list there is a comma: the next name begins a statement.
            let mut names = rest.iter().take_while(is_listed).peekable();
            while let Some(name) = names.next() {
                declare(name);
                if names.next().is_none_or(|it| !it.is(",")) {
                    break;
                }
            }
        }
    }
    locals
}

fn quoted(text: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'"'];
    for &byte in text {
        match byte {
            b'"' | b'\\' => quoted.extend([b'\\', byte]),
            b' '..=b'~' => quoted.push(byte),
            _ => quoted.extend(format!("\\{byte:03}").bytes()),
        }
    }
    quoted.push(b'"');
    quoted
}

/// Cuts a script into its words.
fn tokens(script: &[u8]) -> Result<Vec<Token<'_>>, Unreadable> {
    let mut tokens = Vec::new();
    let mut rest = script.trim_ascii_start();
    while let Some(&first) = rest.first() {
        let (token, after) = if let Some(comment) = rest.strip_prefix(b"--") {
            (None, after_comment(comment)?)
        } else if first == b'"' || first == b'\'' {
            let (text, after) = text(&rest[1..], first)?;
            (Some(Token::Text(text)), after)
        } else if let Some((text, after)) = long_text(rest)? {
            (Some(Token::Text(text.into_owned())), after)
        } else if first.is_ascii_alphabetic() || first == b'_' {
            let (name, after) = split(rest, |byte| byte.is_ascii_alphanumeric() || byte == b'_');
            (Some(Token::Name(name)), after)
        } else if first.is_ascii_digit() {
            let (number, after) = split(rest, |byte| byte.is_ascii_alphanumeric() || byte == b'.');
            (Some(Token::Number(number)), after)
        } else {
            let (symbol, after) = rest.split_at(symbol_length(rest)?);
            (Some(Token::Symbol(symbol)), after)
        };
        tokens.extend(token);
        rest = after.trim_ascii_start();
    }
    Ok(tokens)
}

fn split(text: &[u8], belongs: impl Fn(u8) -> bool) -> (&[u8], &[u8]) {
    let end = text.iter().position(|&byte| !belongs(byte)).unwrap_or(text.len());
    text.split_at(end)
}

fn symbol_length(text: &[u8]) -> Result<usize, Unreadable> {
    match text {
        [b'.', b'.', b'.', ..] => Ok(3),
        [b'=' | b'~' | b'<' | b'>', b'=', ..] | [b'.', b'.', ..] => Ok(2),
        [first, ..] if b"+-*/%^#<>=(){}[];:,.".contains(first) => Ok(1),
        _ => Err(Unreadable),
    }
}

/// What follows after a comment, whose two dashes are read already.
fn after_comment(comment: &[u8]) -> Result<&[u8], Unreadable> {
    match long_text(comment)? {
        Some((_, after)) => Ok(after),
        None => Ok(split(comment, |byte| byte != b'\n').1),
    }
}

/// A text in long brackets, `[[` or `[=[`, and what follows after it; nothing if none begins here.
#[allow(clippy::type_complexity, reason = "a text and the rest")]
fn long_text(text: &[u8]) -> Result<Option<(Cow<'_, [u8]>, &[u8])>, Unreadable> {
    let Some(inner) = text.strip_prefix(b"[") else { return Ok(None) };
    let (level, inner) = split(inner, |byte| byte == b'=');
    let Some(inner) = inner.strip_prefix(b"[") else { return Ok(None) };
    let end = [&b"]"[..], level, b"]"].concat();
    let found = inner.windows(end.len()).position(|window| window == end).ok_or(Unreadable)?;
    let (content, after) = (&inner[..found], &inner[found + end.len()..]);
    // A line break at the very beginning is not part of it.
    let content = content.strip_prefix(b"\r\n").or(content.strip_prefix(b"\n")).unwrap_or(content);
    Ok(Some((Cow::Borrowed(content), after)))
}

/// A text up to its quotation mark, and what follows after it.
fn text(inner: &[u8], quote: u8) -> Result<(Vec<u8>, &[u8]), Unreadable> {
    let (mut text, mut rest) = (Vec::new(), inner);
    loop {
        rest = match rest {
            [end, after @ ..] if *end == quote => return Ok((text, after)),
            [b'\\', first, ..] if first.is_ascii_digit() => {
                let count = rest[1..].iter().take(3).take_while(|it| it.is_ascii_digit()).count();
                let digits = rest[1..=count].iter();
                let byte = digits.fold(0_u16, |all, digit| 10 * all + u16::from(digit - b'0'));
                text.push(u8::try_from(byte).map_err(|_| Unreadable)?);
                &rest[1 + count..]
            }
            [b'\\', escaped, after @ ..] => {
                text.push(unescaped(*escaped)?);
                after
            }
            [] | [b'\n' | b'\\', ..] => return Err(Unreadable),
            [byte, after @ ..] => {
                text.push(*byte);
                after
            }
        };
    }
}

fn unescaped(byte: u8) -> Result<u8, Unreadable> {
    Ok(match byte {
        b'n' | b'\n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'a' => 7,
        b'b' => 8,
        b'f' => 12,
        b'v' => 11,
        b'\\' | b'"' | b'\'' => byte,
        _ => return Err(Unreadable),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn form(script: &str) -> String {
        String::from_utf8(normal_form(script.as_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn what_means_nothing_makes_no_difference() {
        let plain = form("local a = redis.call('get', KEYS[1]) return a");
        assert_eq!(plain, "local %1 = redis . call ( \"GET\" , KEYS [ 1 ] ) return %1");
        for same in [
            "local token=redis.call(\"GET\",KEYS[1]);\n\treturn token;",
            "-- a comment\nlocal x = redis.call([[get]], KEYS[1]) --[[ another\none ]] return x",
            "local x --[==[ ]] ]==] = redis.call('\\103et', KEYS[1])\r\nreturn x",
        ] {
            assert_eq!(form(same), plain);
        }
    }

    #[test]
    fn what_means_something_makes_a_difference() {
        let all = [
            "local a = redis.call('get', KEYS[1]) return a",
            "local a = redis.call('get', KEYS[2]) return a",
            "local a = redis.pcall('get', KEYS[1]) return a",
            "local a = redis.call('get', 'KEYS') return a",
            "a = redis.call('get', KEYS[1]) return a",
            "local a = redis.call('get', KEYS[1]) return b",
            "local KEYS = redis.call('get', KEYS[1]) return KEYS",
            "local a, b = redis.call('get', KEYS[1]) return b",
            "local a, b = redis.call('get', KEYS[1]) return a",
            "local a = redis.call('get', KEYS[1]) return 'A'",
            "local a = redis.call('get', KEYS[1]) return 'a'",
            "local a = f; (g)()",
            "local a = f (g)()",
        ];
        let forms: std::collections::BTreeSet<String> = all.iter().map(|it| form(it)).collect();
        assert_eq!(forms.len(), all.len());
    }

    #[test]
    fn every_kind_of_local_name_is_numbered_and_fields_are_not() {
        let script = "local function add(a, b) local t = {a = b, add} return t.a + a end \
                      for i, key in ipairs(KEYS) do add(i, key) end return #KEYS";
        let expected = "local function %1 ( %2 , %3 ) local %4 = { a = %3 , %1 } \
                        return %4 . a + %2 end for %5 , %6 in ipairs ( KEYS ) do %1 ( %5 , %6 ) \
                        end return # KEYS";
        assert_eq!(form(script), expected);
    }

    #[test]
    fn a_script_without_an_end_has_no_normal_form() {
        for bad in ["return 'a", "return \"a\n\"", "--[[ x", "return [[x", "return '\\999'", "@"] {
            assert_eq!(normal_form(bad.as_bytes()), Err(Unreadable), "{bad}");
        }
    }

    /// What makes scripts, in any order.
    const PIECES: &[&[u8]] = &[
        b"local ",
        b"a",
        b"'",
        b"[[",
        b"]]",
        b"--",
        b"\n",
        b"\\",
        b"{",
        b"=",
        b",",
        b";",
        b"\xff",
        b"7",
        b"redis.call(",
        b"function",
        b"for",
        b".",
        b"]=]",
        b"[=[",
    ];

    proptest! {
        #[test]
        fn any_bytes_have_a_normal_form_or_none(
            script in proptest::collection::vec(
                proptest::sample::select(PIECES),
                0..40,
            ),
        ) {
            let script = script.concat();
            if let Ok(form) = normal_form(&script) {
                prop_assert!(form.len() <= 8 * script.len() + 8);
            }
        }
    }
}
