//! Parquet: what is written is read again; damaged files are errors. That other readers take them:
//! `rows` in cli/tests/scenarios/analyze.txt.

use proptest::prelude::*;
use scenario::table::parquet::{Parquet, Read};
use scenario::table::{Cell, Column, Kind};

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![Just(Kind::Integer), Just(Kind::Number), Just(Kind::Text)]
}

fn cell(kind: Kind) -> BoxedStrategy<Cell<'static>> {
    let some = match kind {
        Kind::Integer => any::<i64>().prop_map(Cell::Integer).boxed(),
        Kind::Number => any::<f64>()
            .prop_filter("equal to itself", |x| !x.is_nan())
            .prop_map(Cell::Number)
            .boxed(),
        Kind::Text => "[a-z,\"é\n]{0,8}"
            .prop_map(|text| Cell::Text(text.into()))
            .boxed(),
    };
    prop_oneof![4 => some, 1 => Just(Cell::Missing)].boxed()
}

type Rows = (Vec<Column>, Vec<Vec<Cell<'static>>>);

fn rows() -> impl Strategy<Value = Rows> {
    prop::collection::vec(kind(), 1..20).prop_flat_map(|kinds| {
        let row: Vec<_> = kinds.iter().map(|kind| cell(*kind)).collect();
        let name = |(index, kind)| Column::new(format!("column {index}"), kind);
        let columns: Vec<Column> = kinds.into_iter().enumerate().map(name).collect();
        (Just(columns), prop::collection::vec(row, 0..40))
    })
}

fn written(columns: &[Column], rows: &[Vec<Cell<'_>>]) -> Vec<u8> {
    let mut table = Parquet::new(columns.to_vec());
    let mut bytes: Vec<u8> = rows.iter().flat_map(|row| table.add(row)).collect();
    bytes.extend(table.finish());
    bytes
}

proptest! {
    #[test]
    fn what_is_written_is_read((columns, rows) in rows()) {
        let bytes = written(&columns, &rows);
        let read = Read::read(&bytes).expect("it is ours");
        prop_assert_eq!(&read.columns, &columns);
        for index in 0..columns.len() {
            let values = read.values(index).expect("it is ours");
            let own: Vec<_> = rows.iter().map(|row| row[index].clone()).collect();
            prop_assert_eq!(values, own);
        }
    }

    #[test]
    fn a_damaged_file_is_an_error_or_other_values(
        (columns, rows) in rows(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        cut in any::<bool>(),
    ) {
        let mut bytes = written(&columns, &rows);
        let at = at.index(bytes.len());
        match cut {
            true => bytes.truncate(at),
            false => bytes[at] = byte,
        }
        if let Ok(read) = Read::read(&bytes) {
            prop_assert!(!cut);
            for index in 0..read.columns.len() {
                let _ = read.values(index);
            }
        }
    }
}

#[test]
fn many_rows_are_in_several_groups() {
    let columns = [Column::new("n", Kind::Integer)];
    let rows: Vec<_> = (0..40_000).map(|n| vec![Cell::Integer(n)]).collect();
    let mut table = Parquet::new(columns.to_vec());
    let parts: Vec<Vec<u8>> = rows.iter().map(|row| table.add(row)).collect();
    // Only a group at a time is in memory.
    assert_eq!(parts.iter().filter(|part| part.len() > 100_000).count(), 2);
    let mut bytes = parts.concat();
    bytes.extend(table.finish());
    let read = Read::read(&bytes).expect("it is ours");
    assert_eq!(read.values(0).expect("it is ours"), rows.concat());
}
