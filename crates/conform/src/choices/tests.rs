//! Records made by hand: open choices, wrong ones, and the choices after a wrong one.

use blkmq::rules::DeviceMapper;

use super::order::{Apart, Explanation, explain as explain_with};
use super::silent::Changes;
use super::*;

const RULES: DeviceMapper = DeviceMapper::V6_1;

fn target(selector: &str) -> Multipath {
    target_with(selector, "0")
}

/// With these words of a hardware handler.
fn target_with(selector: &str, handler: &str) -> Multipath {
    let words = if selector == "service-time" { 2 } else { 1 };
    let path = |device: &str| format!("{device} {}", ["1"; 2][..words].join(" "));
    let (first, second) = (path("8:0"), path("8:16"));
    let line = format!("0 1000 multipath 0 {handler} 1 1 {selector} 0 2 {words} {first} {second}");
    let table = Table::parse(&line, &RULES, 2).unwrap();
    Multipath::new(&table, RULES, &[0, 0], 0)
}

fn atom(after: u64, before: u64, what: What) -> Atom {
    Atom {
        after: SimTime(after),
        before: SimTime(before),
        what,
    }
}

fn maps(after: u64, before: u64, path: u16) -> Atom {
    mapped_to(after, before, Some(PathId(path)))
}

/// It comes back without a clone.
fn maps_in_vain(after: u64, before: u64) -> Atom {
    mapped_to(after, before, None)
}

fn mapped_to(after: u64, before: u64, path: Option<PathId>) -> Atom {
    let io = Incoming {
        bytes: 4096,
        cpu: CpuId(0),
        now: SimTime(after),
        bio: None,
    };
    atom(after, before, What::Map { io, path })
}

fn ends(after: u64, before: u64, path: u16) -> Atom {
    let mapped = Mapped {
        path: PathId(path),
        bytes: 4096,
    };
    let (started, status) = (SimTime::ZERO, Status::Ok);
    let what = What::End {
        mapped,
        started,
        over: SimTime(before),
        cpu: CpuId(0),
        status,
        again: false,
    };
    atom(after, before, what)
}

fn counts(explanation: &Explanation) -> (u64, u64, u64) {
    let choices = &explanation.choices;
    let wrong = choices.wrong.len() as u64;
    (choices.total, choices.total - wrong, choices.open)
}

/// Paths with unknown tags; the selector counts each choice at once.
fn explain(target: Multipath, atoms: &[Atom]) -> Explanation {
    let mut all = Vec::new();
    for atom in atoms {
        all.push(*atom);
        if let What::Map {
            io,
            path: Some(path),
        } = atom.what
        {
            let bytes = io.bytes;
            let mapped = Mapped { path, bytes };
            let what = What::Start { mapped };
            all.push(Atom { what, ..*atom });
        }
    }
    explain_with(target, Apart::default(), &Tags::default(), &all)
}

#[test]
fn round_robin_is_explained() {
    let atoms = [maps(0, 1, 0), maps(2, 3, 1), maps(4, 5, 0)];
    assert_eq!(counts(&explain(target("round-robin"), &atoms)), (3, 3, 0));
}

/// The checker's mutant: a kernel that did not rotate. Each wrong choice counts once.
#[test]
fn a_wrong_choice_counts_once() {
    let atoms = [
        maps(0, 1, 0),
        maps(2, 3, 0),
        maps(4, 5, 1),
        maps(6, 7, 0),
        maps(8, 9, 1),
    ];
    let explanation = explain(target("round-robin"), &atoms);
    assert_eq!(counts(&explanation), (5, 4, 0));
    let [wrong] = &explanation.choices.wrong[..] else {
        panic!("{:?}", explanation.choices.wrong)
    };
    assert_eq!((wrong.index, wrong.kernel), (2, Did::Goes(PathId(0))));
    assert_eq!(wrong.model, Did::Goes(PathId(1)));
}

/// A request that came back without a clone has turned the list.
#[test]
fn a_choice_without_a_clone_rotates() {
    let atoms = [maps(0, 1, 0), maps_in_vain(2, 3), maps(4, 5, 0)];
    assert_eq!(counts(&explain(target("round-robin"), &atoms)), (2, 2, 0));
}

