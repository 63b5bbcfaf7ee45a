//! Tables from text and recorded output.

use super::*;

/// The text of the only table, after these runs.
fn made(text: &str, lines: &[(&str, &str, &str)]) -> Result<String> {
    let mut definitions = Definitions::default();
    definitions.add("f.toml", text)?;
    let grid = Grid::new(&definitions, &definitions.tables[0])?;
    grid.made(&Blksim::recorded(lines)).map(|made| made.body)
}

/// A cell of the report.
fn cell(cell: &str, report: &str) -> String {
    let text = format!("[[table]]\nname = \"t\"\nrun = \"run a\"\ncolumns = [[\"h\", {cell}]]\n");
    match made(&text, &[("run a --json", report, "")]) {
        Ok(table) => table
            .lines()
            .nth(2)
            .unwrap()
            .trim_matches(['|', ' '])
            .to_owned(),
        Err(failure) => failure.0,
    }
}

#[test]
fn cells_show_figures_of_the_report() {
    const REPORT: &str = r#"{"n": 1234.5, "zero": 0, "word": "v6.1", "none": null, "a/b": 7,
        "all": [{"name": "x", "of": 1, "per": {"a": 2}}, {"name": "y", "of": 3, "per": {"a": 5}},
                {"name": "z", "of": 3, "per": {"a": 9}}], "empty": [], "zeros": [{"of": 0}]}"#;
    for (text, expected) in [
        (
            "'{/n} {/n:.0} {/n:+.2} {/n:,} {/zero:+.1}'",
            "1234.5 1234 +1234.50 1,234 +0.0",
        ),
        ("'{/word} {/word:-v} {/a~1b}'", "v6.1 6.1 7"),
        (
            "'{1 + 2 * 3 - 8 / 4 / 2} {(1 + 2) * 3} {abs(1 - 3)}'",
            "6 9 2",
        ),
        ("'{2 < 3} {3 < 3} {3 <= 3} {4 <= 3}'", "1 0 1 0"),
        (
            "'{/all/0/of} {/all/name=y/per/a} {/all/of=max/name}'",
            "1 5 y",
        ),
        (
            "'{sum(/all/*/of)} {sum(/empty/*/of)} {/n / 2:.1}'",
            "7 0 617.2",
        ),
        // The first alternative that applies.
        ("'{/gone}', '{/n:.0}', 'x'", "1234"),
        ("'{?/zero}a', '{?/none}b', '{?/n < 1}c', '{?/n}d'", "d"),
        ("'{/zeros/of=max/of}', '-'", "-"),
        // Parts without a figure that is not 0.
        (
            "'a[, {/zero} b][, {/n:.0} c][; {/zero}/{/n:.0}]'",
            "a, 1234 c; 0/1234",
        ),
        (
            "'[{/all/*/name}: {/all/*/of}][{/empty/*/of}]'",
            "x: 1, y: 3, z: 3",
        ),
    ] {
        assert_eq!(cell(text, REPORT), expected, "{text}");
    }
    for (text, part) in [
        ("'{/gone}'", "nothing at /gone"),
        ("'{/none}'", "nothing at /none"),
        ("'{sum(/gone/*/of)}'", "nothing at /gone/*/of"),
        ("'{sum(/all/*/gone)}'", "nothing at /all/*/gone"),
        ("'{/all/name=w/of}'", "nothing at /all/name=w/of"),
        ("'{/word:.1}'", "`v6.1` is no number"),
        ("'{?/zero}a'", "no alternative applies"),
        ("'{/n'", "has no end"),
        ("'[a'", "has no end"),
        ("'{/n:x}'", "`x` is no format"),
        ("'{/n /zero}'", "is too much"),
        ("'{mean(/n)}'", "`mean` is no function"),
        ("'{(/n}'", "no `)`"),
        ("'{gone}'", "no name `gone`"),
        ("'{other/n}'", "`other/n`: no such run or data"),
        ("'{/all/*/of + 1}'", "3 members"),
        ("'{other.x}'", "`other` is no run"),
    ] {
        let failure = cell(text, REPORT);
        assert!(
            failure.starts_with("f.toml: table `t`, column `h`"),
            "{text}: {failure}"
        );
        assert!(failure.contains(part), "{text}: {failure}");
    }
}

