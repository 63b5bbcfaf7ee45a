//! docs/reference/devices.md, from the declarations of the parameters.

use std::fmt::Write as _;

use scenario::{Usual, Values, device_types, drives};

use super::{cell, code, section, table};

const INTRO: &str = "\
Parameters of `[device]` in a scenario, of `--device TYPE,PARAMETER=VALUE,...` and of `--drive \
FILE.toml`. What all types have (`name`, `queue`, `fault`, `rotational` ...) is in \
[scenario.md](scenario.md). Names are those of module parameters where the driver has one. A \
parameter of another type is an error. A switch takes 0, 1, false or true.";

/// A type's description, and the source of its model.
const TYPES: &[(&str, &str)] = &[
    (
        "null_blk",
        "The module null_blk (drivers/block/null_blk/main.c, v6.1 and v6.12).",
    ),
    (
        "nvme",
        "An NVMe drive. Queues are those of the driver (drivers/nvme/host/pci.c, v6.1 and v6.12); \
         the service model is ours.",
    ),
    (
        "scsi_debug",
        "The module scsi_debug below the SCSI mid-layer (drivers/scsi/scsi_debug.c, v6.1 and \
         v6.12).",
    ),
    (
        "ahci",
        "A rotational disk of libata (drivers/ata/libata-scsi.c, v6.1 and v6.12); the service \
         model is ours.",
    ),
    (
        "fc",
        "A Fibre Channel host below the SCSI mid-layer, with the limits of qla2xxx; the service \
         model is ours.",
    ),
];

pub(super) fn page() -> String {
    let mut text = format!("# Devices and drives\n\n{INTRO}\n\n");
    for (name, parameters) in device_types().filter(|(_, parameters)| !parameters.is_empty()) {
        let what = TYPES.iter().find(|(known, _)| *known == name);
        section(&mut text, name, what.map_or("", |(_, what)| what));
        let rows = parameters.iter().map(|parameter| {
            let values = match parameter.values {
                Values::Numbers(least, most, unit) => format!("{least} to {most} {unit}"),
                Values::Block => "512, 1024, 2048, 4096 bytes".to_owned(),
                Values::Switch => "switch".to_owned(),
                Values::Words(words) => words.join(", "),
            };
            let default = match parameter.default {
                Usual::Is(number) => number.to_string(),
                Usual::Depends(what) => what.to_owned(),
            };
            let meaning = cell(parameter.meaning);
            [
                code(parameter.name),
                cell(values.trim_end()),
                cell(&default),
                meaning,
            ]
        });
        text.push_str(&table(["Parameter", "Values", "Default", "Meaning"], rows));
    }
    section(
        &mut text,
        "Drives",
        "A drive is a file with `type` and parameters of that type. `device.drive = \"NAME\"` \
         supplies those that the table itself does not give; `--drive NAME|FILE.toml` replaces \
         those of the scenario and keeps its names, counts, queues and faults. Built in:",
    );
    for (name, file) in drives() {
        // Writing into a string cannot fail.
        let _ = write!(text, "### {name}\n\n```toml\n{}\n```\n\n", file.trim_end());
    }
    text
}
