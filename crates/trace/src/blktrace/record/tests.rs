use super::*;

fn sample() -> Event {
    Event {
        sector: 0x0102_0304_0506_0708,
        bytes: 0x1122_3344,
        categories: Categories::WRITE
            .with(Categories::QUEUE)
            .with(Categories::CGROUP),
        pid: 77,
        device: Device::new(252, 3),
        cpu: 5,
        sequence: 9,
        error: 11,
        ..Event::new(SimTime(0x1234_5678_9abc), Action::Queue)
    }
}

#[test]
fn a_v1_record_has_the_bytes_the_kernel_writes() {
    let (bytes, size) = encode(Order::Little, false, &sample(), 1, 24);
    assert_eq!(size, 48);
    assert_eq!(bytes[..8], [7, 0x74, 0x61, 0x65, 9, 0, 0, 0]);
    assert_eq!(
        bytes[28..32],
        [1, 1, 0x12, 0],
        "code 1, cgroup bit, QUEUE and WRITE"
    );
    assert_eq!(bytes[36..40], [3, 0, 0xc0, 0x0f], "252 << 20 | 3");
    assert_eq!(bytes[44..48], [0xf5, 0xff, 24, 0], "-11, then the length");
}

#[test]
fn both_versions_and_orders_come_back() {
    for order in [Order::Little, Order::Big] {
        let (bytes, size) = encode(order, false, &sample(), 1, 24);
        let header = decode_v1(
            order,
            bytes[..size].try_into().expect("48 bytes"),
            Location::default(),
        );
        assert_eq!(
            (header.event, header.code, header.pdu_len),
            (sample(), 1, 24)
        );
        let first = bytes[..4].try_into().expect("4 bytes");
        assert_eq!(probe(first), Magic::Known(order));

        let mut zone = sample();
        zone.categories = zone.categories.with(Categories(1 << 22));
        let (bytes, size) = encode(order, true, &zone, 1, 24);
        assert_eq!(size, 64);
        let header = decode_v2(order, &bytes, Location::default());
        assert_eq!((header.event, header.code, header.pdu_len), (zone, 1, 24));
        assert_eq!(
            header.event.categories.0 & 1 << 22,
            1 << 22,
            "v1 has no room for this bit"
        );
    }
}

#[test]
fn first_bytes_are_distinguished() {
    assert_eq!(probe(*b"\x07tae"), Magic::Known(Order::Little));
    assert_eq!(probe(*b"eat\x08"), Magic::Known(Order::Big));
    assert_eq!(probe(*b"\x09tae"), Magic::Version(9));
    assert_eq!(probe(*b"eat\x06"), Magic::Version(6));
    assert_eq!(probe(*b"PK\x03\x04"), Magic::None);
}

#[test]
fn payloads_come_back() {
    for action in [
        Action::Unplug,
        Action::UnplugTimer,
        Action::Split,
        Action::Remap,
    ] {
        let mut event = sample();
        event.action = action;
        event.extra = 0x55_6677;
        if action == Action::Remap {
            event.from = Device::new(8, 1);
        }
        let (pdu, length) = pdu_of(&event);
        let mut read = Event {
            extra: 0,
            from: Device(0),
            ..event
        };
        apply_pdu(&mut read, &pdu[..length]);
        assert_eq!(read, event);
    }
}

#[test]
fn lengths_that_cannot_be_are_refused() {
    let problem = |action, categories: Categories, code, pdu_len| {
        let event = Event {
            categories,
            ..Event::new(SimTime(0), action)
        };
        Header {
            event,
            code,
            pdu_len,
        }
        .length_problem()
        .is_some()
    };
    let none = Categories(0);
    assert!(!problem(Action::Queue, none, 1, 0));
    assert!(!problem(Action::Queue, Categories::CGROUP, 1, 8));
    assert!(problem(Action::Queue, Categories::CGROUP, 1, 7));
    assert!(problem(Action::Queue, none, 1, 60_000));
    assert!(problem(Action::Remap, none, 15, 8));
    assert!(problem(Action::Unplug, none, 10, 4));
    assert!(problem(Action::Split, Categories::CGROUP, 13, 8));
    assert!(!problem(Action::Issue, Categories::PC, 7, 16));
    assert!(!problem(Action::Unknown, none, 99, 60_000));
    assert!(
        problem(Action::Message, Categories::NOTIFY, 1, 4),
        "wall clock needs 8 bytes"
    );
    assert!(problem(Action::Message, Categories::NOTIFY, 2, 5_000));
}
