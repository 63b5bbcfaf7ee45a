//! Pointers in lines of a log: a kernel prints hashed addresses, a model numbers of its own.
//!
//! Two lines are alike if names correspond one to one, for as long as the objects live. A name
//! before a colon introduces its object, even if another object had the name before; where a line
//! ends in a single reference its object is about to be freed.

use std::collections::BTreeMap;

/// Digits of a pointer.
const DIGITS: usize = 16;
/// A pointer that a kernel printed before it had a key for hashes (lib/vsprintf.c).
const UNKNOWN: &str = "(____ptrval____)";

/// Correspondence of the names of both sides.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    by_kernel: BTreeMap<String, String>,
    by_model: BTreeMap<String, String>,
}

/// A line in pieces: words with the punctuation after each.
pub(crate) fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split_inclusive([' ', ',', ':', '/'])
}

/// A word and the punctuation after it.
pub(crate) fn parts(word: &str) -> (&str, &str) {
    let end = word.trim_end_matches([' ', ',', ':', '/']).len();
    word.split_at(end)
}

pub(crate) fn is_pointer(word: &str) -> bool {
    word.len() == DIGITS && word.bytes().all(|b| b.is_ascii_hexdigit())
}

impl Names {
    /// True if the lines are equal. Only then the names are learned.
    pub(crate) fn alike(&mut self, kernel: &str, model: &str) -> bool {
        let Some(pairs) = Self::pairs(kernel, model) else {
            return false;
        };
        let fits = |&(of_kernel, of_model, introduced): &(&str, &str, bool)| {
            let known = self.by_kernel.get(of_kernel).map(String::as_str);
            let back = self.by_model.get(of_model).map(String::as_str);
            introduced
                || known.is_none_or(|known| known == of_model)
                    && back.is_none_or(|back| back == of_kernel)
        };
        if !pairs.iter().all(fits) {
            return false;
        }
        let last = words(kernel).last().is_some_and(|word| word.trim() == "1");
        for &(of_kernel, of_model, _) in &pairs {
            self.forget(of_kernel, of_model);
            if !last {
                let (kernel, model) = (of_kernel.to_owned(), of_model.to_owned());
                self.by_kernel.insert(kernel.clone(), model.clone());
                self.by_model.insert(model, kernel);
            }
        }
        true
    }

    fn forget(&mut self, of_kernel: &str, of_model: &str) {
        if let Some(model) = self.by_kernel.remove(of_kernel) {
            self.by_model.remove(&model);
        }
        if let Some(kernel) = self.by_model.remove(of_model) {
            self.by_kernel.remove(&kernel);
        }
    }

    /// Pointers of both, each with whether it is introduced; none if anything else differs.
    fn pairs<'a>(kernel: &'a str, model: &'a str) -> Option<Vec<(&'a str, &'a str, bool)>> {
        let mut pairs = Vec::new();
        let mut of_model = words(model);
        for word in words(kernel) {
            let (mine, after) = parts(word);
            let (other, follows) = parts(of_model.next()?);
            if after.trim_end() != follows.trim_end() {
                return None;
            }
            match is_pointer(mine) && is_pointer(other) {
                true => pairs.push((mine, other, after.starts_with(':'))),
                false if mine == other => {}
                false if mine == UNKNOWN && is_pointer(other) => {}
                false => return None,
            }
        }
        of_model.next().is_none().then_some(pairs)
    }

    /// The lines are equal except for pointers.
    pub(crate) fn similar(kernel: &str, model: &str) -> bool {
        Self::pairs(kernel, model).is_some()
    }
}

#[cfg(test)]
mod tests;
