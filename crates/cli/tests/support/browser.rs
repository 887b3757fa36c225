//! A real browser: Chromium, driven over WebDriver by its driver. Both are Debian packages, `chromium` and
//! `chromium-driver`.
//!
//! ```ignore
//! let browser = Browser::start();
//! browser.resize(400, 800);
//! browser.dark(true);
//! browser.goto("file:///tmp/run.html");
//! browser.wait_for("the page is there", "return document.title === 'Run'");
//! browser.press(" ");
//! assert_eq!(browser.run_script("return 1 + 1"), 2);
//! assert_eq!(browser.console_messages(), [""; 0]);
//! ```

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::GENEROUS;

/// Keys that have no character, for [`Browser::press`].
pub(crate) mod keys {
    pub(crate) const TAB: &str = "\u{e004}";
    pub(crate) const ENTER: &str = "\u{e007}";
    pub(crate) const ESCAPE: &str = "\u{e00c}";
    pub(crate) const END: &str = "\u{e010}";
    pub(crate) const HOME: &str = "\u{e011}";
    pub(crate) const LEFT: &str = "\u{e012}";
    pub(crate) const RIGHT: &str = "\u{e014}";
}

/// A browser with an empty profile. It ends with this value.
pub(crate) struct Browser {
    driver: Child,
    address: String,
    session: String,
    /// Chromium's folder, which it writes to until it has ended.
    _profile: TempDir,
}