#[test]
fn rows_columns_and_runs_have_their_figures() {
    let text = r#"
[let]
n = "/n"
loop = "loop + 1"
[text]
both = ["{a.n}+{b.n}"]
[[table]]
name = "t"
runs.a = "run {of} {q} {w}"
runs.b = "run {of} {q} {w} --more"
row = ["of"]
rows = [["x"], ["y"]]
each.q = [1, 2]
across.w = [3, 4]
across.head = ["three", "four"]
columns = [
    ["of", "{of}{q}"],
    ["{head}", "{both}={a.n + b.n}, {a.n / first.a.n:.1}, {column}"],
    ["sum", "{total.a.n}"],
]
text = "Last: {last.b.n}.\n"
"#;
    let mut lines = Vec::new();
    for (of, q, w, n) in [
        ("x", 1, 3, 10),
        ("x", 1, 4, 20),
        ("x", 2, 3, 30),
        ("x", 2, 4, 40),
    ] {
        lines.push((
            format!("run {of} {q} {w} --json"),
            format!("{{\"n\": {n}}}"),
        ));
        lines.push((
            format!("run {of} {q} {w} --more --json"),
            format!("{{\"n\": {}}}", n + 1),
        ));
        let (of, n) = ("y", n + 40);
        lines.push((
            format!("run {of} {q} {w} --json"),
            format!("{{\"n\": {n}}}"),
        ));
        lines.push((
            format!("run {of} {q} {w} --more --json"),
            format!("{{\"n\": {}}}", n + 1),
        ));
    }
    let recorded: Vec<_> = lines
        .iter()
        .map(|(l, o)| (l.as_str(), o.as_str(), ""))
        .collect();
    let table = "\
| of | three | four | sum |
|---|---|---|---|
| x1 | 10+11=21, 1.0, 0 | 20+21=41, 1.0, 1 | 30 |
| x2 | 30+31=61, 3.0, 0 | 40+41=81, 2.0, 1 | 70 |
| y1 | 50+51=101, 5.0, 0 | 60+61=121, 3.0, 1 | 110 |
| y2 | 70+71=141, 7.0, 0 | 80+81=161, 4.0, 1 | 150 |
Last: 71.
";
    assert_eq!(made(text, &recorded).unwrap(), table);
    let failure = made(&text.replace("{total.a.n}", "{loop}"), &recorded).unwrap_err();
    assert!(failure.0.contains("`loop` refers to itself"), "{failure}");
    let failure = made(&text.replace("{total.a.n}", "{/n}"), &recorded).unwrap_err();
    assert!(failure.0.contains("of which run?"), "{failure}");
}

#[test]
fn keys_that_do_not_fit_are_reported_before_any_run() {
    const GOOD: &str = "[[table]]\nname = \"t\"\nrun = \"run a\"\nrow = [\"x\"]\nrows = [[1]]\n\
                        columns = [[\"h\", \"{x}\"]]\n";
    assert_eq!(
        made(GOOD, &[("run a --json", "{}", "")]).unwrap(),
        "| h |\n|---|\n| 1 |\n"
    );
    for (from, to, part) in [
        ("rows", "row_s", "table `t`: unknown field `row_s`"),
        ("name = \"t\"\n", "", "a table without `name`"),
        (
            "[[1]]",
            "[[1, 2]]",
            "table `t`, rows: number 1 has not 1 values",
        ),
        ("run a", "run {y}", "table `t`, run: there is no name `y`"),
        (
            "rows",
            "each.y = [1]\neach.z = []\nrows",
            "each.z: expected 1 values",
        ),
        ("rows", "like = \"u\"\nrows", "like: there is no such table"),
        ("{x}", "{1 +}", "row 1: `1 +`: `+` is too much"),
        (
            "[[table]]",
            "[scenario.y]\nof = \"x\"\nto = 1\n[[table]]",
            "unknown field `to`",
        ),
        (
            "{x}\"]]\n",
            "{y/a}\"]]\n[data]\ny = \"no/f\"\n",
            "`y/a`: no/f: cannot read",
        ),
        ("[[table]]", "[tables]\n[[table]]", "unknown field `tables`"),
        ("{x}", "{x", "column `h`, row 1: `{x` has no end"),
    ] {
        let failure = made(&GOOD.replacen(from, to, 1), &[]).unwrap_err();
        assert!(failure.0.contains("f.toml"), "{part}: {failure}");
        assert!(failure.0.contains(part), "{part}: {failure}");
    }
    let mut twice = Definitions::default();
    twice
        .add("f.toml", &format!("{GOOD}[let]\ny = \"1\"\n"))
        .unwrap();
    let failure = twice.add("g.toml", GOOD).unwrap_err();
    assert_eq!(failure.0, "g.toml: table `t`: there are two of this name");
    let failure = twice.add("g.toml", "[let]\ny = \"2\"\n").unwrap_err();
    assert_eq!(failure.0, "g.toml: `y` is defined twice");
}

