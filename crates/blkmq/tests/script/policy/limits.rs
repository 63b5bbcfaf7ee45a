//! How many requests may be allocated: `depth` and `nr_requests`.

use super::parse::{parse_number, word_shift};
use super::{PolicyQueue, Printed};
use blkmq::elevator::{TagMapSize, Wanted};
use blkmq::request::BioId;

/// A smaller number in queue/nr_requests becomes this one.
const BLKDEV_MIN_RQ: u32 = 4;

impl PolicyQueue {
    pub(super) fn wanted(&self, bio: BioId) -> Wanted {
        let of = self.pool.bio(bio);
        Wanted {
            op: of.op,
            flags: of.flags,
            io_context: of.io_context,
            map: TagMapSize {
                shift: word_shift(self.map_requests),
                nr_requests: self.nr_requests,
            },
        }
    }

    pub(super) fn depth(&mut self, rest: &str) -> Printed {
        let bio = self.parse_bio(rest)?;
        let wanted = self.wanted(bio);
        let depth = match self.look(|policy| policy.limits_under_lock(wanted)) {
            true => self.call(|policy, _, now| policy.limit_depth_locked(wanted, now)),
            false => {
                if let Some(line) = self.look(|policy| policy.limit_depth_message(wanted)) {
                    self.around.hear(&line);
                }
                self.look(|policy| policy.limit_depth(wanted))
            }
        };
        self.pool.free_bio(bio);
        Ok(vec![
            depth.map_or("no limit".to_owned(), |depth| depth.to_string()),
        ])
    }

    pub(super) fn write_nr_requests(&mut self, rest: &str) -> Printed {
        let (old, new) = (
            self.nr_requests,
            parse_number::<u32>(rest)?.max(BLKDEV_MIN_RQ),
        );
        self.call(|policy, _, _| policy.depth_updated(old, new));
        self.nr_requests = new;
        self.map_requests = self.map_requests.max(self.nr_requests);
        Ok(Vec::new())
    }
}
