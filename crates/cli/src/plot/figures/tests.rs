use super::super::group::{Groups, estimate};
use super::super::input::{
    Counter, CounterUnit, Depth, Details, Form, Latencies, Lock, Run, Seeks, Switches, Times, Turns,
};
use super::super::render;
use super::super::scene::{Colour, Dash, Item, PALETTE, Scene};
use super::*;
use sim::estimate::Estimate;

/// A run with figures that are easy to draw.
fn run(scheduler: &str, threads: f64) -> Run {
    let lock = |name: &str, scale: f64| Lock {
        name: name.to_owned(),
        wait_ns: (1..50)
            .map(|i| (scale * f64::from(i), 100.0 / f64::from(i)))
            .collect(),
        hold_ns: vec![(scale, 10.0), (scale * 1.1, 1.0)],
        handoffs: [0.0, 3.0, 500.0, 496.0, 1.0],
    };
    Run {
        file: String::new(),
        version: "1.2.3".to_owned(),
        scenario: "scaling".to_owned(),
        scheduler: scheduler.to_owned(),
        rules: "v6.12".to_owned(),
        machine: "ryzen".to_owned(),
        device: "null_blk".to_owned(),
        options: String::new(),
        sets: Vec::new(),
        others: String::new(),
        cpus: 32.0,
        seed: 1,
        threads,
        iops: 900_000.0 / threads,
        iops_interval: Some([880_000.0 / threads, 910_000.0 / threads]),
        ios: 180_000.0,
        times: Times {
            user: 0.2,
            system: 6.0,
            lock_wait: 88.8,
            softirq: 0.6,
            irq: 0.2,
            idle: 4.2,
        },
        latencies: [
            Latencies {
                ios: 180_000.0,
                percentiles: vec![(0.0, 7000.0), (50.0, 140_000.0), (100.0, 998_000.0)],
                intervals: Vec::new(),
            },
            Latencies::default(),
            Latencies::default(),
        ],
        details: Some(Details {
            latency_ns: vec![(7000.0, 1.0), (140_000.0, 900.0), (998_000.0, 1.0)],
            locks: vec![
                lock("dd->lock", 500.0),
                lock("driver tags swap_lock", 40.0),
                lock("scheduler tags swap_lock", 41.0),
            ],
            depth: Depth {
                step_ns: 1000.0,
                mean: vec![0.5, 2.0, 64.0],
                max: vec![3.0, 9.0, 64.0],
            },
            switches: switches([30.0, 0.0, 0.0, 10.0, 20.0]),
            counters: counters(),
            rates: vec![rates("read", 9e5), rates("write", 3e5)],
            seeks: vec![seeks("sda", "dump 0", 2e8), seeks("sda", "dump 1", 3e8)],
            seek_count: 5000.0,
            turns: vec![
                turns("cfq7S", "BE sync", 0.0),
                turns("cfq8A", "BE async", 3e6),
            ],
            turn_count: 4.0,
        }),
    }
}

/// A direction with so many IOPS of 4 KiB, which stops for a step.
fn rates(direction: &str, iops: f64) -> [Counter; 3] {
    let curve = |name: &str, unit, value: f64| Counter {
        name: name.to_owned(),
        group: direction.to_owned(),
        form: Form::Level,
        unit,
        beside: None,
        step_ns: 1e6,
        values: vec![Some(value), None, Some(value)],
    };
    [
        curve("IOPS", CounterUnit::Number, iops),
        curve("bandwidth", CounterUnit::Bytes, 4096.0 * iops),
        curve("mean latency", CounterUnit::Nanoseconds, 7e4),
    ]
}

/// So many to tasks, kworkers, kdmwork, ksoftirqd and swapper in each of three steps.
fn switches(each: [f64; 5]) -> Switches {
    Switches {
        step_ns: 1000.0,
        counts: each.map(|count| vec![count; 3]),
    }
}

/// A stream that begins at `from`.
fn seeks(device: &str, thread: &str, from: f64) -> Seeks {
    let point = |i| (1e6 * f64::from(i), from + 256.0 * f64::from(i));
    Seeks {
        device: device.to_owned(),
        thread: thread.to_owned(),
        points: (0..40).map(point).collect(),
    }
}

