use super::*;

#[test]
fn an_event_is_one_cache_line() {
    assert_eq!(std::mem::size_of::<Event>(), 64);
}

#[test]
fn every_code_gives_the_action_with_that_number() {
    for code in 1..=19u16 {
        assert_eq!(Action::from_code(code) as u16, code);
    }
    assert_eq!(Action::from_code(0), Action::Unknown);
    assert_eq!(
        Action::from_code(20),
        Action::Unknown,
        "a message is a note, not a code"
    );
    assert_eq!(Action::from_code(0xffff), Action::Unknown);
    for (at, action) in Action::ALL.into_iter().enumerate() {
        assert_eq!(action as usize, at + 1);
        assert!((action as usize) < Action::COUNT);
    }
}

#[test]
fn rwbs_as_blkparse_prints_it() {
    let table = [
        (Categories::READ.0, 4096, "R"),
        (Categories::READ.0, 0, "N"),
        (Categories::WRITE.with(Categories::SYNC).0, 4096, "WS"),
        (
            Categories::WRITE
                .with(Categories::SYNC)
                .with(Categories::FUA)
                .0,
            4096,
            "WFS",
        ),
        (
            Categories::WRITE
                .with(Categories::SYNC)
                .with(Categories::FLUSH)
                .0,
            0,
            "FWS",
        ),
        (Categories::READ.with(Categories::FLUSH).0, 0, "FN"),
        (Categories::WRITE.with(Categories::DISCARD).0, 4096, "D"),
        (
            Categories::READ
                .with(Categories::AHEAD)
                .with(Categories::META)
                .0,
            512,
            "RAM",
        ),
        (u32::MAX, 512, "FDFASM"),
    ];
    for (bits, bytes, want) in table {
        assert_eq!(
            Rwbs::new(Categories(bits), bytes).as_str(),
            want,
            "{bits:#x} {bytes}"
        );
    }
}

#[test]
fn locations_keep_both_parts() {
    let location = Location::new(65_535, 0x7fff_ffff_ffff);
    assert_eq!(location.file(), 65_535);
    assert_eq!(location.offset(), 0x7fff_ffff_ffff);
}

#[test]
fn names_of_scsi_disks_are_their_numbers() {
    let table = [
        ("sda", "8,0"),
        ("sda15", "8,15"),
        ("sdp1", "8,241"),
        ("sdq", "65,0"),
        ("sdaa", "65,160"),
        ("sddw", "71,224"),
        ("sddx", "71,240"),
        ("sddy", "128,0"),
        ("sdiv", "135,240"),
    ];
    for (name, number) in table {
        assert_eq!(Device::of_scsi_disk(name), Device::parse(number), "{name}");
    }
    for name in [
        "sdiw", "sd", "sda0", "sda16", "sdA", "sda1x", "sdaaa", "hda",
    ] {
        assert_eq!(Device::of_scsi_disk(name), None, "{name}");
    }
}
