//! The meaning of each label in a specification: the table `labels.txt` beside it.
//!
//! Explorer, followers of runs and the test of the README's tables read the same lines. Not here:
//! the effect of an action or a step. The head of each table explains its columns.

use crate::names::Label;

/// One line of the table; empty for a label without one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Row {
    /// Action of the specification that begins at the label.
    pub action: Option<&'static str>,
    /// Step of the specification by labels that is this label.
    pub step: Option<&'static str>,
    /// The action that a run shows at the label.
    pub shown: Option<&'static str>,
    /// Why the specification has nothing of the kind, if `shown` is [`REFUSED`].
    pub why: Option<&'static str>,
}

/// `shown` of a label that no behaviour of the specification passes.
pub const REFUSED: &str = "refused";

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LabelTable(Vec<Row>);

impl LabelTable {
    /// Parses a table. An error names the line, and what is expected.
    pub fn read(text: &'static str) -> Result<LabelTable, String> {
        let mut own = [false; Label::COUNT];
        let mut table = LabelTable(vec![Row::default(); Label::COUNT]);
        for (index, line) in text.lines().enumerate() {
            let line = line.trim_end();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let add = |error| format!("line {}: {error}", index + 1);
            let (name, row) = row(line).map_err(add)?;
            if let Some(group) = name.strip_suffix(".*") {
                let mut labels = Label::all().filter(|label| label.parts().0 == group);
                let first = labels.next();
                let first = first.ok_or_else(|| add(format!("no path {group} has labels")))?;
                for label in core::iter::once(first).chain(labels) {
                    let at = usize::from(label.0);
                    if !own[at] {
                        table.0[at] = row;
                    }
                }
                continue;
            }
            let label = Label::by_name(name);
            let label = label.ok_or_else(|| add(format!("there is no label {name}")))?;
            let at = usize::from(label.0);
            if own[at] {
                return Err(add(format!("{name} has a line already")));
            }
            own[at] = true;
            table.0[at] = row;
        }
        Ok(table)
    }

    #[inline]
    pub fn row(&self, label: Label) -> &Row {
        &self.0[usize::from(label.0)]
    }
}

/// Label, action, step, shown action, and the reason if there is none.
fn row(line: &'static str) -> Result<(&'static str, Row), String> {
    let mut rest = line;
    let mut next = || {
        let word = rest.trim_start();
        let end = word.find(' ').unwrap_or(word.len());
        rest = &word[end..];
        (!word.is_empty()).then_some(&word[..end])
    };
    let (Some(name), Some(action), Some(step), Some(shown)) = (next(), next(), next(), next())
    else {
        return Err("expected label, action, step and what a run shows".to_owned());
    };
    let why = rest.trim_start();
    let some = |word: &'static str| (word != "-").then_some(word);
    let row = Row {
        action: some(action),
        step: some(step),
        shown: some(shown),
        why: (!why.is_empty()).then_some(why),
    };
    if (shown == REFUSED) != row.why.is_some() {
        return Err(format!(
            "a reason belongs to {REFUSED}, and to nothing else"
        ));
    }
    Ok((name, row))
}

#[cfg(test)]
mod tests;
