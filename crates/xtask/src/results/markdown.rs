//! Tables in Markdown.

/// Header, rule and rows. Panics if a row has another number of cells than the header.
pub(super) fn table(header: &[String], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| {
        assert_eq!(cells.len(), header.len(), "a cell for each column");
        format!("| {} |\n", cells.join(" | "))
    };
    let rule = format!("|{}\n", "---|".repeat(header.len()));
    let rows: String = rows.iter().map(|row| line(row)).collect();
    line(header) + &rule + &rows
}

pub(super) fn columns(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// The output of a program, unchanged.
pub(super) fn fenced(text: &str) -> String {
    format!("```\n{}\n```\n", text.trim_end())
}

/// `12,345`.
pub(super) fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_markdown() {
        let rows = [columns(&["1", "2"]), columns(&["3", "4"])];
        let text = table(&columns(&["a", "b"]), &rows);
        assert_eq!(text, "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n");
        assert_eq!(fenced("x\ny\n\n"), "```\nx\ny\n```\n");
    }

    #[test]
    fn thousands_are_distinguished() {
        let all = [0.4, 999.0, 1000.0, 1_234_567.8].map(grouped);
        assert_eq!(all, ["0", "999", "1,000", "1,234,568"]);
    }
}
