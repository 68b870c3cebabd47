//! A folder that appears whole, with checksums, or not at all.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, bail};
use sha2::{Digest, Sha256};
use tengen_service::files;

/// Name of the file with the checksums of the others, as `sha256sum --check` reads it.
pub(super) const SUMS: &str = "SHA256SUMS";

/// Writes `contents` and their checksums into a folder beside `folder`, then puts it in place.
pub(super) fn write(folder: &Path, contents: &[(&str, Vec<u8>)]) -> anyhow::Result<()> {
    let parent = match folder.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    files::create_folder(parent).with_context(|| format!("failed to make {}", parent.display()))?;
    if folder.exists() && !folder.join(SUMS).exists() {
        bail!(
            "{} exists and was not made by `tengen models pull`: name another with --out",
            folder.display()
        );
    }
    let staging = tempfile::Builder::new().prefix(".pulling-").tempdir_in(parent)?;
    let fresh = staging.path().join("new");
    std::fs::create_dir(&fresh)?;
    let mut sums = String::new();
    for (name, content) in contents {
        write_synced(&fresh.join(name), content)?;
        sums += &format!("{}  {name}\n", hex::encode(Sha256::digest(content)));
    }
    write_synced(&fresh.join(SUMS), sums.as_bytes())?;
    files::sync_folder(&fresh)?;
    if folder.exists() {
        std::fs::rename(folder, staging.path().join("old"))?;
    }
    std::fs::rename(&fresh, folder).with_context(|| format!("failed to put {} in place", folder.display()))?;
    files::sync_folder(parent)?;
    Ok(())
}

/// Whether the folder is there and holds what its checksums say.
pub(super) fn is_whole(folder: &Path) -> bool {
    let Ok(sums) = std::fs::read_to_string(folder.join(SUMS)) else {
        return false;
    };
    let mut lines = sums.lines().peekable();
    lines.peek().is_some()
        && lines.all(|line| {
            line.split_once("  ").is_some_and(|(sum, name)| {
                std::fs::read(folder.join(name)).is_ok_and(|content| hex::encode(Sha256::digest(content)) == sum)
            })
        })
}

/// Makes the link `name` in `folder` point to `target`, in one step for whoever looks.
pub(super) fn point(folder: &Path, name: &str, target: &str) -> anyhow::Result<()> {
    let staging = tempfile::Builder::new().prefix(".pulling-").tempdir_in(folder)?;
    let fresh = staging.path().join("link");
    std::os::unix::fs::symlink(target, &fresh)?;
    let link = folder.join(name);
    std::fs::rename(&fresh, &link).with_context(|| format!("failed to put {} in place", link.display()))?;
    Ok(files::sync_folder(folder)?)
}

fn write_synced(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    let mut file = File::create(path).with_context(|| format!("failed to write {}", path.display()))?;
    file.write_all(content)?;
    Ok(file.sync_all()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_replaced_whole_and_checksums_agree() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("small-gen3");
        for bytes in [b"first".as_slice(), b"second"] {
            write(
                &folder,
                &[("model.onnx", bytes.to_vec()), ("model.json", b"{}".to_vec())],
            )
            .unwrap();
            assert!(is_whole(&folder));
        }
        assert_eq!(std::fs::read(folder.join("model.onnx")).unwrap(), b"second");
        let sums = std::fs::read_to_string(folder.join(SUMS)).unwrap();
        assert!(sums.contains(&hex::encode(Sha256::digest(b"second"))), "{sums}");
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 1);
        std::fs::remove_file(folder.join("model.json")).unwrap();
        assert!(!is_whole(&folder));
    }

    #[test]
    fn a_folder_of_somebody_else_is_not_touched() {
        let parent = tempfile::tempdir().unwrap();
        std::fs::create_dir(parent.path().join("mine")).unwrap();
        let error = write(&parent.path().join("mine"), &[]).unwrap_err();
        assert!(error.to_string().contains("--out"), "{error}");
        assert!(!is_whole(&parent.path().join("mine")));
    }

    #[test]
    fn a_link_moves_in_one_step() {
        let folder = tempfile::tempdir().unwrap();
        for target in ["gen1", "gen2"] {
            point(folder.path(), "champion", target).unwrap();
            assert_eq!(
                std::fs::read_link(folder.path().join("champion")).unwrap(),
                Path::new(target)
            );
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
