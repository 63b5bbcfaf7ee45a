//! Requests in scripts about a scheduler: parsed and printed.

use super::PolicyQueue;
use blkmq::request::{Bio, BioId, IoClass, IoPrio, Op, RequestId, Sector, Sectors};
use blkmq::time::Jiffies;

/// A request as written: its bio, the number of repetitions, their distance, and whether it
/// bypasses the scheduler.
pub(super) struct Written {
    pub(super) bio: Bio,
    pub(super) times: u64,
    pub(super) gap: u64,
    pub(super) bare: bool,
}

impl PolicyQueue {
    /// One bio, of the pool.
    pub(super) fn parse_bio(&mut self, text: &str) -> Result<BioId, String> {
        let written = self.parse_request(text)?;
        self.pool
            .add_bio(written.bio)
            .ok_or("out of bios".to_owned())
    }

    /// `OP SECTOR+SECTORS [prio=CLASS[/LEVEL]] [by=NAME] [times=N] [gap=SECTORS] [FLAG]...`.
    pub(super) fn parse_request(&mut self, text: &str) -> Result<Written, String> {
        let (mut times, mut gap, mut bare) = (1, 0, false);
        let mut words = text.split_whitespace();
        let (mut bio, mut group) = (Bio::default(), None);
        bio.segments = 1;
        bio.op = match words.next() {
            Some("r") => Op::Read,
            Some("w") => Op::Write,
            Some("d") => Op::Discard,
            Some("z") => Op::WriteZeroes,
            other => return Err(format!("unknown operation {other:?}: r, w, d or z")),
        };
        let range = words.next().and_then(|range| range.split_once('+'));
        let (sector, sectors) = range.ok_or(format!("{text:?}: no SECTOR+SECTORS"))?;
        bio.sector = Sector(parse_number(sector)?);
        bio.sectors = Sectors(parse_number(sectors)?);
        for word in words {
            match word.split_once('=').unwrap_or((word, "")) {
                ("prio", prio) => bio.ioprio = parse_prio(prio)?,
                ("group", path) => group = Some(self.around.group(path)?),
                ("noidle", "") => bio.flags.noidle = true,
                ("segments", count) => bio.segments = parse_number(count)?,
                ("nomerge", "") => bio.flags.nomerge = true,
                ("sync", "") => bio.flags.sync = true,
                ("fua", "") => bio.flags.fua = true,
                ("meta", "") => bio.flags.meta = true,
                ("bare", "") => bare = true,
                ("by", name) => bio.io_context = self.around.task(name),
                ("times", number) => times = parse_number(number)?,
                ("gap", sectors) => gap = parse_number(sectors)?,
                _ => return Err(format!("unknown property {word:?} of a request")),
            }
        }
        bio.group = group.unwrap_or_else(|| self.around.group_of(bio.io_context));
        Ok(Written {
            bio,
            times,
            gap,
            bare,
        })
    }

    /// `20ms` in ticks, rounded up.
    pub(super) fn millis(&self, text: &str) -> Result<Jiffies, String> {
        let number = text
            .strip_suffix("ms")
            .ok_or(format!("{text:?} is not a time in ms"))?;
        Ok(Jiffies::from_millis(parse_number(number)?, self.around.hz))
    }

    /// Operation, address and further properties: `w 8+8 prio=rt by=a`.
    pub(super) fn name(&self, rq: RequestId) -> String {
        let request = &self.pool[rq];
        let class = match request.ioprio.class {
            IoClass::None => "",
            IoClass::RealTime => " prio=rt",
            IoClass::BestEffort => " prio=be",
            IoClass::Idle => " prio=idle",
        };
        let level = match request.ioprio.level {
            0 => String::new(),
            level => format!("/{level}"),
        };
        let range = format!("{}+{}", request.sector.0, request.sectors.0);
        let by = self.around.name_of(request.io_context);
        format!("{} {range}{class}{level}{by}", letter(request.op))
    }
}

pub(super) fn letter(op: Op) -> &'static str {
    match op {
        Op::Read => "r",
        Op::Write => "w",
        Op::Discard => "d",
        Op::WriteZeroes => "z",
        Op::Flush => "f",
    }
}

pub(super) fn parse_prio(text: &str) -> Result<IoPrio, String> {
    let (class, level) = text.split_once('/').unwrap_or((text, "0"));
    let class = match class {
        "none" => IoClass::None,
        "rt" => IoClass::RealTime,
        "be" => IoClass::BestEffort,
        "idle" => IoClass::Idle,
        _ => {
            return Err(format!(
                "unknown priority class {class:?}: none, rt, be or idle"
            ));
        }
    };
    Ok(IoPrio {
        class,
        level: parse_number(level)?,
    })
}

pub(super) fn parse_number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| format!("{text:?} is not a number of the right size"))
}

pub(super) fn yes_no(answer: bool) -> String {
    if answer { "yes" } else { "no" }.to_owned()
}

/// log2 of the bits in a word of a tag map of this depth (sbitmap_calculate_shift()).
pub(super) fn word_shift(depth: u32) -> u32 {
    let mut shift = 6;
    while depth >= 4 && shift > 0 && (4 << shift) > depth {
        shift -= 1;
    }
    shift
}
