//! What blkparse prints: its default lines, and lines of `-f SPEC`.
//!
//! The summary after the events is not read; events after it are an error. A line does not say
//! whether a merge is of a bio or of a request; completions are taken for those of requests. Read
//! first: blkparse(1).

use blkmq::time::SimTime;

use super::super::event::{Action, Categories, Device, Event};
use super::super::lines::Out;
use super::{Bad, Parsed, Parser, number};
use crate::ftrace::fields::Fields;
use crate::line_format::{Column, Format, LETTERS, place_of};

/// EAGAIN: a bio that would have had to wait for a request.
const EAGAIN: u16 = 11;

/// The columns that a capture script may ask for; recognised by their content.
const FULL: &str = "%D,%c,%s,%T.%9t,%p,%a,%d,%S,%n,%N,%e,%C";

#[derive(Debug, Default)]
pub(crate) struct BlkparseText {
    /// Of `-f`; else blkparse's own.
    columns: Option<Columns>,
    /// Neither form was given: the first line decides.
    decided: bool,
    /// The summary has begun.
    ended: bool,
}

impl BlkparseText {
    pub(crate) fn of(columns: Columns) -> BlkparseText {
        BlkparseText {
            columns: Some(columns),
            decided: true,
            ended: false,
        }
    }

    pub(crate) fn begins(lines: &[&str]) -> bool {
        let first = lines.iter().find(|line| !is_remark(line));
        first.is_some_and(|line| is_full(line) || default_line(line).is_ok())
    }
}

impl Parser for BlkparseText {
    fn line(&mut self, line: &str, out: &mut Out<'_>) -> Parsed<()> {
        if is_remark(line) {
            return Ok(());
        }
        if self.ended || is_summary(line) {
            self.ended = true;
            let is_event = match &self.columns {
                Some(columns) => columns.line(line).is_ok(),
                None => default_line(line).is_ok(),
            };
            return match is_event {
                true => Err(Bad::new("line", line, "no event after a summary")),
                false => Ok(()),
            };
        }
        if !self.decided {
            self.decided = true;
            self.columns = is_full(line).then(full);
        }
        let said = match &self.columns {
            Some(columns) => columns.line(line)?,
            None => default_line(line)?,
        };
        if !said.name.is_empty() && said.name != "(null)" {
            // Every CPU's idle task is pid 0.
            let name = if said.event.pid == 0 {
                "swapper"
            } else {
                said.name
            };
            out.process(said.event.pid, name);
        }
        match said.event.action {
            Action::Message => out.message(said.event, said.text),
            _ => out.event(said.event),
        }
        Ok(())
    }

    fn lacks(&self) -> String {
        let mut lacks = "no priorities, no hardware queues".to_owned();
        for column in self.columns.iter().flat_map(Columns::absent) {
            lacks = lacks + ", no " + column;
        }
        format!("a text of blkparse has {lacks}")
    }
}

/// `Input file sda.blktrace.0 added`, which blkparse prints to its error stream.
fn is_remark(line: &str) -> bool {
    line.starts_with("Input file ")
}

/// `CPU0 (sda):` or `Total (sda):`.
fn is_summary(line: &str) -> bool {
    let of = line.strip_prefix("Total").or_else(|| {
        let rest = line.strip_prefix("CPU")?;
        Some(rest.trim_start_matches(|c: char| c.is_ascii_digit()))
    });
    of.is_some_and(|rest| rest.starts_with(" (") && rest.trim_end().ends_with("):"))
}

fn full() -> Columns {
    Columns::new(FULL).expect("it is right")
}

fn is_full(line: &str) -> bool {
    full().line(line).is_ok()
}

/// Content of a line.
struct Said<'a> {
    event: Event,
    /// Of the process.
    name: &'a str,
    /// Of a message.
    text: &'a str,
}

