//! The `[device]` table, or several `[[device]]`: parameters of null_blk, the nvme driver,
//! scsi_debug and a disk behind libata by their names, and of our models of drives.
//!
//! One flat table for all types: a parameter of another type is an error of its own. Defaults of
//! modules: drivers/block/null_blk/main.c, drivers/nvme/host/pci.c, drivers/scsi/scsi_debug.c.

use std::marker::PhantomData;

use serde::{Deserialize, Deserializer, de};

use super::Queue;

/// `[device]`
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Device {
    /// `null_blk`, `nvme`, `scsi_debug`, `ahci` or `fc`. No default: fio's `filename` may tell it.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// All: a drive (`drive_names()`, or that of `--drive`) whose keys hold where this table has
    /// none.
    pub drive: Option<String>,
    /// All: name below /dev, which fio's `filename` uses. Default the first free one of its type:
    /// `nullb0`, `nvme0n1`, `sda` and so on.
    pub name: Option<String>,
    /// All: what its queue has of its own; for the rest `[queue]` holds. Default: nothing.
    pub queue: Queue,

    /// null_blk, scsi_debug: hardware queues; at most one a CPU. Default 1.
    pub submit_queues: Option<u16>,
    /// All: hardware queues for polled I/O. null_blk adds them to submit_queues, default 1; nvme
    /// adds them, default 0; scsi_debug takes them out of submit_queues, default 0.
    pub poll_queues: Option<u16>,

    /// null_blk: 0 completes inside queue_rq, 1 by softirq, 2 by timer. Default 1.
    pub irqmode: Option<u8>,
    /// null_blk: time of a command with irqmode=2, ns. Default 10000.
    pub completion_nsec: Option<u64>,
    /// null_blk with irqmode=2, nvme model: spread of service times, percent up and down, 0 to 100.
    /// Default 0.
    pub jitter_percent: Option<u8>,
    /// null_blk: tags of each hardware queue. Default 64.
    pub hw_queue_depth: Option<u32>,
    /// null_blk: size, GiB. Default 250.
    pub gb: Option<u64>,
    /// null_blk: logical block, bytes: 512 to 4096. Default 512.
    pub bs: Option<u32>,
    /// null_blk: largest request, sectors. Default 0: the core's 255.
    pub max_sectors: Option<u32>,
    /// null_blk: one tag map for all hardware queues. Default 0.
    pub shared_tag_bitmap: Option<Switch>,
    /// null_blk: no scheduler. Default 0.
    pub no_sched: Option<Switch>,
    /// null_blk: queue_rq may sleep. Default 0; 1 with memory_backed.
    pub blocking: Option<Switch>,
    /// null_blk: keeps data. Default 0.
    pub memory_backed: Option<Switch>,
    /// null_blk: discards; needs memory_backed. Default 0.
    pub discard: Option<Switch>,
    /// null_blk: volatile cache, MiB; needs memory_backed. Default 0.
    pub cache_size: Option<u32>,
    /// null_blk: FUA with cache_size (v6.12; always in v6.1). Default 1.
    pub fua: Option<Switch>,
    /// null_blk, nvme: bandwidth limit, MiB/s; null_blk at most 40960. Default 0, none.
    pub mbps: Option<u32>,
    /// null_blk: only 2, multi-queue, is modelled. Default 2.
    pub queue_mode: Option<u8>,
    /// null_blk: devices, `nullb0` and so on, 1 to 255. Default 1.
    pub nr_devices: Option<u16>,
    /// null_blk: one tag set for all of them; with one device it means nothing. Default 0.
    pub shared_tags: Option<Switch>,

    /// nvme, ahci: such drives, `nvme0n1`, `nvme1n1`, or `sda`, `sdb` and so on, 1 to 255.
    /// Default 1.
    pub count: Option<u16>,

    /// nvme: size of a submission queue, 2 to 4095; tags are one less. Default 1024.
    pub io_queue_depth: Option<u32>,
    /// nvme: queues for writes alone. Default 0: shared.
    pub write_queues: Option<u16>,
    /// nvme model: I/O queues that the drive offers. Default: as many as the driver asks for. fc:
    /// hardware queues. Default 1.
    pub nr_queues: Option<u16>,
    /// nvme model: service time of a read (and default of the others), ns. Default 60000, so that
    /// with the channels the drive is like a Samsung 980 Pro: 780K random reads a second, 68 us at
    /// the application. fc: 200000, an assumption.
    pub latency_ns: Option<u64>,
    /// nvme model: service time of a write, ns. Default latency_ns, or 20000 if that is not given
    /// (an assumption: writes end in the drive's buffer).
    pub write_latency_ns: Option<u64>,
    /// nvme model: service time of a discard, ns. Default latency_ns.
    pub trim_latency_ns: Option<u64>,
    /// nvme model: service time of a flush, ns. Default latency_ns.
    pub flush_latency_ns: Option<u64>,
    /// nvme model: commands served side by side. Default 47.
    pub channels: Option<u32>,
    /// nvme model: dies of the flash. A read waits for those that hold its data, which are drawn;
    /// so its time grows with the number of reads under way. Default 0: reads wait for channels
    /// only.
    pub dies: Option<u32>,
    /// nvme model: how long a read of up to 16 KiB keeps its die busy, ns, at most latency_ns.
    /// Needs `dies`.
    pub die_ns: Option<u64>,
    /// nvme model: most I/Os a second. Default 0: no limit beyond channels.
    pub iops_max: Option<u32>,
    /// nvme model: bandwidth limit of reads, MiB/s; 0: none. Default 6675, none if `mbps` is given:
    /// 7000 MB/s, the Samsung 980 Pro's of 1 TB by its data sheet (sequential reads). fc: the link
    /// in this direction, 1525 (16GFC).
    pub read_mbps: Option<u32>,
    /// nvme model: the same of writes. Default 4768, none if `mbps` is given: 5000 MB/s, data sheet
    /// (sequential writes).
    pub write_mbps: Option<u32>,
    /// nvme model: completions that an interrupt waits for, 1 to 256 (feature 08h, counted from
    /// 1). Default 1: off, as the driver leaves it.
    pub coalesce_threshold: Option<u32>,
    /// nvme model: longest wait for them, in units of 100 us, 0 to 255. Default 0.
    pub coalesce_time: Option<u32>,
    /// nvme model: time from completion entry to interrupt, ns. Default 0.
    pub irq_delay_ns: Option<u64>,
    /// nvme model: a volatile write cache, so that flushes are sent. Default 0.
    pub volatile_cache: Option<Switch>,
    /// nvme model: size, GB (10^9 bytes). Default 1000.
    pub size_gb: Option<u64>,
    /// nvme model: largest transfer, KiB. Default 0: the driver's limit, 4096 (v6.1) or 8192.
    pub mdts_kb: Option<u32>,

    /// scsi_debug: response time, ticks; 0 answers at once. Default 1.
    pub delay: Option<u32>,
    /// scsi_debug: response time, ns; above 0 it overrides delay. Default 0.
    pub ndelay: Option<u64>,
    /// scsi_debug: commands of each hardware queue, 1 to 192. Default 192.
    pub max_queue: Option<u32>,
    /// scsi_debug: commands of the host, 1 to 192; makes one tag map for all hardware queues.
    /// Default 0: off.
    pub host_max_queue: Option<u32>,
    /// scsi_debug: size, MiB. Default 8.
    pub dev_size_mb: Option<u64>,
    /// scsi_debug: logical block, bytes: 512 to 4096. Default 512.
    pub sector_size: Option<u32>,
    /// scsi_debug: response times are drawn from 0 up. Default 0.
    pub random: Option<Switch>,
    /// scsi_debug: takes UNMAP, so that there are discards. Default 0.
    pub lbpu: Option<Switch>,

    /// fc: commands of a host, which all units and hardware queues share. Default 2000.
    pub can_queue: Option<u32>,
    /// scsi_debug, fc: hosts, each with tags of its own. Their disks are `sda`, `sdb` and so on,
    /// 1 to 255 in all. Default 1.
    pub add_host: Option<u16>,
    /// scsi_debug: targets of each host. Default 1.
    pub num_tgts: Option<u16>,
    /// scsi_debug, fc: logical units of each target, each a disk. Default 1.
    pub max_luns: Option<u16>,
    /// scsi_debug, fc: commands of a logical unit (device/queue_depth), 1 to max_queue, or to
    /// host_max_queue or can_queue. Default that; of fc 32, as qla2xxx has it.
    pub cmd_per_lun: Option<u32>,
    /// ahci: commands that the disk has at a time (device/queue_depth, NCQ), 1 to 32. Default 31;
    /// 1: no NCQ.
    pub queue_depth: Option<u32>,
    /// ahci model: order in which the disk serves them: `shortest` way first, or `arrival`. Default
    /// `shortest`.
    pub ncq_order: Option<String>,
    /// ahci model: turns of the platters a minute. This and what follows: default that of the drive
    /// `sata2009`.
    pub rpm: Option<u32>,
    /// ahci model: positions of the arm, 3 to 10 million.
    pub cylinders: Option<u32>,
    /// ahci model: surfaces with a head each, 1 to 64.
    pub heads: Option<u32>,
    /// ahci model: groups of cylinders with equally many sectors a track, 1 to 1000.
    pub zones: Option<u32>,
    /// ahci model: sustained rate at the outside, where sector 0 is, MB/s (10^6 bytes).
    pub outer_mb_s: Option<u32>,
    /// ahci model: the same at the inside, at most outer_mb_s.
    pub inner_mb_s: Option<u32>,
    /// ahci model: time to the next cylinder, us.
    pub seek_track_us: Option<u64>,
    /// ahci model: time over a third of all cylinders, us: about the mean of a random seek.
    pub seek_third_us: Option<u64>,
    /// ahci model: time over all cylinders, us.
    pub seek_full_us: Option<u64>,
    /// ahci model: time to the next head of a cylinder, us.
    pub head_switch_us: Option<u64>,
    /// ahci model: what the disk takes to work out a command, us.
    pub overhead_us: Option<u64>,
    /// ahci model: rate of the link, MB/s.
    pub link_mb_s: Option<u32>,
    /// ahci model: segments of the read cache; 0: the disk does not read ahead.
    pub cache_segments: Option<u32>,
    /// ahci model: size of each, KiB; as much it reads ahead.
    pub segment_kb: Option<u32>,
    /// ahci model: size of the write cache, KiB; 0: off.
    pub write_cache_kb: Option<u32>,

    /// scsi_debug: error injection bits; only 0 is modelled, see `[device.fault]`. Default 0.
    pub opts: Option<u32>,
    /// scsi_debug: write protection; only 0 is modelled. Default 0.
    pub wp: Option<Switch>,

    /// All: spinning disk, as queue/rotational says. Default 0; 1 of ahci.
    pub rotational: Option<Switch>,
    /// All: what it said when the scheduler was chosen, which bfq looks at. Default: the same.
    pub rotational_when_chosen: Option<Switch>,
    /// All: access ranges of equal size, one for each arm of the drive, 1 to 8. Default 1.
    pub actuators: Option<u8>,
    /// All: what goes wrong on purpose. Default: nothing.
    pub fault: Fault,
}

