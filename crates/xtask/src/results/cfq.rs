//! Figures of CFQ: readers that share one stream, with queues of their own and with merged ones.

use serde_json::Value;

use super::blocks::Made;
use super::markdown::{columns, table};
use super::runs::{Blksim, number};
use super::sweeps;
use crate::paths;
use crate::step::Result;

/// Before queues were merged, and the patch as it was posted.
const BEFORE: &str = "v2.6.32-rc5";
const POSTED: &str = "v2.6.32-rc5-coop";

/// Megabytes (10^6 bytes) a second of the first job of each of these runs.
fn mb_s(blksim: &Blksim, lines: &[String]) -> Result<Vec<f64>> {
    let reports = blksim.all(lines)?;
    let of = |report: &Value| Ok(number(report, "/jobs/0/read/bw_bytes")? / 1e6);
    reports.iter().map(of).collect()
}

/// A figure that a command line draws, for docs/scaling.
pub(super) fn picture(
    blksim: &Blksim,
    line: &str,
    figure: &str,
    name: &str,
) -> Result<(String, String)> {
    let folder = paths::target_dir().join("results").join(name);
    blksim.text(&format!("{line} -o {}", folder.display()))?;
    let drawn = sweeps::read(&folder.join(format!("{figure}.svg")))?;
    Ok((format!("docs/scaling/{name}.svg"), drawn))
}

/// Interleaved readers by kernel, next to the published figures.
pub(super) fn cooperators(blksim: &Blksim) -> Result<Made> {
    let rows = [
        (BEFORE, "before", "12.63"),
        (POSTED, "the patch as posted", "88.82"),
        ("v2.6.32", "as released, without merging", "-"),
        ("v2.6.33", "merging, splitting", "-"),
        ("v2.6.35", "the same, repaired", "-"),
        ("v4.20", "the last one", "-"),
    ];
    let lines =
        rows.map(|(rules, ..)| format!("run cfq-cooperators --json --set queue.rules={rules}"));
    let found = mb_s(blksim, &lines)?;
    let all = rows.iter().zip(&found);
    let all = all.map(|((rules, what, published), mb_s)| {
        vec![
            (*rules).to_owned(),
            (*what).to_owned(),
            format!("{mb_s:.1}"),
            (*published).to_owned(),
            format!("{:.2}", mb_s / found[0]),
        ]
    });
    let header = ["rules", "queues", "MB/s", "published", "factor"];
    let seeks = |rules: &str, name: &str| {
        let line = format!("plot cfq-cooperators --rules {rules} --runtime 400ms");
        picture(blksim, &line, "seek", name)
    };
    Ok(Made {
        body: table(&columns(&header), &all.collect::<Vec<_>>()),
        files: vec![
            seeks(BEFORE, "cfq-cooperators-before")?,
            seeks(POSTED, "cfq-cooperators-merged")?,
        ],
    })
}

/// The same over parameters that the posting does not give.
pub(super) fn assumptions(blksim: &Blksim) -> Result<String> {
    let mut all = Vec::new();
    for (hand_over, processes, piece, file_system) in [
        ("in-order", 2, "64k", false),
        ("in-order", 3, "12k", false),
        ("in-order", 3, "32k", false),
        ("in-order", 3, "64k", false),
        ("in-order", 3, "64k", true),
        ("in-order", 3, "128k", false),
        ("in-order", 7, "64k", false),
        ("none", 3, "16k", false),
        ("none", 3, "64k", false),
        ("none", 5, "16k", false),
        ("none", 5, "64k", false),
        ("none", 7, "8k", false),
        ("none", 7, "16k", false),
        ("none", 7, "64k", false),
        ("none", 8, "16k", false),
        ("none", 9, "16k", false),
        ("none", 9, "16k", true),
        ("none", 9, "32k", false),
        ("none", 10, "16k", false),
        ("none", 12, "16k", false),
    ] {
        let run = |rules: &str| {
            format!(
                "run cfq-cooperators --json --set queue.rules={rules} \
                 --set interleaved.hand_over={hand_over} --set interleaved.processes={processes} \
                 --set interleaved.piece={piece} --set interleaved.file_system={file_system}"
            )
        };
        all.push((
            (hand_over, processes, piece, file_system),
            run(BEFORE),
            run(POSTED),
        ));
    }
    let lines = all
        .iter()
        .flat_map(|(_, before, posted)| [before.clone(), posted.clone()]);
    let found = mb_s(blksim, &lines.collect::<Vec<_>>())?;
    let rows = all.iter().zip(found.chunks(2)).map(|((of, ..), found)| {
        let (hand_over, processes, piece, file_system) = of;
        vec![
            (*hand_over).to_owned(),
            processes.to_string(),
            (*piece).to_owned(),
            if *file_system { "runs" } else { "pages" }.to_owned(),
            format!("{:.1}", found[0]),
            format!("{:.1}", found[1]),
            format!("{:.1}", found[1] / found[0]),
        ]
    });
    let header = [
        "hand_over",
        "processes",
        "piece",
        "bios",
        "before",
        "posted",
        "ratio",
    ];
    Ok(table(&columns(&header), &rows.collect::<Vec<_>>()))
}