/// A turn of 2 ms from then on, and 1 ms in which the device waits.
fn turns(group: &str, tree: &str, from: f64) -> Turns {
    Turns {
        group: group.to_owned(),
        tree: tree.to_owned(),
        spans: vec![(from, from + 2e6, false), (from + 2e6, from + 3e6, true)],
    }
}

/// One of each form; one group has no values.
fn counters() -> Vec<Counter> {
    let counter = |name: &str, group: &str, form, unit, values: [Option<f64>; 3]| Counter {
        name: name.to_owned(),
        group: group.to_owned(),
        form,
        unit,
        beside: None,
        step_ns: 1e6,
        values: values.to_vec(),
    };
    let [one, two] = [Some(1.0), Some(2.0)];
    vec![
        counter(
            "tokens",
            "READ",
            Form::Level,
            CounterUnit::Number,
            [one, None, two],
        ),
        counter(
            "tokens",
            "OTHER",
            Form::Level,
            CounterUnit::Number,
            [two; 3],
        ),
        counter(
            "latency",
            "READ",
            Form::Sample,
            CounterUnit::Target,
            [None, one, two],
        ),
        counter(
            "service",
            "queue 7",
            Form::Count,
            CounterUnit::Sectors,
            [one, None, one],
        ),
    ]
}

fn drawn(runs: &[Run]) -> (Vec<Figure>, Vec<String>) {
    all(&Groups::new(runs, false).unwrap(), &[])
}

/// Texts lie on the page and do not cover each other.
fn check_texts(name: &str, scene: &Scene) {
    let texts = scene.items.iter().filter_map(|item| match item {
        Item::Text { text, .. } => Some((text, item.text_box()?)),
        _ => None,
    });
    let texts: Vec<(&String, [i32; 4])> = texts.collect();
    assert!(texts.len() > 4, "{name}: a figure without words");
    for (index, (text, [left, top, right, bottom])) in texts.iter().enumerate() {
        let on_page = *left >= 0
            && *top >= 0
            && *right <= scene.width as i32
            && *bottom <= scene.height as i32;
        assert!(on_page, "{name}: `{text}` leaves the page");
        for (other, [l, t, r, b]) in &texts[..index] {
            let apart = r <= left || right <= l || b <= top || bottom <= t;
            assert!(apart, "{name}: `{text}` covers `{other}`");
        }
    }
}

/// A picture is marked as simulated: for its viewers, and for programs.
fn check_origin(figure: &Figure, svg: &str) {
    let origin = "simulated by blksim 1.2.3: a model, no measurement";
    let is_text = |item: &Item| matches!(item, Item::Text { text, .. } if text == origin);
    assert!(figure.scene.items.iter().any(is_text), "{}", figure.name);
    assert_eq!(svg.matches(origin).count(), 2, "{}", figure.name);
    assert!(svg.contains(&format!("<desc>{origin}</desc>")));
}

#[test]
fn runs_of_two_versions_are_reported() {
    let mut other = run("mq-deadline", 1.0);
    other.version = "1.3.0".to_owned();
    let runs = [other, run("none", 1.0)];
    let groups = Groups::new(&runs, false).unwrap();
    assert_eq!(
        groups.origin,
        "simulated by blksim 1.2.3 and 1.3.0: a model, no measurement"
    );
}

fn check(runs: &[Run], count: usize) {
    let (figures, notes) = drawn(runs);
    assert_eq!(figures.len(), count, "{notes:?}");
    assert_eq!(figures.len() + notes.len(), 12, "each figure or a note");
    for figure in &figures {
        check_texts(&figure.name, &figure.scene);
        assert_eq!(render::svg(&figure.scene), render::svg(&figure.scene));
        check_origin(figure, &render::svg(&figure.scene));
    }
}

#[test]
fn a_study_has_all_figures_and_readable_texts() {
    let threads = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
    let runs = threads.map(|n| [run("none", n), run("mq-deadline", n)]);
    check(&runs.concat(), 12);
    let every: Vec<Run> = (1..=32).map(|n| run("none", f64::from(n))).collect();
    check(&every, 12);
}

#[test]
fn one_run_has_all_figures_but_the_one_that_needs_several() {
    check(&[run("none", 32.0)], 11);
}