fn action(letters: &str) -> Parsed<Action> {
    let action = Action::from_letters(letters);
    action
        .or((letters == "?").then_some(Action::Unknown))
        .ok_or_else(|| Bad::new("action", letters, "the letters of an action, as Q or UT"))
}

fn rwbs(letters: &str, action: Action) -> Parsed<Categories> {
    let bits = Categories::from_rwbs(letters);
    let bits = bits.ok_or_else(|| Bad::new("RWBS", letters, "letters such as R, WS or FN"))?;
    Ok(bits.of_action(action))
}

fn device(text: &str) -> Parsed<Device> {
    Device::parse(text).ok_or_else(|| Bad::new("device", text, "major,minor"))
}

/// The error as the record has it: a negative errno, or its 16 bits.
fn errno(field: &str) -> Parsed<u16> {
    let number = field.parse::<i32>().ok();
    let number = number.filter(|number| (-0x8000..=0xffff).contains(number));
    let number = number.ok_or_else(|| Bad::new("error", field, "an error number"))?;
    Ok((number as u16).wrapping_neg())
}

/// A completion is a request's, unless it can only be that of a bio without one.
fn of_request(event: &mut Event) {
    let categories = event.categories;
    let waited = event.error != EAGAIN;
    if event.action == Action::Complete && waited && !categories.any(Categories::PC) {
        event.categories = categories.with(Categories::FS);
    }
}

fn bytes_of(sectors: u64) -> Parsed<u32> {
    let bytes = sectors.checked_mul(512).and_then(|n| u32::try_from(n).ok());
    bytes.ok_or_else(|| Bad::new("sectors", &sectors.to_string(), "at most 8388607"))
}

fn default_line(line: &str) -> Parsed<Said<'_>> {
    let mut f = Fields::new(line);
    let number = device(f.word("device", "major,minor")?)?;
    let cpu = f.number("CPU")?;
    let sequence = f.number("sequence")?;
    let time = f.word("time", "seconds.nanoseconds")?;
    let time = crate::ftrace::timestamp(time)
        .ok_or_else(|| Bad::new("time", time, "seconds.nanoseconds"))?;
    let pid = f.number("PID")?;
    let mut letters = f.word("action", "letters of an action")?;
    // A message with a cgroup has it here.
    if f.rest().starts_with("m ") && Action::from_letters(letters).is_none() {
        letters = f.word("action", "m")?;
    }
    let action = action(letters)?;
    let categories = rwbs(f.word("RWBS", "letters such as R or WS")?, action)?;
    let mut said = Said {
        event: Event {
            device: number,
            cpu,
            sequence,
            pid,
            categories,
            ..Event::new(time, action)
        },
        name: "",
        text: "",
    };
    said.tail(f)?;
    of_request(&mut said.event);
    Ok(said)
}

impl<'a> Said<'a> {
    /// What follows the RWBS column.
    fn tail(&mut self, mut f: Fields<'a>) -> Parsed<()> {
        let event = &mut self.event;
        match event.action {
            Action::Message => {
                self.text = f.rest();
                return Ok(());
            }
            // No letters, and no tail that is known.
            Action::Unknown => return Ok(()),
            Action::Plug => self.name = f.bracket("process")?,
            Action::Unplug | Action::UnplugTimer => {
                self.name = f.bracket_then("process")?;
                event.extra = f.number("depth")?;
            }
            Action::Split => {
                event.sector = f.number("sector")?;
                f.literal("/")?;
                event.extra = f.number("new sector")?;
                // The front part ends there; both are cut to 32 bits.
                let sectors = (event.extra as u32).wrapping_sub(event.sector as u32);
                event.bytes = bytes_of(u64::from(sectors))?;
                self.name = f.bracket("process")?;
            }
            Action::Remap => {
                event.sector = f.number("sector")?;
                f.literal("+")?;
                event.bytes = bytes_of(f.number("sectors")?)?;
                f.literal("<-")?;
                let from = f.old_device()?;
                event.from = device(&from.to_string())?;
                event.extra = f.number("from sector")?;
            }
            Action::Complete | Action::Requeue => {
                Said::range(event, &mut f)?;
                event.error = errno(f.bracket("error")?)?;
            }
            _ => {
                Said::range(event, &mut f)?;
                self.name = f.bracket("process")?;
            }
        }
        Ok(f.end()?)
    }