/// An end between the records of a choice may have come before or after it; with another record in
/// between it may not.
#[test]
fn what_overlaps_is_tried_in_both_orders() {
    let before = [
        maps(0, 1, 0),
        maps(2, 3, 1),
        maps(4, 5, 0),
        // 8:0 has two in flight, 8:16 one; ends of 8:0 decide where the next one goes.
        ends(6, 7, 0),
        maps(10, 20, 0),
        ends(12, 14, 0),
    ];
    assert_eq!(counts(&explain(target("service-time"), &before)), (4, 4, 1));
    let mut apart = before;
    apart[5] = ends(22, 24, 0);
    assert_eq!(counts(&explain(target("service-time"), &apart)), (4, 3, 0));
}

/// Eight CPUs at once, each choice with ends before and after it that do not matter: as all are of
/// one length, only their number matters, and one order is found.
#[test]
fn what_does_the_same_is_tried_once() {
    let mut atoms = Vec::new();
    for round in 0..40 {
        let at = round * 100;
        for cpu in 0..8 {
            // Both begin with as many; a kernel that counts each end at once takes turns.
            atoms.push(maps(at + cpu, at + 90 + cpu, (cpu % 2) as u16));
            if round > 0 {
                atoms.push(ends(at + cpu, at + 95, (cpu % 2) as u16));
            }
        }
    }
    let explanation = explain(target("service-time"), &atoms);
    assert_eq!(
        (explanation.choices.total, explanation.choices.wrong.len()),
        (320, 0)
    );
    // The mutant: a choice that no number of ends allows.
    let all = [maps(0, 1, 0), maps(2, 3, 1)];
    let more: Vec<Atom> = (0..8).map(|n| maps(10 + n, 20 + n, 0)).collect();
    let explanation = explain(target("service-time"), &[&all[..], &more[..]].concat());
    assert_eq!(
        (explanation.choices.total, explanation.choices.wrong.len()),
        (10, 7)
    );
}

/// A choice of each of these paths, one after the other.
fn in_a_row(paths: &[u16]) -> Vec<Atom> {
    let at = (0..).map(|n| n * 2);
    let each = at.zip(paths);
    each.map(|(at, &path)| maps(at, at + 1, path)).collect()
}

/// Messages and checkers leave no record: a path that a kernel leaves out sixteen times has failed
/// before, and is reinstated when it is chosen again. Less often it is a wrong choice each time.
#[test]
fn a_path_that_is_left_out_for_long_has_failed() {
    let paths = |left_out: usize| {
        let mut paths = vec![0, 1];
        paths.extend(vec![0; left_out + 1]);
        paths.extend([1, 0, 1, 0]);
        in_a_row(&paths)
    };
    let explanation = explain(target("round-robin"), &paths(16));
    assert_eq!(counts(&explanation), (23, 23, 0));
    let failed_once = Changes {
        failed: 1,
        reinstated: 1,
        activated: 0,
    };
    assert_eq!(explanation.silent, failed_once);
    let explanation = explain(target("round-robin"), &paths(15));
    assert_eq!(counts(&explanation), (22, 7, 0));
    assert_eq!(explanation.silent, Changes::default());
    // A path that is left out while another choice is wrong as well: nothing explains that.
    let mut paths = vec![0, 1, 0];
    paths.extend([[0, 0, 1]; 8].concat());
    let explanation = explain(target("round-robin"), &in_a_row(&paths));
    assert!(
        explanation.choices.wrong.len() > 7,
        "{:?}",
        explanation.choices
    );
    assert_eq!(explanation.silent, Changes::default());
}

/// A group whose activation has ended is chosen from: that is in no record either. The first
/// request comes back, as it began the activation.
#[test]
fn an_activation_ends_before_a_path_is_chosen() {
    let choices = [maps(2, 3, 1), maps(4, 5, 0), maps(6, 7, 1)];
    let atoms = [&[maps_in_vain(0, 1)], &choices[..]].concat();
    let explanation = explain(target_with("round-robin", "1 alua"), &atoms);
    assert_eq!(counts(&explanation), (3, 3, 0));
    let ended_once = Changes {
        activated: 1,
        ..Changes::default()
    };
    assert_eq!(explanation.silent, ended_once);
}
