//! Which devices are read of files that hold several: dumps and texts.
//!
//! Files named `<device>.blktrace.<cpu>` are of one device each; `paths` chooses among them.

use std::collections::{BTreeMap, BTreeSet};

use super::event::Device;
use super::reader::DeviceChoice;

/// Devices of a dump; each costs its reader and matcher some memory.
const DEVICES: usize = 1024;

/// A device as a user names it: `/dev/sda`, `sda`, `8,0` or `8:0`.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// As in a file name.
    pub(crate) name: String,
    pub(crate) number: Option<Device>,
}

impl Asked {
    pub(crate) fn new(text: &str) -> Asked {
        let bare = text.strip_prefix("/dev/").unwrap_or(text);
        Asked {
            name: bare.replace('/', "_"),
            number: Device::parse(bare).or_else(|| Device::of_scsi_disk(bare)),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Devices {
    /// Nothing: the only one, or all of them.
    asked: Option<Asked>,
    all: bool,
    first: Option<Device>,
    /// Devices seen so far.
    seen: BTreeSet<Device>,
    /// Of formats that have no numbers: the numbers are ours.
    names: BTreeMap<String, Device>,
    several: bool,
}

impl Devices {
    /// `number` is that of the device that was asked for by name, if another file has it.
    pub(super) fn new(choice: &DeviceChoice, number: Option<Device>) -> Devices {
        let asked = match choice {
            DeviceChoice::Named(name) => Some(Asked::new(name)),
            DeviceChoice::Only | DeviceChoice::All => None,
        };
        Devices {
            asked: asked.map(|asked| Asked {
                number: number.or(asked.number),
                ..asked
            }),
            all: *choice == DeviceChoice::All,
            ..Devices::default()
        }
    }

    /// Number of a device that has only a name. Nothing if there are too many.
    pub(super) fn named(&mut self, name: &str) -> Option<Device> {
        if let Some(device) = self.names.get(name) {
            return Some(*device);
        }
        if self.names.len() == DEVICES {
            return None;
        }
        let device = Device(self.names.len() as u32);
        self.names.insert(name.to_owned(), device);
        if let Some(asked) = &mut self.asked
            && asked.name == Asked::new(name).name
        {
            asked.number = Some(device);
        }
        Some(device)
    }

    /// Whether events of a device are to be read. Once a second one is there that nobody chose,
    /// none are; `refusal` has the reason when the file is at its end.
    pub(super) fn wanted(&mut self, device: Device) -> Result<bool, String> {
        if self.seen.len() < DEVICES {
            self.seen.insert(device);
        } else if !self.seen.contains(&device) {
            return Err(format!("more than {DEVICES} devices in one file"));
        }
        if let Some(asked) = &self.asked {
            return Ok(asked.number == Some(device));
        }
        let first = *self.first.get_or_insert(device);
        self.several |= !self.all && first != device;
        Ok(!self.several)
    }

    /// Why the devices that were seen cannot be read, if so.
    pub(super) fn refusal(&self) -> Option<String> {
        self.several
            .then(|| format!("several devices, name one of them: {}", self.list()))
    }

    /// The device that was asked for is not among those seen.
    pub(super) fn absent(&self) -> Option<String> {
        let asked = self.asked.as_ref()?;
        let found = asked
            .number
            .is_some_and(|number| self.seen.contains(&number));
        if found || self.seen.is_empty() {
            return None;
        }
        let name = asked
            .number
            .filter(|_| Device::parse(&asked.name).is_some());
        let name = name.map_or_else(|| asked.name.clone(), |number| number.to_string());
        Some(format!("no device {name}, there are: {}", self.list()))
    }

    /// Name of a device whose number is ours; of others the number.
    pub(super) fn name(&self, device: Device) -> String {
        let name = self.names.iter().find(|(_, number)| **number == device);
        name.map_or_else(|| device.to_string(), |(name, _)| name.clone())
    }

    fn list(&self) -> String {
        let of = |device: &Device| self.name(*device);
        self.seen.iter().map(of).collect::<Vec<_>>().join(", ")
    }
}
