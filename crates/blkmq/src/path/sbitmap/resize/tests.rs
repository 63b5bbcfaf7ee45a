//! What a change of the depth leaves: freed bits, counts and the locks that it takes.

use super::super::tests::{MAP, device_with};
use super::sbitmap_queue_resize;
use crate::env::Cpu;
use crate::request::{CpuId, QueueId};
use crate::rules::{Countdown, Rules, ShallowDepth, WakeScan};
use crate::sbitmap::Sbitmap;
use crate::step::{Cx, Next, Steps as _, Sub};

const SCAN: WakeScan = WakeScan::Countdown(Countdown::Adds);

/// sbitmap_resize() merges the freed bits of every word back, under its swap_lock where there is
/// one; sbitmap_queue_update_wake_batch() sets the count of every wait queue to one.
#[test]
fn a_resize_merges_freed_bits_and_resets_counts() {
    for swap_lock in [true, false] {
        let mut map: Sbitmap = Sbitmap::new(64, 1, ShallowDepth::Total, None, 4, || 0);
        map.follow(&Rules {
            wake_scan: SCAN,
            ..Rules::v6_1()
        });
        map.swap_lock = swap_lock;
        let (mq, mut cpu) = (device_with(map, SCAN, 1), Cpu::new(CpuId(0)));
        let map = &mq.sets[0].driver[0];
        assert_eq!((map.words.len(), map.wake_batch.get()), (4, 8));
        for word in &map.words {
            // One bit is taken, the other freed.
            for (bits, of) in [(0b11, &word.word), (0b10, &word.cleared)] {
                cpu.begin_label();
                of.fetch_or(&mut cpu, bits);
            }
        }

        let mut resize = sbitmap_queue_resize::State::new(MAP, 16);
        let mut locks = 0;
        for step in 0.. {
            assert!(step < 100, "it never ends");
            assert_eq!(map.depth(), 64, "the depth comes last");
            cpu.begin_label();
            match resize.step(&mut Cx::of(&mq, QueueId(0), &mut cpu)) {
                Sub::Wait(Next::Lock(lock)) => {
                    mq.acquire(lock, &mut cpu);
                    locks += 1;
                }
                Sub::Wait(_) => {}
                Sub::Done(()) => break,
            }
        }
        assert_eq!((map.depth(), map.wake_batch.get()), (16, 2));
        assert_eq!(locks, if swap_lock { 4 } else { 0 });
        assert!(map.countdowns.iter().all(|count| count.peek() == 1));
        let words = map.words.iter();
        let mut words = words.map(|word| (word.word.peek(), word.cleared.peek()));
        assert!(words.all(|bits| bits == (0b01, 0)), "{:?}", map.words);
    }
}
