//! `[global]`: options of all jobs; and which jobs are reported together.

use super::*;

const DEVICE: &str = "[device]\ntype = \"null_blk\"\nnr_devices = 2\n";

/// Entries of the report by thread, of jobs after a device.
fn entries(p: &Plan) -> Vec<u16> {
    p.threads.iter().map(|thread| thread.entry).collect()
}

#[test]
fn global_options_are_those_of_jobs_that_say_nothing_of_their_own() {
    let p = plan(&format!(
        "job = [{{ filename = \"/dev/nullb1\" }}, {{ iodepth = 2, buffered = false }}]\n{DEVICE}\
         [global]\nfilename = \"/dev/nullb0\"\nioengine = \"libaio\"\nrw = \"randread\"\n\
         iodepth = 8\ndirect = 1\n"
    ))
    .unwrap();
    let depths: Vec<u32> = p.threads.iter().map(|thread| thread.iodepth).collect();
    assert_eq!(depths, [8, 2]);
    // Names add up, those of [global] first.
    let disks = |thread: usize| -> Vec<usize> {
        let files = p.threads[thread].files.iter();
        files.map(|file| file.disk.index()).collect()
    };
    assert_eq!((disks(0), disks(1)), (vec![0, 1], vec![0]));
    let names: Vec<&str> = p
        .threads
        .iter()
        .map(|thread| thread.name.as_str())
        .collect();
    assert_eq!(names, ["job0", "job1"]);
}

#[test]
fn global_options_are_as_in_a_job_file() {
    let of_file = fio(
        "[global]\ndirect=1\nrw=randread\nbssplit=4k/50:8k/50\nfilename=/dev/nullb0\n\
                       [a]\niodepth=4\nioengine=libaio\n[b]\nbssplit=1k\nfilename=/dev/nullb1\n",
    );
    let of_toml = scenario(&format!(
        "count_tail = true\n{DEVICE}[global]\ndirect = 1\nrw = \"randread\"\n\
         bssplit = \"4k/50:8k/50\"\nfilename = \"/dev/nullb0\"\n\
         [[job]]\nname = \"a\"\niodepth = 4\nioengine = \"libaio\"\n\
         [[job]]\nname = \"b\"\nbssplit = \"1k\"\nfilename = \"/dev/nullb1\"\n"
    ));
    let threads = |s: Result<Scenario, ScenarioError>| s.unwrap().plan(PROFILES).unwrap().threads;
    assert_eq!(threads(of_file), threads(of_toml));
}

#[test]
fn group_reporting_sums_up_jobs_of_a_group() {
    let entries_of = |jobs: &[&str]| {
        let job = |more: &&str| format!("{JOB}filename = \"/dev/nullb0\"\n{more}\n");
        entries(
            &plan(&format!(
                "{DEVICE}{}",
                jobs.iter().map(job).collect::<String>()
            ))
            .unwrap(),
        )
    };
    let together = "group_reporting = true";
    assert_eq!(entries_of(&["", "", ""]), [0, 1, 2]);
    // Clones are summed up without it, too.
    assert_eq!(entries_of(&["numjobs = 2", ""]), [0, 0, 1]);
    assert_eq!(entries_of(&[together, together, together]), [0, 0, 0]);
    assert_eq!(entries_of(&["", together, ""]), [0, 0, 1]);
    let stonewall = "group_reporting = true\nstonewall = true";
    assert_eq!(entries_of(&[together, stonewall, together]), [0, 1, 1]);
    let new_group = "group_reporting = true\nnew_group = true";
    assert_eq!(entries_of(&[new_group, together, new_group]), [0, 0, 1]);
}

#[test]
fn jobs_that_are_reported_together_have_the_options_that_all_have() {
    let p = plan(&format!(
        "job = [{{ filename = \"/dev/nullb0\" }}, {{ filename = \"/dev/nullb1\", bs = 512 }}]\n\
         {DEVICE}[global]\nrw = \"randread\"\ndirect = 1\ngroup_reporting = true\n"
    ))
    .unwrap();
    let names = p.job_options.iter().map(|options| {
        let names = options.iter().map(|(name, _)| name.as_str());
        names.collect::<Vec<_>>()
    });
    let names: Vec<_> = names.collect();
    assert_eq!(names, [["direct", "group_reporting", "rw"]]);
}
