use super::{Column, Format};

#[test]
fn a_format_is_read_or_its_first_mistake_is_named() {
    for (spec, says) in [
        ("%x", "%x at position 1: expected a letter of a"),
        ("ab%-12q", "%q at position 3"),
        ("%12", "% at position 1"),
        ("%4096S", "width at position 1"),
        ("%99999999999999999999S", "width at position 1"),
        ("a\\q", "\\q at position 2: expected \\b"),
        ("a\\", "\\ at position 2"),
        ("%é", "%é at position 1"),
        ("%E", "%E at position 1"),
    ] {
        let error = Format::parse(spec).expect_err(spec);
        assert!(error.starts_with(says), "{spec}: {error}");
    }
    for spec in ["", "%", "%%", "100%", "é%-8C\\n", "%0s"] {
        assert!(Format::parse(spec).is_ok(), "{spec}");
    }
    let columns = Format::parse("%-8C\\b%").expect("it is one").columns();
    let want = [
        Column::Field('C'),
        Column::Literal('\u{8}'),
        Column::Literal('%'),
    ];
    assert_eq!(columns, want);
    assert!(Format::parse("%5u").expect("it is one").needs_tracking());
}
