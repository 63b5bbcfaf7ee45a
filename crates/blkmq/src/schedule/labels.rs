//! What each label is to a specification: the table `labels.txt` beside it.
//!
//! Explorer, followers of runs and the test of the README's tables read the same lines. Not here:
//! what an action or a step does. The head of each table says what its columns mean.

use crate::path::Label;

/// One line of the table. Nothing of a label that has none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Row {
    /// Action of the specification that begins at the label.
    pub action: Option<&'static str>,
    /// Step of the specification by labels that the label is.
    pub step: Option<&'static str>,
    /// What a run that passes the label shows of it.
    pub shown: Option<&'static str>,
    /// Why the specification has nothing of the kind, if `shown` is [`REFUSED`].
    pub why: Option<&'static str>,
}

/// `shown` of a label that no behaviour of the specification passes.
pub const REFUSED: &str = "refused";

/// The table of one specification.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LabelTable(Vec<Row>);

impl LabelTable {
    /// Reads a table. An error names the line, and what would be right.
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

/// Label, action, step, what is shown, and why not.
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