/// `[device.fault]`: chances of a command as ratios of integers such as `"1/1000"`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Fault {
    /// queue_rq refuses for the moment. Default 0.
    pub busy: Option<Chance>,
    /// With `resource` or `dev_resource`. Default `resource`.
    pub busy_status: Option<String>,
    /// The driver takes the command and gives it back (blk_mq_requeue_request). Default 0.
    pub requeue: Option<Chance>,
    /// The command fails with an I/O error. Default 0.
    pub error: Option<Chance>,
    /// The command is never answered; the timeout ends it. Default 0.
    pub timeout: Option<Chance>,
    /// The completion is lost and the timeout does not help either: a stall. Default 0.
    pub lost_completion: Option<Chance>,
    /// Commands before the first fault. Default 0.
    pub after_commands: Option<u64>,
}

/// One `[device]` or several `[[device]]`.
pub(super) fn one_or_more<'de, D: Deserializer<'de>>(source: D) -> Result<Vec<Device>, D::Error> {
    tables(source, "a table [device] or several [[device]]")
}

/// One table or several of a name.
pub(super) fn tables<'de, D, T>(source: D, expected: &'static str) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct Visitor<T>(&'static str, PhantomData<T>);
    impl<'de, T: Deserialize<'de>> de::Visitor<'de> for Visitor<T> {
        type Value = Vec<T>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str(self.0)
        }
        fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Vec<T>, A::Error> {
            let only = T::deserialize(de::value::MapAccessDeserializer::new(map))?;
            Ok(vec![only])
        }
        fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<T>, A::Error> {
            let mut all = Vec::new();
            while let Some(one) = seq.next_element()? {
                all.push(one);
            }
            Ok(all)
        }
    }
    source.deserialize_any(Visitor(expected, PhantomData))
}

