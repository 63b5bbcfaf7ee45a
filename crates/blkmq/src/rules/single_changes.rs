//! Single changes to dm-multipath between kernels that a scenario can make by themselves.
//!
//! One table lists the name, the values and the scope of each.

use super::{CloneInsertion, DeviceMapper, EndRun, IoData, SecondEnd, TargetLock, TargetLookUp};

/// A change that a scenario can make by itself.
#[derive(Clone, Copy, Debug)]
pub struct SingleChange {
    /// Its key in a scenario: `kernel.target`.
    pub key: &'static str,
    /// Its values, the oldest first.
    pub values: &'static [&'static str],
    /// It applies to a bio-based device.
    pub of_bios: bool,
    /// It applies to a mapped device of the single-queue kind.
    pub of_single_queue: bool,
    value: fn(&DeviceMapper) -> &'static str,
    set: fn(&mut DeviceMapper, &str) -> Option<()>,
}

/// The table, a line for each change: name, field, type, and scope.
macro_rules! single_changes {
    ($($name:literal: $($field:ident).+ as $Kind:ident, $bios:literal, $single:literal;)*) => {
        pub const SINGLE_CHANGES: &[SingleChange] = &[$(SingleChange {
            key: concat!("kernel.", $name),
            values: $Kind::NAMES,
            of_bios: $bios,
            of_single_queue: $single,
            value: |of| of.$($field).+.name(),
            set: |of, value| $Kind::by_name(value).map(|value| of.$($field).+ = value),
        }),*];
    };
}

single_changes! {
    "target_lock": target_lock as TargetLock, true, true;
    "target": requests.target as TargetLookUp, false, false;
    "io_data": requests.io_data as IoData, false, true;
    "insertion": requests.insertion as CloneInsertion, false, true;
    "second_end": requests.second_end as SecondEnd, false, false;
    "end_run": requests.end_run as EndRun, false, true;
}

impl SingleChange {
    /// The change of this name, `target`. An error lists all names.
    pub fn by_name(name: &str) -> Result<&'static SingleChange, String> {
        let found = SINGLE_CHANGES.iter().find(|change| change.name() == name);
        found.ok_or_else(|| {
            let all: Vec<&str> = SINGLE_CHANGES.iter().map(SingleChange::name).collect();
            format!("no change `{name}`; there are {}", all.join(", "))
        })
    }

    /// Its name: the key without what it belongs to.
    pub fn name(&self) -> &'static str {
        self.key.strip_prefix("kernel.").unwrap_or(self.key)
    }

    pub fn value(&self, of: &DeviceMapper) -> &'static str {
        (self.value)(of)
    }

    /// The rules with another value. An error lists the values.
    pub fn make(&self, mut of: DeviceMapper, value: &str) -> Result<DeviceMapper, String> {
        let set = (self.set)(&mut of, value).map(|()| of);
        set.ok_or_else(|| format!("`{value}` is none of {}", self.values.join(", ")))
    }
}

impl DeviceMapper {
    /// The changes by which these rules differ from the preset of their name: key and value.
    pub fn changes(&self) -> Vec<(&'static str, &'static str)> {
        let Some(preset) = DeviceMapper::by_name(self.name) else {
            return Vec::new();
        };
        let all = SINGLE_CHANGES.iter();
        let differ = all.filter(|change| change.value(self) != change.value(&preset));
        differ
            .map(|change| (change.key, change.value(self)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each value is set and reported under its key, and no change affects another one.
    #[test]
    fn each_change_is_made_alone() {
        for change in SINGLE_CHANGES {
            let known = SingleChange::by_name(change.name()).unwrap();
            assert_eq!(known.key, change.key);
            for &value in change.values {
                let made = change.make(DeviceMapper::V4_5, value).unwrap();
                assert_eq!(change.value(&made), value);
                let others = SINGLE_CHANGES
                    .iter()
                    .filter(|other| other.key != change.key);
                for other in others {
                    assert_eq!(other.value(&made), other.value(&DeviceMapper::V4_5));
                }
                let differs = value != change.value(&DeviceMapper::V4_5);
                let shown = made.changes();
                assert_eq!(shown.contains(&(change.key, value)), differs, "{shown:?}");
            }
            let error = change.make(DeviceMapper::V4_5, "?").unwrap_err();
            assert!(error.contains(change.values[0]), "{error}");
        }
        let error = SingleChange::by_name("depth").unwrap_err();
        assert!(
            error.ends_with(
                "there are target_lock, target, io_data, insertion, second_end, end_run"
            )
        );
    }
}
