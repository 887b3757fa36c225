//! A network of its own for every host, all of them on one bridge.
//!
//! What one host sends to another is dropped where it arrives, by a rule that comes before all routes:
//! so every direction of every pair can be cut by itself, silently, with nothing but iproute2.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::fault::Host;

const BRIDGE: &str = "bridge";
/// Rules that drop come before the one for local addresses, which is moved to make room.
const DROP_RULE: &str = "10";
const LOCAL_RULE: &str = "100";
/// What `timeout` exits with when the time is up.
const TIMED_OUT: i32 = 124;

/// The hosts and what is dropped between them. It is gone when the namespace that it was made in is.
pub(crate) struct Network {
    /// How many faults drop what goes from the first to the second.
    drops: BTreeMap<(Host, Host), usize>,
    slow: BTreeMap<Host, usize>,
}

impl Network {
    /// Connects the hosts.
    pub(crate) fn make(hosts: &[Host]) -> Result<Network> {
        call("mount -t tmpfs none /run")?;
        call("ip link set lo up")?;
        call(&format!("ip link add {BRIDGE} type bridge"))?;
        call(&format!("ip link set {BRIDGE} up"))?;
        for host in hosts {
            call(&format!("ip netns add {host}"))?;
            call(&format!("ip link add name to-{host} type veth peer name eth0 netns {host}"))?;
            call(&format!("ip link set dev to-{host} master {BRIDGE} up"))?;
            call(&format!("ip -n {host} addr add {}/24 dev eth0", host.address()))?;
            call(&format!("ip -n {host} link set eth0 up"))?;
            call(&format!("ip -n {host} link set lo up"))?;
            call(&format!("ip -n {host} rule add pref {LOCAL_RULE} lookup local"))?;
            call(&format!("ip -n {host} rule del pref 0"))?;
        }
        Ok(Network { drops: BTreeMap::new(), slow: BTreeMap::new() })
    }

    /// Fails if cuts do not cut here: a run without faults would prove nothing.
    pub(crate) fn check(&mut self, one: Host, other: Host) -> Result<()> {
        let (there, back) = ((one, other), (other, one));
        for (from, to) in [there, back] {
            if !answers(one, other)? {
                bail!("{one} does not reach {other} although nothing is cut");
            }
            self.drop_from(from, to)?;
            if answers(one, other)? {
                bail!("what {from} sends to {to} is not dropped on this system");
            }
            self.pass(from, to)?;
        }
        Ok(())
    }

    /// What `from` sends does not reach `to` any more.
    pub(crate) fn drop_from(&mut self, from: Host, to: Host) -> Result<()> {
        if begins(&mut self.drops, (from, to)) {
            let address = from.address();
            call(&format!("ip -n {to} rule add pref {DROP_RULE} from {address} blackhole"))?;
        }
        Ok(())
    }

    /// What `from` sends reaches `to` again, unless another fault drops it too.
    pub(crate) fn pass(&mut self, from: Host, to: Host) -> Result<()> {
        if ends(&mut self.drops, (from, to)) {
            let address = from.address();
            call(&format!("ip -n {to} rule del pref {DROP_RULE} from {address} blackhole"))?;
        }
        Ok(())
    }

    /// What a host sends is slow: it queues up, and what does not fit is dropped.
    pub(crate) fn slow(&mut self, host: Host) -> Result<()> {
        if begins(&mut self.slow, host) {
            let queue = "tbf rate 128kbit burst 3kb latency 500ms";
            call(&format!("tc -n {host} qdisc add dev eth0 root {queue}"))?;
        }
        Ok(())
    }

    /// It is as fast as before.
    pub(crate) fn fast(&mut self, host: Host) -> Result<()> {
        if ends(&mut self.slow, host) {
            call(&format!("tc -n {host} qdisc del dev eth0 root"))?;
        }
        Ok(())
    }
}

/// Counts one more; whether it is the first.
fn begins<K: Ord>(counts: &mut BTreeMap<K, usize>, key: K) -> bool {
    let count = counts.entry(key).or_default();
    *count += 1;
    *count == 1
}

/// Counts one less; whether it was the last.
fn ends<K: Ord>(counts: &mut BTreeMap<K, usize>, key: K) -> bool {
    let Some(count) = counts.get_mut(&key) else { return false };
    *count -= 1;
    let is_last = *count == 0;
    if is_last {
        counts.remove(&key);
    }
    is_last
}

/// Whether `other` answers a call of `one`. Nobody listens there: the answer is that it is refused, and
/// where something is dropped there is none.
fn answers(one: Host, other: Host) -> Result<bool> {
    let call = format!("exec 3<>/dev/tcp/{}/9", other.address());
    let mut command = at_host(one, "timeout");
    let output = command.args(["0.5", "bash", "-c", &call]).output().context("no 'bash' here")?;
    Ok(output.status.code() != Some(TIMED_OUT))
}

/// A command that is run at a host. It becomes that command: its process is the one to be signalled.
pub(crate) fn at_host(host: Host, program: &str) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &host.to_string(), program]);
    command
}

/// Runs a command of the system, and fails with what it says if it does.
pub(crate) fn call(line: &str) -> Result<()> {
    let mut words = line.split_whitespace();
    let output = Command::new(words.next().unwrap_or_default()).args(words).output();
    let output = output.with_context(|| format!("'{line}' could not be started"))?;
    if !output.status.success() {
        bail!("'{line}' failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_faults_drop_passes_when_both_are_over() {
        let mut counts = BTreeMap::new();
        assert!(begins(&mut counts, 'x'));
        assert!(!begins(&mut counts, 'x'));
        assert!(begins(&mut counts, 'y'));
        assert!(!ends(&mut counts, 'x'));
        assert!(ends(&mut counts, 'x'));
        assert!(!ends(&mut counts, 'x'));
        assert_eq!(counts.len(), 1);
    }
}
