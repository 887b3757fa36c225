//! How long the header of a request may be.

use axum::extract::Request;

use super::problem::{Kind, Problem};

/// The longest header, in bytes, with the request line.
pub(super) const LONGEST_HEADER: usize = 16 << 10;
/// The most lines of a header.
const MOST_LINES: usize = 64;

/// Whether the header of a request is as short as it has to be.
pub(super) fn check<B>(request: &Request<B>) -> Result<(), Problem> {
    let headers = request.headers();
    let detail = if headers.len() > MOST_LINES {
        format!("a header has at most {MOST_LINES} lines here")
    } else if length(request) > LONGEST_HEADER {
        format!("an address and a header have at most {LONGEST_HEADER} bytes together here")
    } else {
        return Ok(());
    };
    Err(Problem::new(Kind::LongHeader, "long-header", detail))
}

/// How many bytes it has, as it is usually written.
fn length<B>(request: &Request<B>) -> usize {
    let line = request.method().as_str().len() + written(request.uri()) + "  HTTP/1.1\r\n".len();
    let lines = request
        .headers()
        .iter()
        .map(|(name, value)| name.as_str().len() + ": ".len() + value.len() + "\r\n".len());
    line + lines.sum::<usize>() + "\r\n".len()
}

/// How many bytes an address has.
fn written(uri: &axum::http::Uri) -> usize {
    let authority = uri.authority().map_or(0, |authority| authority.as_str().len());
    authority + uri.path_and_query().map_or(0, |path| path.as_str().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(path: &str, lines: &[(&str, &str)]) -> Result<(), Kind> {
        let mut request = Request::builder().uri(path);
        for (name, value) in lines {
            request = request.header(*name, *value);
        }
        check(&request.body(()).unwrap()).map_err(|problem| problem.kind())
    }

    #[test]
    fn an_address_and_a_header_have_a_longest_form() {
        // "GET / HTTP/1.1", "a: " and the line between header and body.
        let rest = LONGEST_HEADER - 16 - 5 - 2;
        assert_eq!(checked("/", &[("a", &"x".repeat(rest))]), Ok(()));
        assert_eq!(checked("/", &[("a", &"x".repeat(rest + 1))]), Err(Kind::LongHeader));
        let path = format!("/{}", "x".repeat(LONGEST_HEADER));
        assert_eq!(checked(&path, &[]), Err(Kind::LongHeader));
        assert_eq!(checked("/", &[("a", "b"); MOST_LINES]), Ok(()));
        assert_eq!(checked("/", &[("a", "b"); MOST_LINES + 1]), Err(Kind::LongHeader));
    }
}