#[test]
fn refused_runs_are_cells_gaps_or_failures() {
    const TEXT: &str = r#"
[[table]]
name = "t"
runs.a = "conform {of}"
runs.b = "conform {of} --log"
row = ["of"]
rows = [["x"], ["y"], ["z"]]
omit.a = "not modelled"
refused."no log" = "-"
refused."it writes no log" = "none"
columns = [["of", "{of}"], ["a", "{a/n}"], ["b", "{b/n}"], ["c", "{b/n}", "?"]]
"#;
    let runs = |why| {
        [
            ("conform x --json", "{\"n\": 1}", ""),
            ("conform x --log --json", "", "error: x: it writes no log\n"),
            ("conform y --json", "", "error: y: not modelled\n"),
            ("conform y --log --json", "", "error: y: no log\n"),
            ("conform z --json", "{\"n\": 2}", ""),
            ("conform z --log --json", "", why),
        ]
    };
    let rows = made(TEXT, &runs("error: z: no log\n")).unwrap();
    assert!(
        rows.ends_with("|\n| x | 1 | none | ? |\n| z | 2 | - | ? |\n"),
        "{rows}"
    );
    let failure = made(TEXT, &runs("error: z: damaged\n")).unwrap_err();
    assert_eq!(failure.0, "f.toml: table `t`, row 3, run b: z: damaged");
    let list = TEXT.split("omit").next().unwrap().to_owned() + "list = \"* {of}: {b.refused}\"\n";
    let list = list.replace(
        "runs.a = \"conform {of}\"\n",
        "runs.a = \"conform {of} --log\"\n",
    );
    let listed = made(&list, &runs("error: z: damaged\n")).unwrap();
    assert_eq!(
        listed,
        "* x: x: it writes no log\n* y: y: no log\n* z: z: damaged\n"
    );
}

#[test]
fn printed_text_is_shortened_to_what_is_shown() {
    let text =
        |more: &str| format!("[[table]]\nname = \"t\"\n[table.print]\nline = \"run a\"\n{more}");
    let lines = [("run a", "Head 1\nmore\n\nJob\n\n\nLocks\n", "stalled\n")];
    let printed = |more: &str| made(&text(more), &lines);
    assert_eq!(
        printed("").unwrap(),
        "```\nHead 1\nmore\n\nJob\n\n\nLocks\n```\n"
    );
    assert_eq!(printed("stderr = true").unwrap(), "```\nstalled\n```\n");
    assert_eq!(
        printed("paragraphs = 2").unwrap(),
        "```\nHead 1\nmore\n\nJob\n```\n"
    );
    let shown = printed("lines = [\"Head\", \"Lo\"]").unwrap();
    assert_eq!(shown, "```\nHead 1\n\nLocks\n```\n");
    let failure = printed("lines = [\"Head\", \"CPUs\"]").unwrap_err();
    assert!(
        failure.0.contains("no line begins with `CPUs`"),
        "{failure}"
    );
}

#[test]
fn variants_of_a_scenario_have_other_words() {
    let mut definitions = Definitions::default();
    let text = "[scenario.t-one]\nof = \"disk-turn\"\nreplace.\"[machine]\" = \"[device]\"\n\
                [scenario.t-two]\nof = \"t-one\"\nreplace.\"[device]\" = \"[queue]\"\n\
                [scenario.t-gone]\nof = \"t-one\"\nreplace.\"[machine]\" = \"\"\n\
                [scenario.\"t.part\"]\nof = \"docs/SUMMARY.md\"\npart = [\"# \", \"\\n\"]\n";
    definitions.add("f.toml", text).unwrap();
    let read = |name| std::fs::read_to_string(definitions.scenario(name).unwrap()).unwrap();
    assert!(read("t-two").contains("[queue]") && !read("t-two").contains("[machine]"));
    assert!(read("t.part").starts_with("# ") && !read("t.part").contains('\n'));
    let line = definitions.with_files("plot t-one  disk-turn").unwrap();
    assert!(
        line.starts_with("plot /") && line.ends_with("/t-one.toml disk-turn"),
        "{line}"
    );
    let failure = definitions.scenario("t-gone").unwrap_err();
    assert_eq!(failure.0, "scenario `t-gone`: t-one has no `[machine]`");
}
