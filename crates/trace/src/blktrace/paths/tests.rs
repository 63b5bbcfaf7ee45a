use super::*;

#[test]
fn names_say_device_and_cpu() {
    fn parse(name: &str) -> Option<(&str, u32)> {
        parse_name(Path::new(name))
    }
    assert_eq!(parse("/x/nullb0.blktrace.0"), Some(("nullb0", 0)));
    assert_eq!(parse("cciss_c0d0.blktrace.12.xz"), Some(("cciss_c0d0", 12)));
    assert_eq!(
        parse("a.blktrace.b.blktrace.3.gz"),
        Some(("a.blktrace.b", 3))
    );
    for other in [
        "sda.blktrace.",
        ".blktrace.0",
        "sda.blktrace.x",
        "sda.blktrace.+1",
        "dump",
    ] {
        assert_eq!(parse(other), None, "{other}");
    }
    assert_eq!(parse("sda.blktrace.99999999999"), None);
}

#[test]
fn drops_are_read_from_the_section_of_the_device() {
    let log = "=== sda ===\n  CPU  0:   5 events, 1 KiB data\n  Total:   5 events (dropped 7), 1\n\
               === sdb ===\n  Total:   5 events (dropped 0), 1 KiB data\n";
    let read = |text, device| Log::read(PathBuf::new(), text, device);
    assert_eq!(read(log, "sda").dropped, 7);
    assert_eq!(read(log, "sda").events, BTreeMap::from([(0, 5)]));
    assert_eq!(read(log, "sdb").dropped, 0);
    assert_eq!(read(log, "sdc").dropped, 0);
    assert_eq!(read("=== sda ===\nTotal: (dropped x)", "sda").dropped, 0);
}
