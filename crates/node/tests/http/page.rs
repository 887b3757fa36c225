//! The page to try the interface.

use crate::alone;
use crate::client::ask;

#[tokio::test]
async fn the_page_comes_in_three_files_and_nothing_of_others_runs_in_it() {
    let (_node, at) = alone().await;
    let page = ask(at, "GET", "/try", None).await.with(200);
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
    let is_handler = |word: &str| word.starts_with("on") && word.contains('=');
    let is_inline = page.body.contains("<style") || page.body.split_whitespace().any(is_handler);
    assert!(!is_inline && page.body.matches("<script").count() == 1, "nothing inline");
    for file in ["page.js", "page.css"] {
        assert!(page.body.contains(&format!("\"{file}\"")), "{file}");
        assert!(!ask(at, "GET", &format!("/{file}"), None).await.with(200).body.is_empty());
    }
    assert!(
        !page.body.contains("http://") && !page.body.contains("https://"),
        "of this node alone"
    );
}
