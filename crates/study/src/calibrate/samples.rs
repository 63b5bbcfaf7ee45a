//! Samples that perf printed: `perf script`, `perf report --stdio`, or folded stacks.
//!
//! A sample is a weight and a stack. Nothing here knows functions; read next: `shares.rs`.

/// Where a function runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Space {
    Kernel,
    User,
    /// Folded stacks need not say.
    Unsaid,
}

/// One function of a stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame<'a> {
    /// Without offset and without suffixes of the compiler.
    pub symbol: &'a str,
    pub space: Space,
}

/// Samples with the same stack, or one of them.
#[derive(Clone, PartialEq, Debug)]
pub struct Stack<'a> {
    pub weight: f64,
    /// The running function first, then its callers.
    pub frames: Vec<Frame<'a>>,
}

/// The text of one recording.
#[derive(Clone, PartialEq, Debug)]
pub struct Samples<'a> {
    /// The program's words for the text's format.
    pub format: &'static str,
    pub stacks: Vec<Stack<'a>>,
    /// Samples that the text is about, of all that were recorded: rows of a report can be filtered.
    pub listed_percent: f64,
}

const SCRIPT: &str = "perf script";
const REPORT: &str = "perf report --stdio";
const FOLDED: &str = "folded stacks";

/// Reports with rows for functions and for their callers add up to more.
const PERCENT_MAX: f64 = 101.0;

impl<'a> Samples<'a> {
    /// Reads a text. Its first line that is neither empty nor a comment chooses the format.
    pub fn parse(text: &'a str) -> Result<Samples<'a>, String> {
        let (number, first) = lines(text)
            .find(|(_, line)| !is_remark(line))
            .ok_or("there is no sample")?;
        let (format, stacks) = if percent(word(first).0).is_some() {
            (REPORT, report(text))
        } else if time(first).is_some() {
            (SCRIPT, script(text))
        } else if first.rsplit_once(' ').is_some_and(|(_, n)| is_number(n)) {
            (FOLDED, folded(text))
        } else {
            return Err(format!(
                "line {number}: must be of {SCRIPT} (`comm pid time: period event:`), of {REPORT} \
                 (`12.34%  [k] symbol`) or of {FOLDED} (`outer;inner 5`)"
            ));
        };
        let stacks = stacks?;
        let sum = stacks.iter().map(|stack| stack.weight).sum::<f64>();
        if sum <= 0.0 {
            return Err("all samples have the weight 0".to_owned());
        }
        if format == REPORT && sum > PERCENT_MAX {
            return Err(format!(
                "the rows add up to {sum:.2} %, not to 100 %: print them with --no-children, for \
                 one event"
            ));
        }
        let listed_percent = if format == REPORT { sum } else { 100.0 };
        Ok(Samples {
            format,
            stacks,
            listed_percent,
        })
    }
}

fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate();
    lines.map(|(index, line)| (index + 1, line.trim_end()))
}

fn is_remark(line: &str) -> bool {
    line.is_empty() || line.starts_with('#')
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// The first word and what follows it.
fn word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    text.split_once(char::is_whitespace).unwrap_or((text, ""))
}

fn plain(symbol: &str) -> &str {
    let end = symbol.find('.').filter(|&end| end > 0);
    end.map_or(symbol, |end| &symbol[..end])
}

fn kernel(symbol: &str) -> Frame<'_> {
    Frame {
        symbol: plain(symbol),
        space: Space::Kernel,
    }
}

/// The one event of a recording, whose samples must be of time.
struct Event<'a>(Option<&'a str>);

impl<'a> Event<'a> {
    fn is(&mut self, line: usize, name: &'a str) -> Result<(), String> {
        if !(name.contains("cycles") || name.contains("clock")) || name.contains(',') {
            return Err(format!(
                "line {line}: event {name}: must be cycles or cpu-clock, and alone: perf record -e \
                 cycles"
            ));
        }
        match self.0.replace(name) {
            Some(other) if other != name => Err(format!(
                "line {line}: event {name} after {other}: there must be one: perf record -e cycles"
            )),
            _ => Ok(()),
        }
    }
}

/// The time of a sample's first line, `17334.808223:`.
fn time(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    words.find(|word| {
        let parts = word.strip_suffix(':').and_then(|time| time.split_once('.'));
        parts.is_some_and(|(seconds, rest)| is_number(seconds) && is_number(rest))
    })
}

fn script(text: &str) -> Result<Vec<Stack<'_>>, String> {
    let (mut stacks, mut event, mut open) = (Vec::<Stack>::new(), Event(None), false);
    for (number, line) in lines(text) {
        let at = |what: String| format!("line {number}: {what}");
        let first = time(line).filter(|_| !line.starts_with('\t'));
        if is_remark(line) {
            open = false;
        } else if let Some(time) = first {
            let (name, stack) = sample(line, time).map_err(at)?;
            event.is(number, name)?;
            stacks.push(stack);
            open = true;
        } else if !open || !line.starts_with(char::is_whitespace) {
            let what = "neither a sample (`comm pid time: period event:`) nor a frame of one";
            return Err(at(what.to_owned()));
        } else if let Some(stack) = stacks.last_mut() {
            stack.frames.push(frame(line).map_err(at)?);
        }
    }
    Ok(stacks)
}

