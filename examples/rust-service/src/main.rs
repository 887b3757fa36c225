//! A service that sells the seats of shows. Any number of instances sell the same seats from one folder;
//! each has a node of the lock group within itself.
//!
//! A client sends a line, `book SHOW NAME`, and is told `seat N fence F`, or why not.
#![allow(clippy::print_stdout, reason = "it says where it listens")]

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use catraca_node::{Config, Guard, Node, RegistryPlace};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

const SEATS: usize = 100;
/// No client waits longer for its turn.
const PATIENCE: Duration = Duration::from_secs(30);
const USAGE: &str = "usage: rust-service NAME MEMBERS FOLDER LISTEN, as in
  rust-service a a=127.0.0.1:7811,b=127.0.0.1:7812 shows 127.0.0.1:7821";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [name, members, folder, listen] = &words[..] else { return Err(USAGE.into()) };

    let mut config = Config::new(name, Config::members_from(members)?);
    config.group = "box-office".to_string();
    config.registry = RegistryPlace::Directory(PathBuf::from(format!("{folder}/registry-{name}")));
    let node = Arc::new(Node::start(config).await?);

    let listener = TcpListener::bind(listen).await?;
    println!("sells at {}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        let (node, folder) = (Arc::clone(&node), PathBuf::from(folder));
        // A client that hangs up ends its own task and nothing else.
        tokio::spawn(async move { serve(&node, &folder, stream).await.ok() });
    }
}

async fn serve(node: &Node, folder: &Path, stream: TcpStream) -> std::io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read).lines();
    while let Some(line) = lines.next_line().await? {
        let words: Vec<&str> = line.split_whitespace().collect();
        let answer = match words[..] {
            ["book", show, who] if is_name(show) && is_name(who) => book(node, folder, show, who)
                .await
                .unwrap_or_else(|error| format!("not booked: {error}")),
            _ => "say: book SHOW NAME".to_string(),
        };
        write.write_all(format!("{answer}\n").as_bytes()).await?;
    }
    Ok(())
}

/// One lock for each show: nobody else sells its seats meanwhile, at any instance.
async fn book(
    node: &Node,
    folder: &Path,
    show: &str,
    who: &str,
) -> Result<String, Box<dyn Error + Send + Sync>> {
    let name = format!("shows/{show}");
    let guard = node.lock(&name).within(PATIENCE).await?;
    let seat = sell(&guard, &folder.join(show), who)?;
    let fence = guard.fence();
    guard.release().await;
    Ok(format!("seat {seat} fence {fence}"))
}

/// Writes the next free seat into the file of the show.
fn sell(guard: &Guard, file: &Path, who: &str) -> Result<usize, Box<dyn Error + Send + Sync>> {
    let sold = fs::read_to_string(file).unwrap_or_default();
    let seat = sold.lines().count() + 1;
    if seat > SEATS {
        return Err("the show is sold out".into());
    }
    // The last column is the fence of the sale.
    let newest = sold.lines().filter_map(|line| line.rsplit(' ').next()?.parse().ok()).max();
    if newest > Some(guard.fence()) {
        return Err("somebody has sold seats after this lock was granted".into());
    }
    let next = file.with_extension(guard.fence().to_string());
    fs::write(&next, format!("{sold}{seat} {who} {}\n", guard.fence()))?;
    // The node may have lost its group since it granted the lock; then nothing is sold.
    if !guard.is_valid() {
        return Err("the lock was lost".into());
    }
    fs::rename(next, file)?;
    Ok(seat)
}

/// Names become names of files.
fn is_name(word: &str) -> bool {
    word.len() <= 64 && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}
