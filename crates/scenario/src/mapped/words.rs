//! Keys of `[mapped]` that change words of its table.
//!
//! multipathd writes tables in this way (libmultipath, assemble_map()): one selector for all
//! groups, and one argument for each path. The words are checked when the table is read.

use blkmq::dm::table::bare_name;
use serde::de::{self, Deserialize, Deserializer};

use super::Mapped;

/// multipath.conf's no_path_retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPathRetry {
    /// Also 0: requests without a path fail.
    Fail,
    /// Requests wait for a path.
    Queue,
    /// Requests wait until so many checks of multipathd have found no path; from 1 on.
    Looks(u32),
}

impl std::fmt::Display for NoPathRetry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NoPathRetry::Fail => f.write_str("fail"),
            NoPathRetry::Queue => f.write_str("queue"),
            NoPathRetry::Looks(looks) => write!(f, "{looks}"),
        }
    }
}

impl<'de> Deserialize<'de> for NoPathRetry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<NoPathRetry, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = NoPathRetry;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("\"fail\", \"queue\" or a number of looks")
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<NoPathRetry, E> {
                match u32::try_from(number) {
                    Ok(0) => Ok(NoPathRetry::Fail),
                    Ok(looks) => Ok(NoPathRetry::Looks(looks)),
                    Err(_) => Err(E::invalid_value(de::Unexpected::Signed(number), &self)),
                }
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<NoPathRetry, E> {
                match text {
                    "fail" => Ok(NoPathRetry::Fail),
                    "queue" => Ok(NoPathRetry::Queue),
                    _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
                }
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

type Wrong = (&'static str, String);

/// A line of `dmsetup table`, in the parts that keys change.
#[derive(Debug)]
struct Line {
    /// START, LENGTH and the target.
    head: Vec<String>,
    features: Vec<String>,
    handler: Vec<String>,
    first: String,
    groups: Vec<Group>,
}

#[derive(Debug)]
struct Group {
    /// Its name and arguments.
    selector: (String, Vec<String>),
    paths: Vec<(String, Vec<String>)>,
}

/// Takes words off a line. `None` after the last one.
struct Words<'a>(std::str::SplitWhitespace<'a>);

impl Words<'_> {
    fn word(&mut self) -> Option<String> {
        self.0.next().map(str::to_owned)
    }

    /// Its name, without the folder.
    fn device(&mut self) -> Option<String> {
        self.0.next().map(|word| bare_name(word).to_owned())
    }

    fn take(&mut self, count: usize) -> Option<Vec<String>> {
        (0..count).map(|_| self.word()).collect()
    }

    fn number(&mut self) -> Option<usize> {
        self.0.next()?.parse().ok()
    }

    /// A number, and as many words.
    fn counted(&mut self) -> Option<Vec<String>> {
        let count = self.number()?;
        self.take(count)
    }
}

impl Line {
    /// `None`: the line is not a table of a multipath target.
    fn of(text: &str) -> Option<Line> {
        let mut words = Words(text.split_whitespace());
        let head = words.take(3)?;
        let (features, handler) = (words.counted()?, words.counted()?);
        let (groups, first) = (words.number()?, words.word()?);
        let groups = (0..groups).map(|_| {
            let selector = (words.word()?, words.counted()?);
            let (paths, arguments) = (words.number()?, words.number()?);
            let paths = (0..paths).map(|_| Some((words.device()?, words.take(arguments)?)));
            let paths = paths.collect::<Option<Vec<_>>>()?;
            Some(Group { selector, paths })
        });
        let groups = groups.collect::<Option<Vec<_>>>()?;
        words.word().is_none().then_some(Line {
            head,
            features,
            handler,
            first,
            groups,
        })
    }

    fn text(&self) -> String {
        let mut words = self.head.clone();
        let mut counted = |list: &[String]| {
            words.push(list.len().to_string());
            words.extend_from_slice(list);
        };
        counted(&self.features);
        counted(&self.handler);
        words.extend([self.groups.len().to_string(), self.first.clone()]);
        for Group { selector, paths } in &self.groups {
            let arguments = paths.first().map_or(0, |(_, arguments)| arguments.len());
            words.extend([selector.0.clone(), selector.1.len().to_string()]);
            words.extend_from_slice(&selector.1);
            words.extend([paths.len().to_string(), arguments.to_string()]);
            for (device, arguments) in paths {
                words.push(device.clone());
                words.extend_from_slice(arguments);
            }
        }
        words.join(" ")
    }

    fn set_no_path_retry(&mut self, retry: NoPathRetry) {
        const WORD: &str = "queue_if_no_path";
        self.features.retain(|word| word != WORD);
        if retry != NoPathRetry::Fail {
            self.features.insert(0, WORD.to_owned());
        }
    }

    fn set_selector(&mut self, text: &str) -> Result<(), Wrong> {
        const KEY: &str = "path_selector";
        let mut words = Words(text.split_whitespace());
        let selector = words.word().zip(words.counted());
        let all = words.word().is_none();
        let Some(selector) = selector.filter(|_| all) else {
            let what = format!("`{text}`: expected a name, a number and so many words");
            return Err((KEY, format!("{what}, as `service-time 0`")));
        };
        if selector.0 == "io-affinity" {
            let what = "its paths' CPU masks are words of `table`, to which this key adds none";
            return Err((KEY, format!("io-affinity: {what}")));
        }
        for group in &mut self.groups {
            group.selector = selector.clone();
            for (_, arguments) in &mut group.paths {
                arguments.truncate(1);
            }
        }
        Ok(())
    }

    fn set_repeat_count(&mut self, count: u32) -> Result<(), Wrong> {
        for Group { selector, paths } in &mut self.groups {
            if selector.0 == "io-affinity" {
                let what = "means nothing to io-affinity, whose paths have a CPU mask there";
                return Err(("rr_min_io_rq", what.to_owned()));
            }
            for (_, arguments) in paths {
                arguments.truncate(arguments.len().max(1));
                match arguments.first_mut() {
                    Some(first) => *first = count.to_string(),
                    None => arguments.push(count.to_string()),
                }
            }
        }
        Ok(())
    }
}

/// A number and as many words, as in multipath.conf for features and hardware handlers.
fn counted(key: &'static str, text: &str, example: &str) -> Result<Vec<String>, Wrong> {
    let mut words = Words(text.split_whitespace());
    let list = words.counted();
    let all = words.word().is_none();
    list.filter(|_| all).ok_or_else(|| {
        let what = format!("`{text}`: expected a number and so many words, as `{example}`");
        (key, what)
    })
}

impl Mapped {
    /// Applies the keys that change words to the table. An error names the key. A line that is not
    /// of a multipath target stays as it is, for the table's reader to report.
    pub(in super::super) fn write_words(&mut self) -> Result<(), Wrong> {
        let Some(mut line) = Line::of(&self.table) else {
            return Ok(());
        };
        let plain = line.text();
        for (_, write) in KEYS {
            write(self, &mut line)?;
        }
        self.table = line.text();
        self.plain = plain;
        Ok(())
    }

    /// The key whose words make the table wrong, if it is right without them. `None`: it is wrong
    /// by itself.
    pub(in super::super) fn wrong_key(&self, right: impl Fn(&str) -> bool) -> Option<&'static str> {
        let mut line = Line::of(&self.plain).filter(|line| right(&line.text()))?;
        let mut keys = KEYS.iter();
        let wrong = keys.find(|(_, write)| write(self, &mut line).is_err() || !right(&line.text()));
        wrong.map(|(key, _)| *key)
    }
}

/// Applies a key to a line, if the key is written.
type Write = fn(&Mapped, &mut Line) -> Result<(), Wrong>;

/// Keys of words, in the order in which they are written: a later one changes what an earlier one
/// has written.
const KEYS: [(&str, Write); 5] = [
    ("features", |mapped, line| {
        if let Some(features) = &mapped.features {
            line.features = counted("features", &features.0, "1 queue_if_no_path")?;
        }
        Ok(())
    }),
    ("hw_handler", |mapped, line| {
        if let Some(handler) = &mapped.hw_handler {
            line.handler = counted("hw_handler", &handler.0, "1 alua")?;
        }
        Ok(())
    }),
    ("no_path_retry", |mapped, line| {
        if let Some(retry) = mapped.no_path_retry {
            line.set_no_path_retry(retry);
        }
        Ok(())
    }),
    ("path_selector", |mapped, line| {
        match &mapped.path_selector {
            Some(selector) => line.set_selector(selector),
            None => Ok(()),
        }
    }),
    ("rr_min_io_rq", |mapped, line| match mapped.rr_min_io_rq {
        Some(count) => line.set_repeat_count(count),
        None => Ok(()),
    }),
];
