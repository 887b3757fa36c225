//! The browser that the tests of pages use.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use support::Folder;
use support::browser::Browser;

const PAGE: &str = "<!doctype html><title>Page</title><body><script>
    document.addEventListener('keydown', event => document.title += event.key);
    console.warn('seen');
</script>";

#[test]
fn a_browser_types_looks_and_tells_what_the_console_says() {
    let folder = Folder::new();
    folder.write("page.html", PAGE);
    let browser = Browser::start();
    browser.resize(400, 700);
    browser.dark(true);
    browser.open(&folder.path("page.html"));
    browser.press("ab");
    browser.wait_for("both keys are seen", "return document.title === 'Pageab'");
    assert_eq!(browser.run_script("return innerWidth"), 400);
    let is_dark = "return matchMedia('(prefers-color-scheme: dark)').matches";
    assert_eq!(browser.run_script(is_dark), true);
    let said = browser.console_messages();
    assert!(said.len() == 1 && said[0].contains("seen"), "{said:?}");
    browser.screenshot(&folder.path("page.png"));
    assert!(std::fs::read(folder.path("page.png")).unwrap().starts_with(b"\x89PNG"));
}