#[test]
fn seven_long_names_fit() {
    let name = |i: usize| {
        format!(
            "{i} {}",
            "a scheduler with a name as long as none has ".repeat(3)
        )
    };
    let runs: Vec<Run> = (0..7)
        .flat_map(|i| [run(&name(i), 1.0), run(&name(i), 2.0)])
        .collect();
    check(&runs, 12);
}

#[test]
fn runs_without_details_lack_the_figures_of_spreads() {
    let mut run = run("none", 1.0);
    run.details = None;
    check(&[run.clone()], 3);
    let (_, notes) = drawn(&[run]);
    assert!(notes[1].contains("--details"), "{notes:?}");
}

#[test]
fn a_single_seed_has_the_interval_of_its_run() {
    let mut one = run("none", 2.0);
    let other = run("none", 4.0);
    one.latencies[0].intervals = vec![(100.0, [990_000.0, 999_000.0])];
    let tail = estimate(&[&one], |run| run.latency_at(0, 99.0));
    assert_eq!(
        tail,
        Estimate {
            mean: 998_000.0,
            half: Some(8000.0)
        }
    );
    let iops = estimate(&[&one], Run::iops_around);
    assert_eq!(
        iops,
        Estimate {
            mean: 450_000.0,
            half: Some(10_000.0)
        }
    );
    // Of two seeds their own distance counts.
    let both = estimate(&[&one, &other], Run::iops_around);
    assert!((both.mean - 337_500.0).abs() < 1e-6);
    assert!(both.half.is_some_and(|half| half > 1e6));
}

#[test]
fn latencies_of_a_figure_are_of_one_direction() {
    // Few more writes in one run of a mix, and many more reads in the other.
    let mixed = |threads: f64, reads: f64| {
        let mut run = run("none", threads);
        run.latencies[1] = Latencies {
            ios: 1000.0,
            percentiles: vec![(99.0, 10.0)],
            intervals: Vec::new(),
        };
        run.latencies[0].ios = reads;
        run
    };
    let runs = [mixed(1.0, 990.0), mixed(2.0, 2000.0)];
    let of = |runs: &[Run]| Groups::new(runs, false).unwrap().direction;
    assert_eq!((of(&runs), of(&runs[..1])), (0, 1));
}

#[test]
fn a_run_in_which_nothing_happened_is_drawn_without_a_panic() {
    let mut run = run("none", 0.0);
    run.iops = 0.0;
    run.ios = 0.0;
    run.times = Times::default();
    run.latencies = Default::default();
    let nothing = Depth {
        step_ns: 1000.0,
        mean: Vec::new(),
        max: Vec::new(),
    };
    run.details = Some(Details {
        latency_ns: Vec::new(),
        locks: Vec::new(),
        depth: nothing,
        switches: Switches {
            step_ns: 1000.0,
            counts: [const { Vec::new() }; 5],
        },
        counters: Vec::new(),
        rates: Vec::new(),
        seeks: Vec::new(),
        seek_count: 0.0,
        turns: Vec::new(),
        turn_count: 0.0,
    });
    check(&[run], 2);
}

#[test]
fn a_group_that_does_nothing_has_no_curve() {
    let (figures, _) = drawn(&[run("none", 1.0)]);
    let figure = figures.iter().find(|of| of.name == "scheduler").unwrap();
    let says = |text: &str| {
        let says = |item: &Item| matches!(item, Item::Text { text: t, .. } if t.contains(text));
        figure.scene.items.iter().any(says)
    };
    let names = [
        "READ",
        "queue 7",
        "the target",
        "tokens",
        "service, sectors, in 1 ms",
    ];
    assert!(names.iter().all(|name| says(name)));
    assert!(!says("OTHER"));
    let mut still = run("none", 1.0);
    let counters = &mut still.details.as_mut().unwrap().counters;
    counters.retain(|counter| counter.group == "OTHER");
    let (_, notes) = drawn(&[still]);
    assert!(
        notes.iter().any(|note| note.contains("recorded a value")),
        "{notes:?}"
    );
}

