//! Drives: settings of a `[device]` table in a file of their own.
//!
//! A drive belongs to no machine. `device.drive = "NAME"` adds all keys of its file that the table
//! does not have itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::read::{places, toml_error};
use super::source::{Place, Source};
use super::{Device, Result, ScenarioError};

const BUILT_IN: [(&str, &str); 5] = [
    (
        "samsung-980-pro",
        include_str!("../drives/samsung-980-pro.toml"),
    ),
    ("fast-512", include_str!("../drives/fast-512.toml")),
    ("sata2009", include_str!("../drives/sata2009.toml")),
    ("sata-7200", include_str!("../drives/sata-7200.toml")),
    ("slow-66k", include_str!("../drives/slow-66k.toml")),
];

pub fn drive_names() -> Vec<&'static str> {
    BUILT_IN.iter().map(|(name, _)| *name).collect()
}

/// Names of the built-in drives and their files.
pub fn drives() -> impl Iterator<Item = (&'static str, &'static str)> {
    BUILT_IN.into_iter()
}

fn unknown(name: &str) -> String {
    let known = drive_names().join(", ");
    format!("no drive is named `{name}`; there are {known}")
}

/// Keys of a table that are not properties of its drive: numbers and names of devices, their queues
/// and faults, and settings of the driver.
const KEPT: [&str; 9] = [
    "name",
    "queue",
    "count",
    "fault",
    "io_queue_depth",
    "write_queues",
    "poll_queues",
    "nr_queues",
    "queue_depth",
];

#[derive(Clone, Debug)]
pub(super) struct DriveFile {
    name: String,
    table: Table,
    places: BTreeMap<String, Place>,
}

impl DriveFile {
    /// Reads one; `name` is its name in `device.drive`.
    pub(super) fn parse(name: &str, file: &Path, text: &str) -> Result<DriveFile> {
        let broken = |e: &toml::de::Error| toml_error(file, text, e);
        let table: Table = toml::from_str(text).map_err(|e| broken(&e))?;
        // Its own errors, with their lines, before those of a scenario.
        toml::from_str::<Device>(text).map_err(|e| broken(&e))?;
        let places = places(file, text);
        let wrong = |field: &str, what: &str| ScenarioError::Field {
            place: places.get(field).map_or_else(
                || file.display().to_string(),
                std::string::ToString::to_string,
            ),
            field: field.to_owned(),
            what: what.to_owned(),
        };
        if !table.contains_key("type") {
            return Err(wrong("type", "a drive says what drives it, as `nvme`"));
        }
        for key in ["drive", "name", "queue"] {
            if table.contains_key(key) {
                return Err(wrong(key, "is no property of a drive"));
            }
        }
        Ok(DriveFile {
            name: name.to_owned(),
            table,
            places,
        })
    }

    /// The built-in one of this name.
    pub(super) fn of_name(name: &str) -> Result<DriveFile> {
        DriveFile::built_in(name).ok_or_else(|| ScenarioError::Field {
            place: format!("--drive {name}"),
            field: "device.drive".to_owned(),
            what: unknown(name),
        })
    }

    fn built_in(name: &str) -> Option<DriveFile> {
        let (_, text) = BUILT_IN.iter().find(|(known, _)| *known == name)?;
        let file = PathBuf::from(format!("drives/{name}.toml"));
        let drive = DriveFile::parse(name, &file, text);
        Some(drive.expect("built-in drives are right"))
    }
}

impl Source {
    /// The written tables, with the keys of the drives that they name. And the places of these
    /// keys.
    pub(super) fn with_drives(&self) -> Result<(Table, BTreeMap<String, Place>)> {
        let mut table = self.table.clone();
        let mut added = BTreeMap::new();
        match table.get_mut("device") {
            Some(Value::Table(device)) => self.add_drive("device", device, &mut added)?,
            Some(Value::Array(devices)) => {
                for (i, device) in devices.iter_mut().enumerate() {
                    if let Some(device) = device.as_table_mut() {
                        self.add_drive(&format!("device.{i}"), device, &mut added)?;
                    }
                }
            }
            _ => {}
        }
        Ok((table, added))
    }

    /// Every device becomes this drive; keys of other drives in the tables are removed.
    pub(super) fn replace_drive(&mut self, drive: DriveFile) {
        let place = Place::Option(format!("--drive {}", drive.name));
        let mut tables: Vec<(String, &mut Table)> = Vec::new();
        let device = self.table.entry("device");
        match device.or_insert_with(|| Value::Table(Table::new())) {
            Value::Table(device) => tables.push(("device".to_owned(), device)),
            Value::Array(devices) => {
                let each = devices.iter_mut().enumerate();
                tables.extend(each.filter_map(|(i, device)| {
                    Some((format!("device.{i}"), device.as_table_mut()?))
                }));
            }
            _ => {}
        }
        for (field, device) in tables {
            device.retain(|key, _| KEPT.contains(&key));
            device.insert("drive".to_owned(), Value::String(drive.name.clone()));
            self.places.insert(format!("{field}.drive"), place.clone());
        }
        self.drive = Some(drive);
    }

    fn add_drive(
        &self,
        field: &str,
        device: &mut Table,
        added: &mut BTreeMap<String, Place>,
    ) -> Result<()> {
        let Some(Value::String(name)) = device.get("drive") else {
            return Ok(());
        };
        let own = self.drive.as_ref().filter(|drive| drive.name == *name);
        let Some(drive) = own.cloned().or_else(|| DriveFile::built_in(name)) else {
            return Err(self.error(&format!("{field}.drive"), unknown(name)));
        };
        let kind = drive.table.get("type");
        if device.get("type").is_some_and(|own| Some(own) != kind) {
            let kind = kind.and_then(Value::as_str).unwrap_or_default();
            let what = format!("`{name}` is a drive of type {kind}, as the table is not");
            return Err(self.error(&format!("{field}.drive"), what));
        }
        for (key, value) in &drive.table {
            if device.contains_key(key) {
                continue;
            }
            device.insert(key.clone(), value.clone());
            if let Some(place) = drive.places.get(key) {
                added.insert(format!("{field}.{key}"), place.clone());
            }
        }
        Ok(())
    }
}
