//! Cursor over the words of one event's payload, or of another text with such fields.
//!
//! Reads the shapes that TP_printk() produces, not the events.

use super::event::{DeviceNumber, IoPriority};

/// A payload that does not have the event's shape.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed {
    /// Field in question, by the kernel's name.
    pub(crate) field: &'static str,
    pub(crate) found: String,
    pub(crate) want: &'static str,
}

impl Malformed {
    /// Sentence for an error message.
    pub(crate) fn describe(&self, event: &str) -> String {
        format!("{event} has `{}`, expected {}", self.found, self.want)
    }
}

pub(crate) type Parsed<T> = Result<T, Malformed>;

/// The rest of a payload, not yet read.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a>(&'a str);

impl<'a> Fields<'a> {
    pub(crate) fn new(payload: &'a str) -> Fields<'a> {
        Fields(payload.trim())
    }

    pub(crate) fn bad<T>(&self, field: &'static str, want: &'static str) -> Parsed<T> {
        Err(Malformed {
            field,
            found: self.0.to_string(),
            want,
        })
    }

    /// The next blank-separated word.
    pub(crate) fn word(&mut self, field: &'static str, want: &'static str) -> Parsed<&'a str> {
        if self.0.is_empty() {
            return self.bad(field, want);
        }
        let (word, rest) = self.0.split_once(' ').unwrap_or((self.0, ""));
        self.0 = rest.trim_start();
        Ok(word)
    }

    pub(crate) fn number<T: std::str::FromStr>(&mut self, field: &'static str) -> Parsed<T> {
        let here = *self;
        let word = self.word(field, "a whole number")?;
        word.parse()
            .or_else(|_| here.bad(field, number_wanted(word)))
    }

    /// A word that must be exactly this.
    pub(crate) fn literal(&mut self, what: &'static str) -> Parsed<()> {
        let here = *self;
        if self.word("separator", what)? == what {
            Ok(())
        } else {
            here.bad("separator", what)
        }
    }

    /// `major,minor`.
    pub(crate) fn device(&mut self) -> Parsed<DeviceNumber> {
        let here = *self;
        let word = self.word("dev", "major,minor")?;
        parse_device(word).map_or_else(|| here.bad("dev", "major,minor"), Ok)
    }

    /// `(major,minor)`.
    pub(crate) fn old_device(&mut self) -> Parsed<DeviceNumber> {
        let here = *self;
        let word = self.word("old_dev", "(major,minor)")?;
        word.strip_prefix('(')
            .and_then(|w| w.strip_suffix(')'))
            .and_then(parse_device)
            .map_or_else(|| here.bad("old_dev", "(major,minor)"), Ok)
    }

    /// `(...)`, the command of a passthrough request, empty otherwise.
    pub(crate) fn parenthesis(&mut self) -> Parsed<&'a str> {
        let Some((inside, rest)) = self.0.strip_prefix('(').and_then(|s| s.split_once(')')) else {
            return self.bad("cmd", "(command)");
        };
        self.0 = rest.trim_start();
        Ok(inside)
    }

    /// `class,hint,level`, printed by 6.12 and absent in 6.1.
    pub(crate) fn priority(&mut self) -> Parsed<Option<IoPriority>> {
        if self.0.starts_with('[') || self.0.is_empty() {
            return Ok(None);
        }
        let here = *self;
        let word = self.word("ioprio", "class,hint,level")?;
        IoPriority::from_text(word).map_or_else(
            || here.bad("ioprio", "class,hint,level"),
            |prio| Ok(Some(prio)),
        )
    }

    /// `[...]` up to the last bracket; the payload ends there.
    pub(crate) fn bracket(&mut self, field: &'static str) -> Parsed<&'a str> {
        let Some(inside) = self.0.strip_prefix('[').and_then(|s| s.strip_suffix(']')) else {
            return self.bad(field, "[...] at the end of the line");
        };
        self.0 = "";
        Ok(inside)
    }

    /// `[name] rest`: a bracket that does not end the payload.
    pub(crate) fn bracket_then(&mut self, field: &'static str) -> Parsed<&'a str> {
        let Some((inside, rest)) = self.0.strip_prefix('[').and_then(|s| s.rsplit_once("] "))
        else {
            return self.bad(field, "[...] and more");
        };
        self.0 = rest.trim_start();
        Ok(inside)
    }

    /// What was not read yet.
    pub(crate) fn rest(&self) -> &'a str {
        self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn end(&self) -> Parsed<()> {
        if self.0.is_empty() {
            Ok(())
        } else {
            self.bad("end of line", "nothing more")
        }
    }

    /// `key=` and a decimal or 0x number.
    pub(crate) fn keyed(&mut self, key: &'static str) -> Parsed<u64> {
        let here = *self;
        let word = self.word(key, "key=number")?;
        word.strip_prefix(key)
            .and_then(|w| w.strip_prefix('='))
            .and_then(parse_number)
            .map_or_else(|| here.bad(key, "key=number"), Ok)
    }

    /// The same of 32 bits.
    pub(crate) fn keyed_u32(&mut self, key: &'static str) -> Parsed<u32> {
        let here = *self;
        let number = self.keyed(key)?;
        u32::try_from(number).or_else(|_| here.bad(key, "a smaller number"))
    }

    /// `key=` and text before the last `end`.
    pub(crate) fn text(&mut self, key: &'static str, end: &str) -> Parsed<&'a str> {
        let text = self.0.strip_prefix(key).and_then(|w| w.strip_prefix('='));
        let Some((text, at)) = text.and_then(|text| Some((text, text.rfind(end)?))) else {
            return self.bad(key, "key=text");
        };
        self.0 = text[at..].trim_start();
        Ok(&text[..at])
    }

    /// The `(function+0x0/0x40 ...)` that starts a kprobe's line.
    pub(crate) fn probe_site(&mut self) -> Parsed<&'a str> {
        let Some((inside, rest)) = self.0.strip_prefix('(').and_then(|s| s.split_once(')')) else {
            return self.bad("probe", "(function+offset/size)");
        };
        self.0 = rest.trim_start();
        Ok(inside)
    }
}

/// What a word should be that is no number of the field's range.
pub(crate) fn number_wanted(word: &str) -> &'static str {
    match !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()) {
        true => "a smaller number",
        false => "a whole number",
    }
}

fn parse_device(word: &str) -> Option<DeviceNumber> {
    let (major, minor) = word.split_once(',')?;
    Some(DeviceNumber {
        major: major.parse().ok()?,
        minor: minor.parse().ok()?,
    })
}

/// Decimal (negative numbers as two's complement) or 0x.
fn parse_number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text
            .parse()
            .ok()
            .or_else(|| text.parse::<i64>().ok().map(|n| n as u64)),
    }
}