/// Three panels of a run, each with all directions, to scales of their units.
#[test]
fn ios_over_time_have_a_panel_for_each_figure() {
    let (figures, _) = drawn(&[run("none", 1.0)]);
    let figure = figures.iter().find(|of| of.name == "rates").unwrap();
    let all = texts(&figure.scene);
    for title in [
        "none: IOPS",
        "none: bandwidth",
        "none: mean latency",
        "800 k",
        "3 GiB/s",
    ] {
        assert!(all.contains(&title), "{title}: {all:?}");
    }
    let count = |wanted: &str| all.iter().filter(|text| **text == wanted).count();
    assert_eq!((count("read"), count("write")), (3, 3), "{all:?}");
    let mut still = run("none", 1.0);
    still.details.as_mut().unwrap().rates = Vec::new();
    let (_, notes) = drawn(&[still]);
    let strings = |note: &String| note.contains("no I/O ended");
    assert!(notes.iter().any(strings), "{notes:?}");
}

/// One panel a run, to one scale; a kind of task without switches has neither area nor name.
#[test]
fn switches_lie_one_upon_the_other() {
    let mut alone = run("alone", 1.0);
    alone.details.as_mut().unwrap().switches = switches([1.0, 0.0, 0.0, 0.0, 0.0]);
    let (figures, _) = drawn(&[alone, run("mapped", 1.0)]);
    let figure = figures.iter().find(|of| of.name == "switches").unwrap();
    let all = texts(&figure.scene);
    let count = |wanted: &str| all.iter().filter(|text| **text == wanted).count();
    assert_eq!(count("to tasks"), 2, "{all:?}");
    assert_eq!(count("to ksoftirqd"), 1, "{all:?}");
    assert_eq!(count("to kworkers"), 0, "{all:?}");
    assert_eq!(count("to swapper (idle)"), 1, "{all:?}");
    // Sixty in a microsecond, of both runs.
    assert_eq!(count("60 M"), 2, "{all:?}");
    let mut still = run("none", 1.0);
    still.details.as_mut().unwrap().switches = switches([0.0; 5]);
    let (_, notes) = drawn(&[still]);
    let strings = |note: &String| note.contains("no CPU switched");
    assert!(notes.iter().any(strings), "{notes:?}");
}

/// A count with an aim has one panel with it, where both are sums: four sectors of service end at
/// the same height as four of the share.
#[test]
fn a_target_is_drawn_with_its_count() {
    let mut of_bfq = run("bfq", 1.0);
    let counters = &mut of_bfq.details.as_mut().unwrap().counters;
    counters.retain(|counter| counter.name == "service");
    counters[0].values = vec![Some(3.0), None, Some(1.0), None];
    let share = Counter {
        name: "share".to_owned(),
        beside: Some("service".to_owned()),
        values: vec![Some(1.0); 4],
        ..counters[0].clone()
    };
    counters.push(share);
    let (figures, _) = drawn(&[of_bfq]);
    let scene = &figures
        .iter()
        .find(|of| of.name == "scheduler")
        .unwrap()
        .scene;
    let all = texts(scene);
    let titled = |text: &&&str| text.contains("service, and thin the share, up to then, sectors");
    assert_eq!(all.iter().filter(titled).count(), 1, "{all:?}");
    assert!(!all.iter().any(|text| text.contains(": share")), "{all:?}");
    let ends = |wanted: Colour| {
        let mut lines = scene.items.iter().filter_map(|item| match item {
            Item::Line { points, colour, .. } if *colour == wanted => points.last(),
            _ => None,
        });
        lines.next().copied().expect("a curve of this colour")
    };
    assert_eq!(ends(PALETTE[0]), ends(PALETTE[0].tint(0.6)));
}

