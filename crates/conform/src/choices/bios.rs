//! Groups the records of a bio-based target: the path and the time of each bio.
//!
//! A bio is mapped between its Q and the A of its clone on a path, or, if a worker maps it later,
//! the clone's Q there. The end of the clone reaches the selector between the C of the path and
//! that of the bio. There are no tags. Not here: requests (`reading.rs`), the verdict (`order.rs`).
//! Kernel: __map_bio(), multipath_end_io_bio() in drivers/md/dm-mpath.c (6.1.192).

use blkmq::dm::{Incoming, Mapped, PathId};
use blkmq::request::{BioId, CpuId, Status};
use blkmq::time::SimTime;
use trace::blktrace::{Action, Event};

use super::What;
use super::reading::{Reading, status_of};

/// A bio of the stacked device that has not ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bio {
    sector: u64,
    bytes: u32,
    cpu: u32,
    /// When it came, or its last clone had failed.
    since: SimTime,
    /// Its path, and when its clone came there.
    path: Option<(PathId, SimTime)>,
    /// The clone's Q was there.
    below: bool,
    /// How the clone ended, and when.
    ended: Option<(Status, SimTime)>,
}

impl Bio {
    fn is(&self, sector: u64, bytes: u32) -> bool {
        (self.sector, self.bytes) == (sector, bytes)
    }

    fn runs_on(&self, path: PathId) -> bool {
        self.ended.is_none() && self.path.is_some_and(|(of, _)| of == path)
    }

    /// Its clone has failed, and the target has it still.
    fn has_failed(&self) -> bool {
        self.ended.is_some_and(|(status, _)| status != Status::Ok)
    }
}

impl Reading {
    /// A record of the device above or of a path.
    pub(super) fn takes_bio(&mut self, event: &Event) {
        if event.device == self.above.1 {
            return self.takes_bio_above(event);
        }
        let path = self.paths.iter().position(|(_, of)| *of == event.device);
        if let Some(path) = path {
            self.takes_clone(event, PathId(path as u16));
        }
    }

    fn takes_bio_above(&mut self, event: &Event) {
        match event.action {
            Action::Queue if event.bytes == 0 => {
                self.not_followed = Some("flushes are not followed");
            }
            Action::Split => self.not_followed = Some("bios that are cut are not followed"),
            Action::Queue => self.bios.push(Bio {
                sector: event.sector,
                bytes: event.bytes,
                cpu: event.cpu,
                since: event.time,
                path: None,
                below: false,
                ended: None,
            }),
            Action::Complete if event.bytes > 0 => {
                let is = |bio: &Bio| bio.is(event.sector, event.bytes);
                let over = |bio: &Bio| is(bio) && (bio.ended.is_some() || bio.path.is_none());
                if let Some(at) = self.bios.iter().position(over) {
                    let bio = self.bios.remove(at);
                    self.clone_is_over(&bio, event.time, false);
                }
            }
            _ => {}
        }
    }

    fn takes_clone(&mut self, event: &Event, path: PathId) {
        match event.action {
            Action::Remap if event.from == self.above.1 => {
                let new = |bio: &Bio| bio.path.is_none() && bio.is(event.extra, event.bytes);
                let own = |bio: &Bio| new(bio) && bio.cpu == event.cpu;
                let own = self.bios.iter().position(own);
                if let Some(at) = own.or_else(|| self.bios.iter().position(new)) {
                    self.bios[at].path = Some((path, event.time));
                }
            }
            Action::Queue => self.clone_comes(event, path),
            Action::Complete => {
                let (mut from, mut left) = (event.sector, event.bytes);
                let is = |bio: &Bio, from, left| {
                    bio.below && bio.runs_on(path) && bio.sector == from && bio.bytes <= left
                };
                while let Some(bio) = self.bios.iter_mut().find(|bio| is(bio, from, left)) {
                    bio.ended = Some((status_of(event.error), event.time));
                    from = from.wrapping_add(u64::from(bio.bytes >> 9));
                    left -= bio.bytes;
                    if left == 0 {
                        break;
                    }
                }
            }
            _ => {}
        }
    }

    /// Q of a path: a clone whose A was before it, or one that a worker has mapped.
    fn clone_comes(&mut self, event: &Event, path: PathId) {
        let is = |bio: &Bio| bio.is(event.sector, event.bytes);
        let mapped = |bio: &Bio| is(bio) && bio.runs_on(path) && !bio.below;
        if let Some(bio) = self.bios.iter_mut().find(|bio| mapped(bio)) {
            bio.below = true;
            return;
        }
        let held = |bio: &Bio| is(bio) && (bio.path.is_none() || bio.has_failed());
        let Some(at) = self.bios.iter().position(held) else {
            self.stray += 1;
            return;
        };
        let mut bio = self.bios[at];
        if let Some((_, ended)) = bio.ended {
            self.clone_is_over(&bio, event.time, true);
            (bio.since, bio.ended) = (ended, None);
        }
        (bio.cpu, bio.path, bio.below) = (event.cpu, Some((path, event.time)), true);
        self.bios[at] = bio;
    }

    /// The target has a clone no more, and its bio ends or is mapped again.
    fn clone_is_over(&mut self, bio: &Bio, now: SimTime, again: bool) {
        let (Some((path, mapped_before)), Some((status, ended))) = (bio.path, bio.ended) else {
            return;
        };
        let cpu = CpuId(bio.cpu as u16);
        let io = Incoming {
            bytes: bio.bytes,
            cpu,
            now: mapped_before,
            bio: Some(BioId(0)),
        };
        let slack = self.slack;
        let early = |time: SimTime| SimTime(time.0.saturating_sub(slack.0));
        let window = (early(bio.since), mapped_before + slack);
        let chosen = What::Map {
            io,
            path: Some(path),
        };
        self.add_atom(window, chosen);
        let bytes = bio.bytes;
        let mapped = Mapped { path, bytes };
        self.add_atom(window, What::Start { mapped });
        let ended = (mapped_before + slack).max(early(ended));
        let what = What::End {
            mapped,
            started: mapped_before,
            over: now,
            cpu,
            status,
            again,
        };
        self.add_atom((ended, now + slack), what);
    }
}
