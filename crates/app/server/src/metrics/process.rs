//! Metrics of this process from the operating system. What the system does not provide is left out.

use super::page::Page;

const KIB: f64 = 1024.0;

pub(super) fn write(page: &mut Page) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let figures = [
        ("VmRSS:", "process_resident_memory_bytes", "Memory in use.", KIB),
        ("VmHWM:", "process_resident_memory_max_bytes", "The most memory ever in use.", KIB),
        ("Threads:", "process_threads", "Threads.", 1.0),
    ];
    for (field, name, help, unit) in figures {
        if let Some(value) = figure(&status, field) {
            page.single(name, "gauge", help, value * unit);
        }
    }
    if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
        page.single("process_open_fds", "gauge", "Open files.", open.count() as f64);
    }
}

fn figure(status: &str, field: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_from_their_lines() {
        let status = "Name:\tlazuli\nVmRSS:\t    1234 kB\nThreads:\t7\n";
        assert_eq!(figure(status, "VmRSS:"), Some(1234.0));
        assert_eq!(figure(status, "Threads:"), Some(7.0));
        assert_eq!(figure(status, "VmHWM:"), None);
    }
}
