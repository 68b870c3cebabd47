//! The machine that a proof ran on, in words: a figure without it says little.

/// Processor, cores, memory and kernel; what cannot be found out is left out.
pub(crate) fn in_words() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let parts = [
        field("/proc/cpuinfo", "model name"),
        Some(format!("{cores} cores")),
        field("/proc/meminfo", "MemTotal").and_then(|text| memory(&text)),
        std::fs::read_to_string("/proc/sys/kernel/osrelease")
            .ok()
            .map(|release| format!("Linux {}", release.trim())),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The value of the first line `name : value`.
fn field(path: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let (_, value) = text.lines().find(|line| line.starts_with(name))?.split_once(':')?;
    Some(value.trim().to_owned())
}

/// `16384000 kB` in GiB.
fn memory(text: &str) -> Option<String> {
    let kib: f64 = text.split_whitespace().next()?.parse().ok()?;
    Some(format!("{:.0} GiB", kib / f64::from(1 << 20)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_always_named_and_memory_is_rounded() {
        assert!(in_words().contains(" cores"));
        assert_eq!(memory("16777216 kB"), Some("16 GiB".to_owned()));
        assert_eq!(memory("much"), None);
    }
}