fn texts(scene: &Scene) -> Vec<&str> {
    let texts = scene.items.iter().filter_map(|item| match item {
        Item::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

fn specks(scene: &Scene) -> usize {
    let speck = |item: &&Item| matches!(item, Item::Dot { radius: 4, .. });
    scene.items.iter().filter(speck).count()
}

fn seek_figure(run: &Run) -> Scene {
    let (figures, notes) = drawn(core::slice::from_ref(run));
    let figure = figures.into_iter().find(|of| of.name == "seek");
    let figure = figure.unwrap_or_else(|| panic!("{notes:?}"));
    check_texts("seek", &figure.scene);
    figure.scene
}

#[test]
fn an_arm_has_a_dot_for_each_command_and_a_panel_for_each_disk() {
    let mut run = run("none", 1.0);
    let scene = seek_figure(&run);
    assert_eq!(specks(&scene), 80);
    let strings = texts(&scene);
    assert!(strings.contains(&"dump 0") && strings.contains(&"dump 1"));
    // Where the axis begins, and that there were more commands than are shown.
    assert!(strings.iter().any(|t| t.contains("after sector 200000000")));
    assert!(
        strings
            .iter()
            .any(|t| t.contains("the first 80 commands of 5 k"))
    );

    let details = run.details.as_mut().unwrap();
    details.seek_count = 42.0;
    details.seeks[1].device = "sdb".to_owned();
    details.seeks[0].points = vec![(0.0, 0.0), (1e6, 0.0)];
    let scene = seek_figure(&run);
    let strings = texts(&scene);
    assert_eq!(specks(&scene), 42);
    assert!(
        strings.iter().any(|t| t.ends_with("sda: sector")),
        "{strings:?}"
    );
    assert!(strings.iter().any(|t| t.contains("sdb: sectors after")));
    assert!(!strings.iter().any(|t| t.contains("the first")));
}

fn bars(scene: &Scene, wanted: Colour) -> usize {
    let bar = |item: &&Item| matches!(item, Item::Rect { colour, .. } if *colour == wanted);
    scene.items.iter().filter(bar).count()
}

#[test]
fn a_turn_is_a_bar_in_the_colour_of_its_tree_and_pale_while_the_device_waits() {
    let mut run = run("cfq", 1.0);
    let figure = |run: &Run| {
        let (figures, _) = drawn(core::slice::from_ref(run));
        let figure = figures.into_iter().find(|of| of.name == "turns");
        figure.expect("there are turns").scene
    };
    let scene = figure(&run);
    for colour in &PALETTE[..2] {
        assert_eq!(bars(&scene, *colour), 1);
        assert_eq!(bars(&scene, colour.tint(0.7)), 1);
    }
    let strings = texts(&scene);
    assert!(strings.contains(&"cfq7S (BE sync)") && strings.contains(&"cfq8A (BE async)"));
    assert!(
        !strings.iter().any(|t| t.contains("the first")),
        "{strings:?}"
    );

    // A queue that changes its tree has one row.
    let details = run.details.as_mut().unwrap();
    details.turn_count = 9000.0;
    details.turns[1].group = "cfq7S".to_owned();
    let scene = figure(&run);
    let strings = texts(&scene);
    assert!(
        strings.contains(&"cfq7S (BE sync, BE async)"),
        "{strings:?}"
    );
    assert!(
        strings
            .iter()
            .any(|t| t.contains("the first 4 turns of 9 k")),
        "{strings:?}"
    );
    run.details.as_mut().unwrap().turns.clear();
    let (_, notes) = drawn(&[run]);
    assert!(
        notes.iter().any(|note| note.contains("gave turns")),
        "{notes:?}"
    );
}

#[test]
fn more_threads_than_colours_share_one() {
    let mut run = run("none", 1.0);
    let thread = |i: u32| seeks("sda", &format!("dump {i}"), 1e6 * f64::from(i));
    run.details.as_mut().unwrap().seeks = (0..20).map(thread).collect();
    let scene = seek_figure(&run);
    let strings = texts(&scene);
    assert!(strings.contains(&"13 threads more"), "{strings:?}");
    assert!(!strings.contains(&"dump 7"));
    assert_eq!(specks(&scene), 800);
}

/// A run with a value of `--set`.
fn swept(scheduler: &str, depth: &str, seed: u64) -> Run {
    let mut run = run(scheduler, 4.0);
    run.sets = vec![("job.iodepth".to_owned(), depth.to_owned())];
    run.options = format!("job.iodepth={depth}");
    run.seed = seed;
    run.iops *= 1.0 + 0.1 * seed as f64;
    run
}

#[test]
fn a_swept_number_is_the_axis_and_seeds_are_bands() {
    let depths = ["1", "4", "16", "64"];
    let mut runs = Vec::new();
    for scheduler in ["none", "bfq"] {
        for depth in depths {
            runs.extend([1, 2, 3].map(|seed| swept(scheduler, depth, seed)));
        }
    }
    check(&runs, 12);
    let (figures, _) = drawn(&runs);
    let scene = &figures[0].scene;
    let strings = texts(scene);
    assert_eq!(figures[0].name, "scaling");
    let bars = texts(&figures[2].scene);
    assert!(
        bars.contains(&"Simulated: compared with none, job.iodepth=1"),
        "{bars:?}"
    );
    assert_eq!(
        bars.iter().filter(|t| **t == "bfq, job.iodepth=64").count(),
        3
    );
    let title = "Simulated: throughput, latency and waiting for locks by job.iodepth";
    assert!(strings.contains(&title), "{strings:?}");
    assert!(
        strings
            .iter()
            .any(|t| t.contains("4 threads") && t.contains("means of 3 seeds"))
    );
    assert_eq!(
        strings
            .iter()
            .filter(|t| **t == "job.iodepth (log scale)")
            .count(),
        3
    );
    // IOPS differ between seeds, so that their bands have a height; two curves in three panels.
    let bands = scene
        .items
        .iter()
        .filter(|item| matches!(item, Item::Area { opacity: 20, .. }));
    assert_eq!(bands.count(), 6);
    // Powers are at equal distances.
    let dots: Vec<i32> = scene
        .items
        .iter()
        .filter_map(|item| match item {
            Item::Dot { at, radius: 7, .. } => Some(at.x),
            _ => None,
        })
        .take(4)
        .collect();
    assert!(
        (dots[1] - dots[0] - (dots[3] - dots[2])).abs() <= 1,
        "{dots:?}"
    );
    let (figures, _) = all(&Groups::new(&runs, true).unwrap(), &["scaling".to_owned()]);
    assert_eq!(figures.len(), 1);
    assert!(
        !texts(&figures[0].scene)
            .iter()
            .any(|t| t.contains("log scale"))
    );
}

#[test]
fn words_are_no_axis_and_the_key_with_most_numbers_is() {
    let with = |sets: &[(&str, &str)]| {
        let mut run = run("none", 1.0);
        let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        run.sets = sets.iter().map(own).collect();
        run
    };
    let axis = |runs: &[Run]| Groups::new(runs, false).unwrap().x_name().to_owned();
    let words = ["read", "write", "randrw"].map(|rw| with(&[("job.rw", rw)]));
    assert_eq!(axis(&words), "threads");
    let mut both = Vec::new();
    for bs in ["4k", "64k"] {
        both.extend(["1", "2", "3"].map(|depth| with(&[("job.bs", bs), ("job.iodepth", depth)])));
    }
    assert_eq!(axis(&both), "job.iodepth");
    let groups = Groups::new(&both, false).unwrap();
    let names: Vec<&str> = groups.series.iter().map(|of| of.name.as_str()).collect();
    assert_eq!(names, ["job.bs=4k", "job.bs=64k"]);
    let places: Vec<String> = groups.places().into_iter().map(|(_, text)| text).collect();
    assert_eq!(places, ["1", "2", "3"]);
}

#[test]
fn more_curves_than_colours_are_dashed_and_more_are_listed() {
    let runs: Vec<Run> = (0..23)
        .flat_map(|i| [run(&format!("s{i}"), 1.0), run(&format!("s{i}"), 2.0)])
        .collect();
    check(&runs[..42], 12);
    let (figures, notes) = drawn(&runs);
    assert!(notes[0].contains("only the first 21 curves are drawn, without s21; s22"));
    let scene = &figures[0].scene;
    let dashed = |wanted| {
        let is = |item: &&Item| matches!(item, Item::Line { dash, .. } if *dash == wanted);
        scene.items.iter().filter(is).count()
    };
    assert_eq!((dashed(Dash::Dashed), dashed(Dash::Dotted)), (21, 21));
    assert!(texts(scene).iter().any(|t| t.contains("21 of 23 curves")));
    assert!(texts(scene).contains(&"s20") && !texts(scene).contains(&"s21"));
    // Panels are fewer.
    let cpu_time = &figures[1].scene;
    assert!(
        texts(cpu_time).iter().any(|t| t.contains("7 of 23 curves")),
        "{:?}",
        texts(cpu_time)
    );
}

#[test]
fn equal_runs_and_no_runs_are_refused() {
    assert!(Groups::new(&[], false).is_err());
    let twice = [run("none", 1.0), run("none", 1.0)];
    assert!(Groups::new(&twice, false).unwrap_err().contains("two runs"));
}

#[test]
fn percentiles_are_steps() {
    let points = percentiles(&vec![(10.0, 1.0), (20.0, 3.0)]);
    assert_eq!(
        points,
        [(0.0, 10.0), (25.0, 10.0), (25.0, 20.0), (100.0, 20.0)]
    );
}