impl Browser {
    /// Starts a browser without a window.
    pub(crate) fn start() -> Self {
        let profile = TempDir::new().unwrap();
        let (driver, port) = driver();
        let mut browser = Browser {
            driver,
            address: format!("127.0.0.1:{port}"),
            session: String::new(),
            _profile: profile,
        };
        let data = format!("--user-data-dir={}", browser._profile.path().display());
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            &data,
        ];
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": { "args": arguments },
            "goog:loggingPrefs": { "browser": "ALL" },
        } } });
        let answer = browser.call("POST", "/session", Some(&wanted));
        browser.session = answer["sessionId"].as_str().unwrap().to_string();
        browser
    }

    /// Opens a page and waits until it is loaded.
    pub(crate) fn goto(&self, url: &str) {
        self.post("url", &json!({ "url": url }));
    }

    /// Opens a file of this machine.
    pub(crate) fn open(&self, file: &Path) {
        self.goto(&format!("file://{}", file.display()));
    }

    /// Runs the body of a function in the page and gives what it returns, or resolves to.
    #[track_caller]
    pub(crate) fn run_script(&self, script: &str) -> Value {
        self.post("execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// Waits until `script` returns true.
    #[track_caller]
    pub(crate) fn wait_for(&self, what: &str, script: &str) {
        let begin = Instant::now();
        while self.run_script(script) != Value::Bool(true) {
            assert!(begin.elapsed() < GENEROUS, "waited in vain until {what}. {}", self.as_read());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// What somebody who looks at the page reads, and what the browser complains of: for whoever wants to know why
    /// a test has failed.
    fn as_read(&self) -> String {
        let words = self.run_script("return document.body.innerText");
        let said = self.console_messages();
        format!(
            "The page says:\n{}\nThe console says: {said:?}",
            words.as_str().unwrap_or_default()
        )
    }

    /// What the console says since this was last asked, with the browser's own complaints.
    pub(crate) fn console_messages(&self) -> Vec<String> {
        let log = self.post("se/log", &json!({ "type": "browser" }));
        let lines = log.as_array().unwrap().iter();
        lines.map(|line| line["message"].as_str().unwrap().to_string()).collect()
    }

    /// Gives the page this size, as if the window had no frame; below 500 px a real window would not go.
    pub(crate) fn resize(&self, width: u32, height: u32) {
        let metrics =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.cdp("Emulation.setDeviceMetricsOverride", &metrics);
    }

    /// Whether the user prefers dark pages.
    pub(crate) fn dark(&self, is_dark: bool) {
        let value = if is_dark { "dark" } else { "light" };
        let features = json!([{ "name": "prefers-color-scheme", "value": value }]);
        self.cdp("Emulation.setEmulatedMedia", &json!({ "features": features }));
    }

    /// Types these characters, or one of [`keys`], one after the other.
    pub(crate) fn press(&self, keys: &str) {
        let strokes = keys.chars().flat_map(|key| {
            let stroke = |kind: &str| json!({ "type": kind, "value": key.to_string() });
            [stroke("keyDown"), stroke("keyUp")]
        });
        let strokes: Vec<Value> = strokes.collect();
        let keyboard = json!({ "type": "key", "id": "keyboard", "actions": strokes });
        self.post("actions", &json!({ "actions": [keyboard] }));
    }

    /// Types a text into the field that the selector finds, in the place of what is in it. What lies above it may
    /// come or go while it is clicked on, so it is looked whether the text has come there.
    #[track_caller]
    pub(crate) fn fill(&self, selector: &str, text: &str) {
        let begin = Instant::now();
        let field = format!("document.querySelector({})", json!(selector));
        loop {
            self.click(selector);
            self.run_script(&format!("{field}.value = ''"));
            self.press(text);
            let value = self.run_script(&format!("return {field}?.value ?? null"));
            if value == text {
                return;
            }
            assert!(begin.elapsed() < GENEROUS, "{selector} has {value}. {}", self.as_read());
        }
    }

    /// Clicks on the first element that the selector finds.
    #[track_caller]
    pub(crate) fn click(&self, selector: &str) {
        let found = self.post("element", &json!({ "using": "css selector", "value": selector }));
        let element = found.as_object().unwrap().values().next().unwrap().as_str().unwrap();
        self.post(&format!("element/{element}/click"), &json!({}));
    }

    /// Writes what the page shows to a PNG file.
    pub(crate) fn screenshot(&self, path: &Path) {
        let answer = self.call("GET", &format!("/session/{}/screenshot", self.session), None);
        let picture = base64::engine::general_purpose::STANDARD.decode(answer.as_str().unwrap());
        std::fs::write(path, picture.unwrap()).unwrap();
    }

    /// A command of the DevTools protocol.
    fn cdp(&self, command: &str, parameters: &Value) -> Value {
        self.post("goog/cdp/execute", &json!({ "cmd": command, "params": parameters }))
    }

    #[track_caller]
    fn post(&self, command: &str, body: &Value) -> Value {
        self.call("POST", &format!("/session/{}/{command}", self.session), Some(body))
    }

    #[track_caller]
    fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let answer = exchange(&self.address, method, path, body).unwrap();
        let value = answer["value"].clone();
        assert!(value.get("error").is_none(), "{method} {path}: {value}");
        value
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The driver ends Chromium when its session ends; killed first it would leave it behind.
        if !self.session.is_empty() {
            let path = format!("/session/{}", self.session);
            exchange(&self.address, "DELETE", &path, None).ok();
        }
        self.driver.kill().ok();
        self.driver.wait().ok();
    }
}

/// A driver, and its port. It chooses the port itself, and ends if somebody else has taken that meanwhile
/// for one of the two versions of IP.
fn driver() -> (Child, u16) {
    const TRIES: usize = 10;
    for _ in 0..TRIES {
        let mut command = Command::new("chromedriver");
        command.arg("--port=0").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut driver =
            command.spawn().expect("chromedriver cannot be started; is chromium-driver installed?");
        if let Some(port) = port_of(&mut driver) {
            return (driver, port);
        }
        driver.wait().ok();
    }
    panic!("chromedriver ended at once, {TRIES} times");
}

/// The driver takes a free port and says which; nothing if it has ended. Whatever else it says is thrown
/// away.
fn port_of(driver: &mut Child) -> Option<u16> {
    let mut said = BufReader::new(driver.stdout.take().unwrap());
    let mut line = String::new();
    let port = loop {
        line.clear();
        if said.read_line(&mut line).unwrap() == 0 {
            return None;
        }
        let port = line.trim().trim_end_matches('.').rsplit_once(" on port ");
        // First it says what it was told, which is 0.
        if let Some(port) = port.and_then(|(_, port)| port.parse().ok()).filter(|&port| port > 0) {
            break port;
        }
    };
    std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
    Some(port)
}

/// One request and its answer.
fn exchange(
    address: &str,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> std::io::Result<Value> {
    let body = body.map(Value::to_string).unwrap_or_default();
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(GENEROUS))?;
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        answer.read_line(&mut line)?;
        match line.trim().to_lowercase().split_once(':') {
            Some(("content-length", value)) => length = value.trim().parse().unwrap(),
            None if line.trim().is_empty() => break,
            _ => {}
        }
    }
    let mut content = vec![0; length];
    answer.read_exact(&mut content)?;
    Ok(serde_json::from_slice(&content)?)
}