    /// `sector + sectors`, with -t `(delta)` after it; a sector alone; nothing; or `bytes
    /// (command)` of a passthrough request.
    fn range(event: &mut Event, f: &mut Fields<'a>) -> Parsed<()> {
        let mut number = 0;
        if !f.rest().starts_with(['[', '(']) {
            number = f.number("sector")?;
        }
        if f.rest().starts_with('+') {
            f.literal("+")?;
            event.sector = number;
            event.bytes = bytes_of(f.number("sectors")?)?;
            if f.rest().starts_with('(') {
                f.parenthesis()?;
            }
        } else if f.rest().starts_with('(') {
            f.parenthesis()?;
            let bits = event.categories.0 & !Categories::FS.0;
            event.categories = Categories(bits).with(Categories::PC);
            event.bytes = u32::try_from(number)
                .map_err(|_| Bad::new("bytes", &number.to_string(), "less than 4 GiB"))?;
        } else {
            event.sector = number;
        }
        Ok(())
    }
}

/// Columns of `blkparse -f SPEC`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Columns(Vec<Column>);

impl Columns {
    /// Reads a format as blkparse does. The error is a sentence.
    pub(crate) fn new(spec: &str) -> Result<Columns, String> {
        let format = Format::parse(spec).map_err(|what| format!("{spec}: {what}"))?;
        let mut columns = format.columns();
        while let Some(Column::Literal('\n')) = columns.last() {
            columns.pop();
        }
        let columns = Columns(columns);
        for (all, what) in [
            ("a", "the action"),
            ("d", "RWBS, the direction"),
            ("T", "the seconds of the time"),
            ("t", "the nanoseconds of the time"),
            ("S", "the sector"),
            ("nN", "sectors, or %N, bytes"),
        ] {
            if !all.chars().any(|field| columns.has(field)) {
                let first = all.chars().next().unwrap_or_default();
                return Err(format!("{spec}: it lacks %{first}, {what}"));
            }
        }
        let fields = columns.0.windows(2);
        let touch = fields.filter(|two| !two.iter().any(|c| matches!(c, Column::Literal(_))));
        if touch.count() > 0 {
            return Err(format!("{spec}: nothing separates two of its fields"));
        }
        Ok(columns)
    }

    fn has(&self, field: char) -> bool {
        self.0.contains(&Column::Field(field))
    }

    /// What lines of these columns do not say, though blkparse's own do.
    fn absent(&self) -> impl Iterator<Item = &'static str> {
        let of = [
            ('c', "CPUs"),
            ('p', "process numbers"),
            ('C', "process names"),
            ('U', "plug depths"),
            ('e', "errors"),
        ];
        let device = !(self.has('D') || self.has('M') && self.has('m'));
        let device = device.then_some("devices");
        let absent: Vec<_> = of
            .into_iter()
            .filter(|(field, _)| !self.has(*field))
            .collect();
        absent.into_iter().map(|(_, what)| what).chain(device)
    }

    fn line<'a>(&self, line: &'a str) -> Parsed<Said<'a>> {
        let mut values = Values([""; LETTERS]);
        let mut rest = line;
        for (at, column) in self.0.iter().enumerate() {
            let after = &self.0[at + 1..];
            match *column {
                Column::Literal(letter) if letter.is_whitespace() => rest = rest.trim_start(),
                Column::Literal(letter) => {
                    let found = rest.trim_start();
                    rest = found
                        .strip_prefix(letter)
                        .ok_or_else(|| Bad::new("separator", found, &format!("`{letter}`")))?;
                }
                Column::Field(field) => rest = values.take(field, rest, after),
            }
        }
        if !rest.trim().is_empty() {
            return Err(Bad::new("end of line", rest, "nothing more"));
        }
        values.said()
    }
}

