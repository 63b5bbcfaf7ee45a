//! Text of a stall report.

use std::fmt;

use blkmq::request::Place;

use super::{Below, Carried, Stall, StalledRequest, Why};

/// Requests shown in full.
const SHOWN: usize = 8;

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::NothingLeft => write!(f, "nothing is left to happen, but I/O is not complete"),
            Why::OnlyPolls => write!(
                f,
                "only polls go on, and none of them will ever find a completion"
            ),
            Why::InVain(labels) => write!(
                f,
                "work goes on without progress: {labels} labels without an I/O that ended, and no \
                 device, timer or pause will change that"
            ),
            Why::NoTime => write!(f, "work goes on, but time does not"),
            Why::TooLong(after) => write!(
                f,
                "no I/O has ended for {} s, though events go on",
                after.0 / 1_000_000_000
            ),
        }
    }
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "stall at {} s: {}", self.at, self.why)?;
        writeln!(f, "  last completion at {} s", self.progress)?;
        for rq in self.requests.iter().take(SHOWN) {
            writeln!(f, "  {rq}")?;
        }
        if self.requests.len() > SHOWN {
            writeln!(f, "  and {} more requests", self.requests.len() - SHOWN)?;
        }
        for (thread, count) in self.threads.iter().take(SHOWN) {
            writeln!(f, "  thread {thread} waits for {count} I/O")?;
        }
        let lists = [
            ("", &self.busy),
            ("", &self.tag_waits),
            ("", &self.hctxs),
            ("", &self.restarts),
            ("scheduler ", &self.schedulers),
            ("device: ", &self.devices),
        ];
        for (what, lines) in lists {
            for line in lines.iter().take(SHOWN) {
                writeln!(f, "  {what}{line}")?;
            }
        }
        self.conclusion(f)
    }
}

impl Stall {
    /// The event that would have to happen, and will not.
    fn conclusion(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requests = self.requests.iter().map(StalledRequest::lowest);
        let with_device = requests.filter(|rq| rq.place == Place::Device).count();
        let pending = self.work_pending;
        match (self.why, with_device) {
            (Why::NothingLeft, 0) => writeln!(
                f,
                "  none of them is with the device, no run of a hardware queue is pending \
                 ({pending} work items), and no tag will be freed"
            ),
            (Why::NothingLeft, _) => writeln!(
                f,
                "  {with_device} of them are with the device, which has announced no completion \
                 and set no timer"
            ),
            (Why::OnlyPolls, _) => writeln!(
                f,
                "  {with_device} of them are with the device, which has announced no completion \
                 and set no timer: their pollers find nothing"
            ),
            (Why::InVain(_) | Why::NoTime | Why::TooLong(_), _) => writeln!(
                f,
                "  {with_device} of them are with the device, {pending} work items are pending"
            ),
        }
    }
}

impl fmt::Display for StalledRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let age = self.age.0 / 1000;
        let tag = self.tag.map_or("no driver tag".to_owned(), |tag| {
            format!("driver tag {tag}")
        });
        let disk = self.disk.as_deref();
        let disk = disk.map_or(String::new(), |name| format!("{name} "));
        write!(
            f,
            "{disk}request {}: {:?} {}+{}, {}, hctx {}, {tag}, allocated {age} us ago",
            self.slot,
            self.op,
            self.sector,
            self.sectors,
            place_name(self.place),
            self.hctx,
        )?;
        match &self.below {
            None => Ok(()),
            Some(Below::Clone(clone)) => write!(f, "\n    its clone below: {clone}"),
            Some(Below::Nothing) => write!(
                f,
                "\n    no clone of it is below, and the device above has not ended it"
            ),
            Some(Below::Unmapped) => write!(f, "\n    waits for kdmwork, which is to map it"),
        }?;
        match &self.carries {
            None => Ok(()),
            Some(carried) => write!(f, "\n    {carried}"),
        }
    }
}

impl fmt::Display for Carried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let device = &self.device;
        match self.bios[..] {
            [(sector, sectors)] => write!(f, "carries the bio {sector}+{sectors} of {device}"),
            [(sector, sectors), ..] => {
                let count = self.bios.len();
                write!(
                    f,
                    "carries {count} bios of {device}, the first {sector}+{sectors}"
                )
            }
            [] => Ok(()),
        }
    }
}

impl StalledRequest {
    /// How far it, or its clone, has come: a request that waits in a queue comes after the one it
    /// waits for.
    pub(super) fn stands_back(&self) -> u8 {
        match self.lowest().place {
            Place::Device | Place::Completing => 0,
            Place::Free | Place::Path | Place::Dispatch | Place::Requeue | Place::Flush => 1,
            Place::Plug | Place::PlugCache | Place::Ctx | Place::Elevator | Place::Side => 2,
        }
    }

    /// The lowest of a request and its clones, which shows what it waits for.
    fn lowest(&self) -> &StalledRequest {
        match &self.below {
            Some(Below::Clone(clone)) => clone.lowest(),
            Some(Below::Nothing | Below::Unmapped) | None => self,
        }
    }
}

fn place_name(place: Place) -> &'static str {
    match place {
        Place::Free => "free",
        Place::Path => "in the hands of a path",
        Place::Plug => "in a plug",
        Place::PlugCache => "allocated ahead",
        Place::Ctx => "in a software queue",
        Place::Elevator => "in the scheduler",
        Place::Dispatch => "on the dispatch list",
        Place::Requeue => "on the requeue list",
        Place::Device => "with the device",
        Place::Completing => "being ended",
        Place::Flush => "waiting for a flush",
        Place::Side => "in a bucket or on a side list of the scheduler",
    }
}
