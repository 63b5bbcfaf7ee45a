use std::path::{Path, PathBuf};

use crate::fio::{JobFile, Reading, parse_arguments, parse_files};

const FILES: &[(&str, &str)] = &[
    ("dir/base", "direct=1\nbs=8k\ninclude more\n"),
    ("dir/more", "iodepth=4\n"),
    ("loop", "include loop\n"),
    ("sections", "[b]\n"),
    ("job", "[of-file]\nbs=16k\n[second]\n"),
    ("bad", "[j]\nbs=0\n"),
];

fn reading() -> Reading<'static> {
    Reading {
        read: &|file| {
            let found = FILES.iter().find(|(name, _)| Path::new(name) == file);
            found
                .map(|(_, text)| (*text).to_owned())
                .ok_or_else(|| "absent".to_owned())
        },
        variable: &|name| (name == "DEV").then(|| "/dev/nvme0n1".to_owned()),
        ignore_unmodelled: false,
    }
}

fn files(texts: &[(&str, &str)]) -> crate::Result<JobFile> {
    let file = |(name, text): &(&str, &str)| (PathBuf::from(name), (*text).to_owned());
    parse_files(&texts.iter().map(file).collect::<Vec<_>>(), &reading())
}

#[test]
fn a_file_includes_others_beside_it() {
    let text = "[global]\nioengine=libaio\ninclude base\n[a]\nbs=4k\n";
    let all = files(&[("dir/j", text)]).unwrap();
    let job = &all.jobs[0];
    assert_eq!((job.direct, job.iodepth, job.bs.read.min), (true, 4, 4096));
    let line = job.line_of("iodepth");
    assert_eq!(all.sources.place(line), (Path::new("dir/more"), 1));
    for (text, want) in [
        ("[a]\ninclude absent\n", "j:2: include: absent: absent"),
        (
            "[a]\ninclude sections\n",
            "sections:1: section: an included file has no sections",
        ),
        (
            "[a]\ninclude loop\n",
            "loop:1: include: loop: this file is being read: files include each other",
        ),
    ] {
        assert_eq!(files(&[("j", text)]).unwrap_err().to_string(), want);
    }
}

#[test]
fn variables_and_keywords_are_replaced() {
    let text = "[a]\nfilename=${DEV}\nbs=2*$pagesize+4096\ndescription=${NONE}x\nrw=${NONE}read\n";
    let all = files(&[("j", text)]).unwrap();
    assert_eq!(all.jobs[0].filenames, ["/dev/nvme0n1"]);
    assert_eq!(all.jobs[0].bs.read.min, 3 * 4096);
    let error = files(&[("j", "[a]\nnumjobs=$ncpus\n")])
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("j:2: numjobs: write the number itself"),
        "{error}"
    );
}

#[test]
fn several_files_follow_each_other() {
    let first = ("one", "[global]\nbs=8k\n[a]\n");
    let all = files(&[first, ("two", "[b]\n[c]\nbs=4k\n")]).unwrap();
    let seen = all
        .jobs
        .iter()
        .map(|job| (job.name.as_str(), job.stonewall, job.bs.read.min));
    let want = [("a", false, 8192), ("b", true, 8192), ("c", false, 4096)];
    assert_eq!(seen.collect::<Vec<_>>(), want);
    // After the jobs of the command line.
    let line = ["--bs=512", "--name=x", "--rw=read", "job", "--output=f"];
    let all = parse_arguments(&line, &reading()).unwrap();
    let names = all
        .jobs
        .iter()
        .map(|job| (job.name.as_str(), job.bs.read.min));
    assert_eq!(
        names.collect::<Vec<_>>(),
        [("x", 512), ("of-file", 16384), ("second", 512)]
    );
    assert_eq!(all.program[0].value.as_deref(), Some("f"));
    let error = parse_arguments(&["bad", "--frob"], &reading()).unwrap_err();
    let text = error.to_string();
    let [first, second] = text.lines().collect::<Vec<_>>()[..] else {
        panic!("{text}")
    };
    assert!(
        first.starts_with("command line, argument 2: frob: not an option"),
        "{first}"
    );
    assert_eq!(second, "bad:2: bs: an I/O of 0 bytes");
}