/// A module's boolean: true, false, 1, 0, or as text also Y and N.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch(pub bool);

impl<'de> Deserialize<'de> for Switch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Switch, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Switch;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a switch: true, false, 1 or 0")
            }
            fn visit_bool<E: de::Error>(self, on: bool) -> Result<Switch, E> {
                Ok(Switch(on))
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Switch, E> {
                match number {
                    0 | 1 => Ok(Switch(number == 1)),
                    _ => Err(E::invalid_value(de::Unexpected::Signed(number), &self)),
                }
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Switch, E> {
                match text {
                    "Y" | "y" => Ok(Switch(true)),
                    "N" | "n" => Ok(Switch(false)),
                    _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
                }
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// A chance: `"1/1000"`, or 0 (never) or 1 (always).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chance {
    pub numerator: u32,
    pub denominator: u32,
}

impl<'de> Deserialize<'de> for Chance {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Chance, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Chance;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a chance from 0 to 1 as a ratio of integers, e.g. \"1/1000\"")
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Chance, E> {
                match number {
                    0 | 1 => Ok(Chance {
                        numerator: number as u32,
                        denominator: 1,
                    }),
                    _ => Err(E::invalid_value(de::Unexpected::Signed(number), &self)),
                }
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Chance, E> {
                let parts = text.split_once('/').unwrap_or((text, "1"));
                let ratio = (parts.0.trim().parse(), parts.1.trim().parse());
                match ratio {
                    (Ok(numerator), Ok(denominator))
                        if denominator > 0 && numerator <= denominator =>
                    {
                        Ok(Chance {
                            numerator,
                            denominator,
                        })
                    }
                    _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
                }
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}