/// Texts of the fields of a line, as `place_of` numbers their letters.
struct Values<'a>([&'a str; LETTERS]);

impl<'a> Values<'a> {
    /// Takes a field from the beginning of `rest`; returns what is left.
    fn take(&mut self, field: char, rest: &'a str, after: &[Column]) -> &'a str {
        let rest = rest.trim_start();
        let stop = match after.first() {
            Some(Column::Literal(letter)) => Some(*letter),
            _ => None,
        };
        let is_last = !after.iter().any(|next| matches!(next, Column::Field(_)));
        let digits = |text: &str| {
            let digit = |c: char| !c.is_ascii_digit() && c != '-';
            text.find(digit).unwrap_or(text.len())
        };
        let length = match field {
            // 8,0 is padded on both sides of its comma.
            'D' => match rest.split_once(',') {
                Some((major, minor)) => major.len() + 1 + digits(minor),
                None => rest.len(),
            },
            'C' | 'P' | 'z' | 'a' | 'd' => match stop {
                None => rest.len(),
                Some(letter) if is_last => rest.rfind(letter).unwrap_or(rest.len()),
                Some(letter) => rest.find(letter).unwrap_or(rest.len()),
            },
            _ => digits(rest),
        };
        let (value, rest) = rest.split_at(length);
        self.0[place_of(field)] = value.trim_end();
        rest
    }

    fn get(&self, field: char) -> &'a str {
        self.0[place_of(field)]
    }

    /// A number, zero if there is no such column.
    fn number<T: std::str::FromStr + Default>(
        &self,
        letter: char,
        name: &'static str,
    ) -> Parsed<T> {
        match self.get(letter) {
            "" => Ok(T::default()),
            text => number(name, text),
        }
    }

    fn said(&self) -> Parsed<Said<'a>> {
        for (letter, field) in [('a', "action"), ('d', "RWBS"), ('T', "time"), ('t', "time")] {
            if self.get(letter).is_empty() {
                return Err(Bad::new(field, "", "a value"));
            }
        }
        let action = action(self.get('a'))?;
        let categories = rwbs(self.get('d'), action)?;
        let (seconds, ns): (u64, u64) = (self.number('T', "time")?, self.number('t', "time")?);
        let time = seconds
            .checked_mul(1_000_000_000)
            .filter(|_| ns < 1_000_000_000);
        let time =
            time.ok_or_else(|| Bad::new("time", self.get('T'), "seconds and nanoseconds"))?;
        let device = match (self.get('D'), self.get('M'), self.get('m')) {
            ("", "", _) | ("", _, "") => Device::default(),
            ("", major, minor) => device(&format!("{major},{minor}"))?,
            (both, _, _) => device(both)?,
        };
        let bytes = match self.get('N') {
            "" => bytes_of(self.number('n', "sectors")?)?,
            _ => self.number('N', "bytes")?,
        };
        let mut event = Event {
            device,
            bytes,
            categories,
            cpu: self.number('c', "CPU")?,
            sequence: self.number('s', "sequence")?,
            pid: self.number('p', "PID")?,
            sector: self.number('S', "sector")?,
            ..Event::new(SimTime(time + ns), action)
        };
        match action {
            Action::Complete | Action::Requeue if !self.get('e').is_empty() => {
                event.error = errno(self.get('e'))?;
            }
            Action::Unplug | Action::UnplugTimer => event.extra = self.number('U', "depth")?,
            _ => {}
        }
        of_request(&mut event);
        Ok(Said {
            event,
            name: self.get('C'),
            text: "",
        })
    }
}
