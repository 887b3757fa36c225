//! A container image as an archive in the OCI layout: no daemon is needed to make it, and any can load it.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::binary::Binary;
use super::tree::Tree;
use super::{VERSION, archive, hex};

/// The number of a user that has no rights.
const USER: u32 = 65532;
const DATA: &str = "var/lib/catraca";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// The image, as a tar archive.
pub(super) fn archive(binary: &Binary, time: u64) -> Result<Vec<u8>> {
    let plain = archive::tar(&files(binary)?, time)?;
    let mut blobs = Blobs::default();
    let layer = blobs.put(LAYER, archive::gzip(&plain)?);
    let config = blobs.put(CONFIG, bytes(&config(binary, &digest(&plain))?)?);
    let manifest = json!({
        "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer],
        "annotations": labels(),
    });
    let mut manifest = blobs.put(MANIFEST, bytes(&manifest)?);
    manifest["platform"] = json!({ "architecture": binary.architecture(), "os": "linux" });
    manifest["annotations"] = json!({ "org.opencontainers.image.ref.name": VERSION });
    let index = json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [manifest],
    });
    let mut layout = Tree::default();
    layout.file("oci-layout", 0o644, bytes(&json!({ "imageLayoutVersion": "1.0.0" }))?);
    layout.file("index.json", 0o644, bytes(&index)?);
    for (sum, content) in blobs.0 {
        layout.file(&format!("blobs/sha256/{sum}"), 0o644, content);
    }
    archive::tar(&layout, time)
}

/// What is in the image: the binary, what it needs, and a place for its data.
fn files(binary: &Binary) -> Result<Tree> {
    let mut tree = Tree::default();
    tree.file("usr/bin/catraca", 0o755, binary.bytes.clone());
    for library in &binary.libraries {
        let content =
            std::fs::read(library).with_context(|| format!("cannot read {}", library.display()))?;
        tree.file(inside(library), 0o755, content);
    }
    let passwd = format!("catraca:x:{USER}:{USER}:Catraca:/{DATA}:/sbin/nologin\n");
    tree.file("etc/passwd", 0o644, passwd.into_bytes());
    tree.file("etc/group", 0o644, format!("catraca:x:{USER}:\n").into_bytes());
    // Names of members are looked up in the file of hosts first.
    tree.file("etc/nsswitch.conf", 0o644, b"hosts: files dns\n".to_vec());
    tree.folder(DATA, 0o750, USER);
    tree.folder("tmp", 0o1777, 0);
    Ok(tree)
}

/// The path within the image; ldd tells whole paths.
fn inside(path: &Path) -> &str {
    path.to_str().unwrap_or_default().trim_start_matches('/')
}

fn config(binary: &Binary, layer: &str) -> Result<Value> {
    Ok(json!({
        "architecture": binary.architecture(), "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"),
            // The user's name says where a node keeps its data.
            "Env": ["PATH=/usr/bin", "USER=catraca", format!("HOME=/{DATA}")],
            "Entrypoint": ["/usr/bin/catraca"],
            "Cmd": ["node"],
            "WorkingDir": format!("/{DATA}"),
            "ExposedPorts": { "7800/tcp": {} },
            "Volumes": { format!("/{DATA}"): {} },
            "StopSignal": "SIGTERM",
            "Labels": labels(),
        },
        "rootfs": { "type": "layers", "diff_ids": [layer] },
        "history": [{ "created_by": "cargo xtask package" }],
    }))
}

fn labels() -> Value {
    json!({
        "org.opencontainers.image.title": "catraca",
        "org.opencontainers.image.description": "Locks for programs, scripts and jobs of several machines",
        "org.opencontainers.image.version": VERSION,
        "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
    })
}

/// Contents by their sums.
#[derive(Default)]
struct Blobs(BTreeMap<String, Vec<u8>>);

impl Blobs {
    /// Keeps a content, and returns what refers to it.
    fn put(&mut self, kind: &str, content: Vec<u8>) -> Value {
        let descriptor =
            json!({ "mediaType": kind, "digest": digest(&content), "size": content.len() });
        self.0.insert(hex(&Sha256::digest(&content)), content);
        descriptor
    }
}

fn digest(content: &[u8]) -> String {
    format!("sha256:{}", hex(&Sha256::digest(content)))
}

/// Keys are in order, so the same value has the same bytes.
fn bytes(value: &Value) -> Result<Vec<u8>> {
    Ok(serde_json::to_vec(value)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;

    /// The files of an archive that this crate has written, by their paths.
    fn unpacked(archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
        const BLOCK: usize = 512;
        let text = |bytes: &[u8]| {
            let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
            String::from_utf8(bytes[..end].to_vec()).unwrap()
        };
        let mut files = BTreeMap::new();
        let mut rest = archive;
        while rest[0] != 0 {
            let (path, size) = (text(&rest[..100]), text(&rest[124..136]));
            let size = usize::from_str_radix(&size, 8).unwrap();
            files.insert(path, rest[BLOCK..BLOCK + size].to_vec());
            rest = &rest[BLOCK + size.next_multiple_of(BLOCK)..];
        }
        files
    }

    #[test]
    fn every_digest_of_an_image_is_that_of_a_content_in_it() {
        let binary = Binary::for_tests(b"not much of a program".to_vec());
        let image = archive(&binary, 1_700_000_000).unwrap();
        assert_eq!(image, archive(&binary, 1_700_000_000).unwrap(), "the same bytes every time");
        let files = unpacked(&image);
        let blob = |descriptor: &Value| {
            let digest = descriptor["digest"].as_str().unwrap();
            let content = &files[&format!("./blobs/{}", digest.replace(':', "/"))];
            assert_eq!(super::digest(content), digest);
            assert_eq!(descriptor["size"], content.len());
            content.clone()
        };
        let read = |content: &[u8]| serde_json::from_slice::<Value>(content).unwrap();
        assert_eq!(read(&files["./oci-layout"])["imageLayoutVersion"], "1.0.0");
        let manifest = read(&blob(&read(&files["./index.json"])["manifests"][0]));
        let config = read(&blob(&manifest["config"]));
        let mut layer = Vec::new();
        let packed = blob(&manifest["layers"][0]);
        GzDecoder::new(packed.as_slice()).read_to_end(&mut layer).unwrap();
        assert_eq!(config["rootfs"]["diff_ids"][0], super::digest(&layer));
        assert_eq!(config["config"]["User"], "65532:65532");
        let inside = unpacked(&layer);
        assert_eq!(inside["./usr/bin/catraca"], binary.bytes);
        assert!(inside.contains_key("./var/lib/catraca/"));
    }
}