/// `comm pid [cpu] time: period event: address symbol (file)`; the frame is there without stacks.
fn sample<'a>(line: &'a str, time: &str) -> Result<(&'a str, Stack<'a>), String> {
    let (before, after) = line.split_once(time).unwrap_or((line, ""));
    let mut before = before.split_whitespace().rev().peekable();
    before.next_if(|word| word.starts_with('['));
    let pid = before.next().unwrap_or_default();
    if !is_number(pid.split('/').next().unwrap_or_default()) || before.next().is_none() {
        return Err(format!(
            "pid: \"{pid}\" before the time must be a number after the command's name"
        ));
    }
    let (mut name, mut rest) = word(after);
    let mut weight = 1.0;
    if is_number(name) {
        weight = period(name)?;
        (name, rest) = word(rest);
    }
    let name = name.strip_suffix(':').ok_or_else(|| {
        format!("event: \"{name}\" after the time and the period must end with `:`")
    })?;
    let frames = match rest.trim().is_empty() {
        true => Vec::new(),
        false => vec![frame(rest)?],
    };
    let name = name.trim_end_matches(':');
    Ok((name, Stack { weight, frames }))
}

fn period(word: &str) -> Result<f64, String> {
    let value = word.parse::<u64>();
    let value = value.map_err(|_| format!("period: {word} must be below 2^64"))?;
    Ok(value as f64)
}

/// `address symbol+0x12 (file)`. Addresses of the kernel are the upper half.
fn frame(line: &str) -> Result<Frame<'_>, String> {
    let (address, rest) = word(line);
    let value = u64::from_str_radix(address, 16).map_err(|_| {
        format!("address: \"{address}\" must be hexadecimal, before a symbol and (file)")
    })?;
    let inner = rest.trim().strip_suffix(')');
    let inner = inner.map(|inner| inner.strip_suffix(" (deleted)").unwrap_or(inner));
    let (symbol, _) = inner
        .and_then(|inner| inner.rsplit_once(" ("))
        .ok_or_else(|| format!("file: \"{}\" must end with (file)", rest.trim()))?;
    let symbol = symbol.rsplit_once("+0x").map_or(symbol, |(name, _)| name);
    Ok(match value >> 63 {
        1 => kernel(symbol),
        _ => Frame {
            symbol,
            space: Space::User,
        },
    })
}

fn percent(word: &str) -> Option<f64> {
    let number = word.strip_suffix('%')?;
    let digits = number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let value = number.parse().ok().filter(|_| digits);
    value.filter(|value| (0.0..=100.0).contains(value))
}

fn report(text: &str) -> Result<Vec<Stack<'_>>, String> {
    let (mut stacks, mut event) = (Vec::new(), Event(None));
    for (number, line) in lines(text) {
        let samples = line.strip_prefix("# Samples:");
        if let Some((_, name)) = samples.and_then(|rest| rest.split_once(" of event")) {
            let name = name.trim_start_matches('s').trim();
            event.is(number, name.trim_matches('\''))?;
        }
        let text = line.trim_start();
        // A stack is printed below its row, deeper than any row's percentage begins.
        let deep = line.len() - text.len() > 9;
        if is_remark(line) || text.starts_with(['|', '-']) || (deep && !stacks.is_empty()) {
            continue;
        }
        let row = row(text).map_err(|what| format!("line {number}: {what}"))?;
        stacks.push(row);
    }
    Ok(stacks)
}

/// `12.34%  command  file  [k] symbol`; with a column Children the second percentage counts.
fn row(line: &str) -> Result<Stack<'_>, String> {
    let (first, mut rest) = word(line);
    let mut weight = percent(first).ok_or_else(|| {
        format!("overhead: \"{first}\" must be a percentage, as in `12.34%  [k] symbol`")
    })?;
    if let Some(own) = percent(word(rest).0) {
        (weight, rest) = (own, word(rest).1);
    }
    let marks = [("[k] ", Space::Kernel), ("[.] ", Space::User)];
    let found = marks.into_iter().find_map(|(mark, space)| {
        let (_, symbol) = rest.split_once(mark)?;
        Some((symbol.trim_start(), space))
    });
    let (symbol, space) =
        found.ok_or("symbol: no [k] or [.] before it: perf report -F overhead,symbol")?;
    // Later columns are two spaces away.
    let symbol = symbol.split("  ").next().unwrap_or_default();
    let frame = match space {
        Space::Kernel => kernel(symbol),
        _ => Frame { symbol, space },
    };
    let frames = vec![frame];
    Ok(Stack { weight, frames })
}

fn folded(text: &str) -> Result<Vec<Stack<'_>>, String> {
    let mut stacks = Vec::new();
    for (number, line) in lines(text).filter(|(_, line)| !is_remark(line)) {
        let at = |what: &str| format!("line {number}: {what}");
        let (frames, count) = line.rsplit_once(' ').unwrap_or(("", line));
        let weight = count.parse::<u64>().map_err(|_| {
            at(&format!(
                "count: \"{count}\" must be a number, as in `outer;inner 5`"
            ))
        })?;
        if frames.split(';').any(|frame| frame.trim().is_empty()) {
            return Err(at("a function without a name; `outer;inner 5` is right"));
        }
        let marked = frames.ends_with("_[k]");
        let frames = frames
            .rsplit(';')
            .map(|name| match name.strip_suffix("_[k]") {
                Some(name) => kernel(name),
                None if marked => Frame {
                    symbol: name,
                    space: Space::User,
                },
                None => Frame {
                    symbol: plain(name.strip_suffix("_[i]").unwrap_or(name)),
                    space: Space::Unsaid,
                },
            });
        stacks.push(Stack {
            weight: weight as f64,
            frames: frames.collect(),
        });
    }
    Ok(stacks)
}

#[cfg(test)]
mod tests;
