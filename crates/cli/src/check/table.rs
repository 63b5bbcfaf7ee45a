//! The table of verdicts.

use std::fmt::Write as _;

/// One run, compared with its expectation.
#[derive(Debug, Default)]
pub(crate) struct Row {
    pub(crate) spec: String,
    /// Variant, trace or mutant.
    pub(crate) name: String,
    pub(crate) verdict: String,
    pub(crate) generated: u64,
    pub(crate) distinct: u64,
    /// States of the counterexample.
    pub(crate) length: Option<usize>,
    pub(crate) seconds: f64,
    /// Deviations from the expectation.
    pub(crate) wrong: Vec<String>,
}

/// Aligned, with the deviations below each row and a sum at the end.
pub(crate) fn text(rows: &[Row], seconds: f64) -> String {
    let width = |of: fn(&Row) -> &String, least: usize| {
        rows.iter().map(|row| of(row).len()).fold(least, usize::max)
    };
    let spec = width(|row| &row.spec, 4);
    let name = width(|row| &row.name, 7);
    let mut out = format!(
        "{:<spec$}  {:<name$}  {:>9}  {:>9}  {:>6}  {:>7}  verdict\n",
        "spec", "variant", "generated", "distinct", "length", "seconds"
    );
    for row in rows {
        let length = row
            .length
            .map_or(String::new(), |states| states.to_string());
        let ok = if row.wrong.is_empty() {
            ""
        } else {
            "  MISMATCH"
        };
        let _ = writeln!(
            out,
            "{:<spec$}  {:<name$}  {:>9}  {:>9}  {length:>6}  {:>7.1}  {}{ok}",
            row.spec, row.name, row.generated, row.distinct, row.seconds, row.verdict
        );
        for what in &row.wrong {
            let _ = writeln!(out, "    {what}");
        }
    }
    let wrong = rows.iter().filter(|row| !row.wrong.is_empty()).count();
    let _ = writeln!(
        out,
        "{} of {} as expected, {seconds:.1} s",
        rows.len() - wrong,
        rows.len()
    );
    out
}