/// Rows of the published table of the NFS server: threads, and MB/s of its columns.
const NFSD: [(u32, [u32; 3]); 5] = [
    (1, [45, 45, 36]),
    (2, [57, 60, 60]),
    (4, [38, 49, 50]),
    (8, [34, 40, 49]),
    (16, [34, 43, 53]),
];

/// Command lines of that table, with more assignments: by row, in it by column.
fn nfsd_lines(more: &str) -> Vec<String> {
    let posted = format!("--set queue.rules={POSTED}");
    let sets = ["", posted.as_str(), "--scheduler deadline"];
    let rows = NFSD.iter().flat_map(|(threads, _)| {
        sets.map(|set| format!("run cfq-nfsd --json --set nfsd.threads={threads} {set} {more}"))
    });
    rows.collect()
}

/// The same over parameters that the posting does not give. A cell is within the tolerance if it is
/// no more than a fifth of the published one away.
pub(super) fn nfsd_assumptions(blksim: &Blksim) -> Result<String> {
    let all = [
        "",
        "--set nfsd.rsize=32k",
        "--set nfsd.rsize=1m",
        "--set nfsd.slots=8",
        "--set nfsd.call_us=1500",
        "--set nfsd.call_us=3000",
        "--set nfsd.call_us=5500",
        "--set nfsd.call_us=5500 --set nfsd.slots=8",
        "--set nfsd.call_us=5500 --set nfsd.slots=12",
        "--set device.cache_segments=0",
        "--set nfsd.offset=225g",
    ];
    let lines: Vec<String> = all.iter().flat_map(|set| nfsd_lines(set)).collect();
    let found = mb_s(blksim, &lines)?;
    let table_of = |cells: &[f64]| {
        let published = NFSD.iter().flat_map(|(_, was)| was);
        let near = cells.iter().zip(published);
        let near = near.filter(|&(mb_s, &was)| (mb_s / f64::from(was) - 1.0).abs() <= 0.2);
        let rows = cells.chunks(3).map(|row| {
            let row: Vec<String> = row.iter().map(|mb_s| format!("{mb_s:.0}")).collect();
            row.join("/")
        });
        let rows: Vec<String> = rows.collect();
        (near.count(), rows)
    };
    let runs = all.iter().zip(found.chunks(3 * NFSD.len()));
    let rows = runs.map(|(set, cells)| {
        let (near, rows) = table_of(cells);
        let set = match set.replace("--set ", "") {
            none if none.is_empty() => "as above".to_owned(),
            set => format!("`{set}`"),
        };
        let cells = [set].into_iter().chain(rows);
        cells.chain([format!("{near} of 15")]).collect()
    });
    let mut header = vec!["setting".to_owned()];
    header.extend(NFSD.iter().map(|(threads, _)| match threads {
        1 => "1 thread".to_owned(),
        _ => format!("{threads} threads"),
    }));
    header.push("within 20 %".to_owned());
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    Ok(table(&columns(&header), &rows.collect::<Vec<_>>()))
}

/// One streaming client by threads of the server.
pub(super) fn nfsd(blksim: &Blksim) -> Result<Made> {
    let found = mb_s(blksim, &nfsd_lines(""))?;
    let rows = NFSD
        .iter()
        .zip(found.chunks(3))
        .map(|((threads, was), found)| {
            let cells = found.iter().zip(was);
            let cells = cells.map(|(mb_s, was)| format!("{mb_s:.0} ({was})"));
            [threads.to_string()].into_iter().chain(cells).collect()
        });
    let header = ["threads", "cfq", "cfq, merged queues", "deadline"];
    let line = format!(
        "plot cfq-nfsd --rules {BEFORE},{POSTED} --scheduler cfq,deadline --threads 1,2,4,8,16"
    );
    Ok(Made {
        body: table(&columns(&header), &rows.collect::<Vec<_>>()),
        files: vec![picture(blksim, &line, "scaling", "cfq-nfsd")?],
    })
}

/// Several clients, their threads with I/O contexts of their own or with one for all.
pub(super) fn clients(blksim: &Blksim) -> Result<String> {
    let sets = [
        String::new(),
        "--set nfsd.io_context=shared".to_owned(),
        format!("--set queue.rules={POSTED}"),
        "--set queue.rules=v2.6.33".to_owned(),
        "--set queue.rules=v2.6.33 --set nfsd.io_context=shared".to_owned(),
        "--scheduler deadline".to_owned(),
    ];
    let clients = [1, 2, 4, 8];
    let lines = clients.iter().flat_map(|clients| {
        let line =
            move |set: &String| format!("run cfq-nfsd --json --set nfsd.clients={clients} {set}");
        sets.iter().map(line).collect::<Vec<_>>()
    });
    let found = mb_s(blksim, &lines.collect::<Vec<_>>())?;
    let rows = clients
        .iter()
        .zip(found.chunks(sets.len()))
        .map(|(clients, found)| {
            let cells = found.iter().map(|mb_s| format!("{mb_s:.0}"));
            [clients.to_string()].into_iter().chain(cells).collect()
        });
    let header = [
        "clients",
        "cfq",
        "one I/O context",
        "merged as posted",
        "2.6.33: merged, split",
        "2.6.33, one I/O context",
        "deadline",
    ];
    Ok(table(&columns(&header), &rows.collect::<Vec<_>>()))
}
