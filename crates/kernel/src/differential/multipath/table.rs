//! Tables of random multipath targets.

use crate::differential::dice::Dice;
use std::fmt::Write as _;

/// The first line of a script.
pub(super) fn first(dice: &mut Dice) -> String {
    let cpus = 1 + dice.below(8);
    let nodes = 1 + dice.below(2.min(cpus));
    let timeout = dice.of(&["0", "5"]);
    let table = table(dice, cpus);
    format!("multipath cpus={cpus} nodes={nodes} timeout={timeout} {table}")
}

/// Groups of a table, with or without properties before it.
pub(super) fn groups_of(line: &str) -> u64 {
    let selectors = line.split(' ').filter(|word| SELECTORS.contains(word));
    selectors.count() as u64
}

/// A table, most of them with an error in one word.
pub(super) fn perhaps_wrong(dice: &mut Dice) -> String {
    let table = table(dice, 4);
    let mut words: Vec<&str> = table.split(' ').collect();
    let at = 3 + dice.below(words.len() as u64 - 3) as usize;
    match dice.below(5) {
        0 => {}
        1 => drop(words.remove(at)),
        2 => words.truncate(at),
        3 => words.insert(at, dice.of(&["0", "1", "2", "7", "x", "8:80"])),
        _ => {
            words[at] = dice.of(&[
                "0", "1", "2", "3", "9", "101", "1024", "x", "8:80", "bio", "mq",
            ]);
        }
    }
    words.join(" ")
}

const SELECTORS: [&str; 5] = [
    "round-robin",
    "queue-length",
    "service-time",
    "historical-service-time",
    "io-affinity",
];

fn table(dice: &mut Dice, cpus: u64) -> String {
    let groups = if dice.one_in(60) {
        0
    } else {
        1 + dice.below(4)
    };
    let first = if groups == 0 {
        0
    } else {
        1 + dice.below(groups)
    };
    let mut devices = Vec::new();
    let is_bio = dice.one_in(6);
    let handler = match dice.below(8) {
        0..=2 => "1 alua",
        3 => "3 rdac a b",
        _ => "0",
    };
    let mut text = format!(
        "0 1000 multipath {} {handler} {groups} {first}",
        features(dice, is_bio)
    );
    let alike = dice.one_in(2);
    let selector = dice.of(&SELECTORS);
    for _ in 0..groups {
        let selector = if alike { selector } else { dice.of(&SELECTORS) };
        let _ = write!(text, " {}", group(dice, selector, cpus, &mut devices));
    }
    text
}

fn features(dice: &mut Dice, is_bio: bool) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut add = |text: String| words.extend(text.split(' ').map(str::to_owned));
    if dice.one_in(2) {
        add("queue_if_no_path".to_owned());
    }
    if dice.one_in(3) {
        add(format!("pg_init_retries {}", 1 + dice.below(4)));
    }
    if dice.one_in(4) {
        // In ticks of any HZ.
        add(format!("pg_init_delay_msecs {}", 20 * dice.below(100)));
    }
    if dice.one_in(8) {
        add("retain_attached_hw_handler".to_owned());
    }
    match is_bio {
        true => add("queue_mode bio".to_owned()),
        false if dice.one_in(8) => add(format!("queue_mode {}", dice.of(&["rq", "mq"]))),
        false => {}
    }
    match words.len() {
        0 => "0".to_owned(),
        // No more than 8 are allowed.
        count if count > 8 => "0".to_owned(),
        count => format!("{count} {}", words.join(" ")),
    }
}

fn group(dice: &mut Dice, selector: &str, cpus: u64, devices: &mut Vec<String>) -> String {
    let own = match (selector, dice.below(3)) {
        ("historical-service-time", 1) => format!("1 {}", dice.of(&["0", "512", "972", "1023"])),
        ("historical-service-time", 2) => {
            let base = dice.below(1024);
            format!("2 {base} {}", dice.of(&["0", "1", "2", "3", "100"]))
        }
        _ => "0".to_owned(),
    };
    let is_affinity = selector == "io-affinity";
    let most = if is_affinity { cpus.min(4) } else { 4 };
    let paths = 1 + dice.below(most);
    let arguments = match selector {
        "service-time" => dice.below(3),
        "io-affinity" => 1,
        _ => dice.below(2),
    };
    let mut text = format!("{selector} {own} {paths} {arguments}");
    for path in 0..paths {
        let _ = write!(text, " {}", device(dice, devices));
        if is_affinity {
            // A CPU of its own; others may be those of a path before it, or of none.
            let others = dice.below(1 << path) | dice.below(1 << cpus) << paths;
            let mask = 1 << path | if dice.one_in(2) { others } else { 0 };
            let _ = write!(text, " {:x}", mask & 0xffff_ffff);
            continue;
        }
        if arguments > 0 {
            let _ = write!(text, " {}", dice.of(&["1", "1", "1000", "0"]));
        }
        if arguments > 1 {
            let _ = write!(text, " {}", dice.of(&["1", "2", "3", "100", "0"]));
        }
    }
    text
}

/// A new device, or one more path to one that is there, under its other name.
fn device(dice: &mut Dice, devices: &mut Vec<String>) -> String {
    if !devices.is_empty() && dice.one_in(12) {
        let other = format!("/dev/{}", dice.one(devices));
        if !other.starts_with("/dev//dev/") && !devices.contains(&other) {
            devices.push(other.clone());
            return other;
        }
    }
    let name = format!("8:{}", 16 * devices.len());
    devices.push(name.clone());
    name
}
