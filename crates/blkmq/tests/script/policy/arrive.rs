//! Arrivals: `insert`, `bio` and `submit`. Bios are offered, requests inserted, and merges printed.

use super::parse::letter;
use super::{PolicyQueue, Printed};
use blkmq::elevator::{BioMerge, InsertAt, Insertion, Now};
use blkmq::merge::{Merging, Side};
use blkmq::request::{BioId, Place, RequestId, Sector};

impl PolicyQueue {
    pub(super) fn insert(&mut self, rest: &str) -> Printed {
        let (at, requests) = match rest.strip_prefix("head ") {
            Some(requests) => (InsertAt::Head, requests),
            None => (InsertAt::Sorted, rest),
        };
        let (kworker, requests) = match requests.strip_prefix("kworker=") {
            Some(rest) => rest.split_once(' ').ok_or("no request")?,
            None => ("0", requests),
        };
        self.cpu.kworker = kworker.parse().map_err(|_| "kworker=: no pid")?;
        let printed = self.each_request(requests, |queue, bio, bare| {
            let printed = queue.insert_bio(bio, bare, at)?;
            for line in printed {
                queue.around.print(line);
            }
            Ok(())
        });
        self.cpu.kworker = 0;
        printed
    }

    /// Calls a function for each bio of the text, in turn.
    pub(super) fn each_request(
        &mut self,
        requests: &str,
        mut each: impl FnMut(&mut PolicyQueue, BioId, bool) -> Result<(), String>,
    ) -> Printed {
        for text in requests.split(',') {
            let written = self.parse_request(text)?;
            for at in 0..written.times {
                let mut bio = written.bio.clone();
                bio.sector = Sector(bio.sector.0 + at * written.gap);
                let bio = self.pool.add_bio(bio).ok_or("out of bios")?;
                each(self, bio, written.bare)?;
            }
        }
        Ok(Vec::new())
    }

    fn insert_bio(&mut self, bio: BioId, bare: bool, at: InsertAt) -> Printed {
        let mut all = self.pool.iter();
        let free = all.find(|(_, rq)| rq.place == Place::Free);
        let rq = free.map(|(rq, _)| rq).ok_or("full")?;
        drop(all);
        self.pool.reset(rq);
        self.pool.bio_to_request(rq, bio);
        self.pool[rq].place = Place::Path;
        self.pool[rq].use_sched = !bare;
        self.pool[rq].start_time = self.around.time;
        Ok(self.insert_request(rq, at))
    }

    /// As the block layer does: merges or inserts.
    pub(super) fn submit(&mut self, requests: &str) -> Printed {
        self.each_request(requests, |queue, bio, bare| {
            let printed = match queue.offer(bio) {
                Some(printed) => printed,
                None => queue.insert_bio(bio, bare, InsertAt::Sorted)?,
            };
            for line in printed {
                queue.around.print(line);
            }
            Ok(())
        })
    }

    /// Inserts one request; returns the merges in their order.
    pub(super) fn insert_request(&mut self, rq: RequestId, at: InsertAt) -> Vec<String> {
        if self.is_single() && self.pool[rq].elv_priv == [0, 0] {
            self.set_up(rq);
        }
        let lines = self.insert_only(rq, at);
        self.after_insertion();
        lines
    }

    fn insert_only(&mut self, rq: RequestId, at: InsertAt) -> Vec<String> {
        let (limits, nomerges) = (self.limits, self.nomerges);
        let kept = self.settings.rules.plug_keeps_time;
        let insertion = self.arrive(|policy, pool, now| {
            let (limits, now) = (&limits, Now { kept, ..now });
            policy.insert(pool, rq, at, now, Merging { limits, nomerges })
        });
        let absorbed = match insertion {
            Insertion::Inserted => return Vec::new(),
            Insertion::Absorbed(absorbed) => absorbed,
        };
        let stack: Vec<RequestId> = absorbed.iter(&self.pool).collect();
        let lines = stack
            .iter()
            .rev()
            .map(|&rq| format!("M {}", self.name(rq)))
            .collect();
        let mut left = absorbed;
        while let Some(rq) = left.pop_front(&mut self.pool) {
            self.finish(rq);
        }
        lines
    }

    pub(super) fn bio(&mut self, rest: &str) -> Printed {
        let bio = self.parse_bio(rest)?;
        Ok(self.offer(bio).unwrap_or_else(|| {
            self.pool.free_bio(bio);
            vec!["no merge".to_owned()]
        }))
    }

    /// Offers a bio for merging; none if it did not merge.
    fn offer(&mut self, bio: BioId) -> Option<Vec<String>> {
        let of = self.pool.bio(bio);
        let name = format!("{} {}+{}", letter(of.op), of.sector.0, of.sectors.0);
        let (limits, nomerges) = (self.limits, self.nomerges);
        let kept = self.settings.rules.plug_keeps_time;
        let merge = self.arrive(|policy, pool, now| {
            let (limits, now) = (&limits, Now { kept, ..now });
            policy.merge_bio(pool, bio, now, Merging { limits, nomerges })
        });
        let BioMerge::Into { rq, side, absorbed } = merge else {
            return None;
        };
        let action = match side {
            Side::Back => "M",
            Side::Front => "F",
            Side::Discard => "+",
        };
        let mut printed = vec![format!("{action} {name}")];
        if let Some(absorbed) = absorbed {
            printed.push(format!("M {}", self.name(absorbed)));
            self.finish(absorbed);
        }
        let last = printed.len() - 1;
        printed[last] += &format!(" -> {}", self.name(rq));
        if self.is_single() {
            self.after_insertion();
        }
        Some(printed)
    }
}
