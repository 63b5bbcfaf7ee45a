//! The `[device]` table, or several `[[device]]`: what all types have, and parameters of the
//! device's own type.
//!
//! Parameters are declared with the driver of the type (`build/drivers/*.rs`), which also checks
//! them: a parameter of another type is an error of its own.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use serde::{Deserialize, Deserializer, de};
use toml::Value;

use sim::plan::ServiceTime;

use super::Queue;
use super::build::device_types;
use super::parameter::as_number;
use super::split::{self, Split};

/// Keys of all device types. Parameters of the types: devices.md.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default, remote = "Self")]
pub struct Device {
    /// `null_blk`, `nvme`, `scsi_debug`, `ahci` or `fc`. Default: that of the names in fio's
    /// `filename`: /dev/nullb0, /dev/nvme0n1, /dev/sda (scsi_debug).
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// A drive, built in or of `--drive`, whose parameters hold where this table has none.
    pub drive: Option<String>,
    /// Name below /dev, which fio's `filename` uses. Default: the first free one of the type, as
    /// `nullb0`, `nvme0n1`, `sda`.
    pub name: Option<String>,
    /// Settings of this device's queue, in place of those in `[queue]`. Default: none.
    pub queue: Queue,

    /// queue/rotational. Default 0; for ahci 1.
    pub rotational: Option<Switch>,
    /// queue/rotational when the scheduler was chosen, which bfq reads then. Default: `rotational`.
    pub rotational_when_chosen: Option<Switch>,
    /// Actuators of the drive, each with an access range of equal size, 1 to 8. Default 1.
    pub actuators: Option<u8>,
    /// D2C of requests in the order of D, `["read", 8, 1, 90000]`: kind (read, write, trim or
    /// flush), sectors, depth, ns, from which this device's times are drawn. Default: none, the
    /// model of its type.
    pub service_times: Vec<ServiceTime>,
    /// Injected faults. Default: none.
    pub fault: Fault,
    /// Parameters of the type as written.
    #[serde(skip)]
    pub(super) parameters: BTreeMap<String, Value>,
}

/// Parameters by themselves, all other keys as fields.
impl<'de> Deserialize<'de> for Device {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Device, D::Error> {
        split::read(deserializer)
    }
}

impl<'de> Split<'de> for Device {
    type Other = Value;
    const EXPECTED: &'static str = "a table of a device";
    const OTHERS: &'static str = "the parameters of the type: see blksim reference devices";

    fn others() -> impl Iterator<Item = &'static str> {
        let types = device_types().flat_map(|(_, parameters)| parameters);
        types.map(|parameter| parameter.name)
    }

    fn fields<D: Deserializer<'de>>(deserializer: D) -> Result<Device, D::Error> {
        Device::deserialize(deserializer)
    }

    fn with(self, parameters: BTreeMap<String, Value>) -> Device {
        Device { parameters, ..self }
    }
}

impl Device {
    /// The written value of a number or a switch.
    pub fn number(&self, parameter: &str) -> Option<u64> {
        as_number(self.parameters.get(parameter)?)
    }

    /// A parameter that is written and not 0.
    pub(super) fn has(&self, parameter: &str) -> bool {
        self.number(parameter).is_some_and(|number| number > 0)
    }

    /// The number of devices that this parameter asks for; an error if it does not fit.
    pub(super) fn count(&self, parameter: &str) -> Option<u16> {
        let number = self.number(parameter)?;
        Some(u16::try_from(number).unwrap_or(u16::MAX))
    }
}

/// Injected faults. A chance is for one command: `"1/1000"`, 0 or 1.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Fault {
    /// queue_rq returns busy; below 1. Drawn at each offer. Default 0.
    pub busy: Option<Chance>,
    /// Status of a busy answer: `resource` or `dev_resource`. Default `resource`.
    pub busy_status: Option<String>,
    /// queue_rq calls blk_mq_requeue_request() and returns BLK_STS_OK; below 1. Drawn at each
    /// offer. Default 0.
    pub requeue: Option<Chance>,
    /// The command fails with an I/O error. Default 0.
    pub error: Option<Chance>,
    /// The command is never answered; the timeout ends it. Default 0.
    pub timeout: Option<Chance>,
    /// The completion is lost and the timeout does not help: the run stalls. Default 0.
    pub lost_completion: Option<Chance>,
    /// Commands before faults begin. Default 0.
    pub after_commands: Option<u64>,
}

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
