use std::io::Cursor;
use std::path::Path;

use super::QueueTxt;
use crate::text::Lines;

fn read(text: &str) -> crate::Result<QueueTxt> {
    QueueTxt::read(Lines::new(
        Path::new("q"),
        Box::new(Cursor::new(text.to_string().into_bytes())),
    ))
}

#[test]
fn two_devices() {
    let text = "== nullb0 size 1000\n\
        queue/scheduler=none [mq-deadline] bfq \n\
        queue/nr_requests=256 \n\
        queue/io_poll_delay=-1 \n\
        queue/iosched/fifo_batch=4 \n\
        mq/10: tags=1 cpus=\n\
        mq/0: tags=4 cpus=0, 1, 2\n"
        .to_string()
        + &(1..10)
            .map(|n| format!("mq/{n}: tags=4 cpus={n}\n"))
            .collect::<Vec<_>>()
            .concat()
        + "== sda size 8\nqueue/scheduler=[none] \nqueue/write_cache=write back \n";
    let all = read(&text).unwrap();
    let nullb0 = all.device("nullb0").unwrap();
    assert_eq!(nullb0.scheduler().unwrap(), "mq-deadline");
    assert_eq!(nullb0.number("io_poll_delay").unwrap(), -1);
    assert_eq!(nullb0.tunable("fifo_batch").unwrap(), Some(4));
    assert_eq!(nullb0.tunable("async_depth").unwrap(), None);
    assert_eq!(nullb0.hctxs.len(), 11);
    assert_eq!(
        (nullb0.hctxs[0].tags, nullb0.hctxs[0].cpus.as_slice()),
        (4, [0, 1, 2].as_slice())
    );
    assert!(nullb0.hctxs[10].cpus.is_empty());
    let sda = all.device("sda").unwrap();
    assert_eq!((sda.sectors, sda.scheduler().unwrap()), (8, "none"));
    assert_eq!(sda.attribute("write_cache").unwrap(), "write back");
    assert_eq!(
        sda.number("write_cache").unwrap_err().to_string(),
        "q:19: queue/write_cache: sda: `write back` is not a number"
    );
    assert_eq!(
        sda.attribute("fua").unwrap_err().to_string(),
        "q:17: queue/fua: sda: not in this section"
    );
}

#[test]
fn bad_files() {
    let cases = [
        ("", "q:0: section: no device"),
        ("queue/fua=0", "q:1: section: expected `== DEVICE"),
        ("== sda", "q:1: section: expected `== DEVICE"),
        ("== sda size big", "q:1: size: `big`"),
        ("== sda size 1\n== sda size 1", "q:2: section: sda again"),
        ("== sda size 1\nqueue/fua", "q:2: line: expected queue/NAME"),
        ("== sda size 1\nfua=1", "q:2: fua: neither"),
        (
            "== sda size 1\nqueue/fua=1\nqueue/fua=1",
            "q:3: queue/fua: given twice",
        ),
        ("== sda size 1\nmq/0 tags=1 cpus=0", "q:2: mq: expected"),
        ("== sda size 1\nmq/0: tags=1 cpus=a", "q:2: cpus: `a`"),
        (
            "== sda size 1\nmq/1: tags=1 cpus=0",
            "q:1: mq: sda: mq/0 is missing",
        ),
    ];
    for (text, want) in cases {
        let got = read(text).unwrap_err().to_string();
        assert!(got.starts_with(want), "{text:?}\n  {got}");
    }
    let none_marked = read("== sda size 1\nqueue/scheduler=none\n").unwrap();
    assert!(none_marked.devices[0].scheduler().is_err());
}
