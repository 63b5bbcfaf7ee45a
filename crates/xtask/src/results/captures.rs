//! The captures of real kernels in traces/, as rows of tables.

use super::definitions::Captures;
use crate::paths;
use crate::step::{Failure, Result};

/// The captures of a table in the order of their names, each with a device if that is wanted.
pub(super) fn captures(wanted: &Captures) -> Result<Vec<(String, Option<String>)>> {
    let begins = |name: &str, heads: &[String]| heads.iter().any(|head| name.starts_with(head));
    let mut captures = Vec::new();
    for meta in paths::files_under(&paths::root().join("traces")) {
        let folder = meta
            .ends_with("meta.txt")
            .then(|| meta.parent()?.file_name()?.to_str());
        let Some(name) = folder.flatten() else {
            continue;
        };
        let chosen = wanted.begin.is_empty() || begins(name, &wanted.begin);
        if !chosen || begins(name, &wanted.except) {
            continue;
        }
        let devices = devices(name);
        if wanted.devices && !devices.is_empty() {
            captures.extend(
                devices
                    .into_iter()
                    .map(|device| (name.to_owned(), Some(device))),
            );
        } else if !wanted.stacked || !devices.is_empty() {
            captures.push((name.to_owned(), None));
        }
    }
    match captures.is_empty() {
        true => Err(Failure("traces/ has no such capture".to_owned())),
        false => Ok(captures),
    }
}

/// Captured devices of a folder, if it has a stacked one: each of them has its row.
fn devices(name: &str) -> Vec<String> {
    let files = paths::files_under(&paths::root().join("traces").join(name));
    let names = files.iter().filter_map(|file| file.file_name()?.to_str());
    let devices = names.filter_map(|name| Some(name.split_once(".blktrace.")?.0.to_owned()));
    let mut devices: Vec<String> = devices.collect();
    devices.sort();
    devices.dedup();
    match devices.iter().any(|device| device.starts_with("dm-")) {
        true => devices,
        false => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stacked_device_and_its_paths_are_rows() {
        let names = |wanted: &Captures| {
            let all = captures(wanted).unwrap().into_iter();
            all.map(|(name, device)| (name, device.unwrap_or_default()))
                .collect::<Vec<_>>()
        };
        let mp = || Captures {
            begin: vec!["mp-service-time-m".to_owned()],
            ..Captures::default()
        };
        let row = |device: &str| ("mp-service-time-mq-deadline".to_owned(), device.to_owned());
        assert_eq!(names(&mp()), [row("")]);
        let devices = Captures {
            devices: true,
            ..mp()
        };
        assert_eq!(names(&devices), ["dm-0", "sda", "sdb"].map(row));
        let stacked = Captures {
            stacked: true,
            ..Captures::default()
        };
        assert!(names(&stacked).contains(&row("")));
        let all = names(&Captures::default());
        assert!(all.len() > names(&stacked).len());
        assert!(all.iter().any(|(name, _)| name == "dd01-defaults"));
        let except = Captures {
            except: vec!["dd".to_owned()],
            ..Captures::default()
        };
        assert!(
            names(&except)
                .iter()
                .all(|(name, _)| !name.starts_with("dd"))
        );
    }
}
