//! Words of a table, with the position of each for errors.

use core::ops::RangeInclusive;

pub(super) struct Words {
    left: std::vec::IntoIter<String>,
    /// The last word that was taken, and its position, first 1.
    last: (usize, String),
}

impl Words {
    pub(super) fn of(line: &str) -> Words {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Words {
            left: words.into_iter(),
            last: (0, String::new()),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.left.len() == 0
    }

    /// The error for the last word.
    pub(super) fn error(&self, field: &str, expected: &str) -> String {
        let (place, word) = &self.last;
        format!("word {place}, {field}: `{word}`, expected {expected}")
    }

    pub(super) fn word(&mut self, field: &str, expected: &str) -> Result<String, String> {
        self.pop().ok_or_else(|| {
            let place = self.last.0 + 1;
            format!("word {place}, {field}: missing, expected {expected}")
        })
    }

    pub(super) fn exactly(&mut self, field: &str, expected: &str) -> Result<(), String> {
        match self.word(field, expected)? == expected {
            true => Ok(()),
            false => Err(self.error(field, expected)),
        }
    }

    pub(super) fn number(
        &mut self,
        field: &str,
        range: RangeInclusive<u64>,
    ) -> Result<u64, String> {
        let (least, most) = (*range.start(), *range.end());
        let what = match most {
            u64::MAX => format!("a number from {least} on"),
            _ => format!("a number from {least} to {most}"),
        };
        let number = self.word(field, &what)?.parse().ok();
        let number = number.filter(|number| range.contains(number));
        number.ok_or_else(|| self.error(field, &what))
    }

    pub(super) fn count(&mut self, field: &str, most: usize) -> Result<usize, String> {
        Ok(self.number(field, 0..=most as u64)? as usize)
    }

    /// So many words by themselves.
    pub(super) fn take(&mut self, count: usize, field: &str) -> Result<Words, String> {
        let last = self.last.clone();
        let mut taken = Vec::new();
        for _ in 0..count {
            taken.push(self.word(field, &format!("{count} words"))?);
        }
        Ok(Words {
            left: taken.into_iter(),
            last,
        })
    }

    pub(super) fn end(&mut self) -> Result<(), String> {
        match self.pop() {
            None => Ok(()),
            Some(_) => Err(self.error("after the last argument", "nothing")),
        }
    }

    pub(super) fn pop(&mut self) -> Option<String> {
        let word = self.left.next()?;
        self.last = (self.last.0 + 1, word.clone());
        Some(word)
    }
}
