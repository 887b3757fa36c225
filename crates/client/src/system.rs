//! What the system says, in words for people.

use std::io;

/// What the system says, without its number.
pub fn plain(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return "it was closed".to_string();
    }
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_lowercase(),
        None => text,
    }
}
