//! Distribution of files to the threads of t/io_uring.

use super::plan;

fn all(threads: usize, files: usize) -> Vec<Vec<u16>> {
    let names: Vec<String> = (0..files).map(|n| format!("/dev/nvme{n}n1")).collect();
    let text = format!(
        "[device]\ntype = \"nvme\"\npoll_queues = 1\ncount = {files}\n[[job]]\n\
         ioengine = \"t/io_uring\"\nfilename = \"{}\"\nnumjobs = {threads}\nruntime = \"1ms\"\n",
        names.join(":")
    );
    let of_thread = |thread: &sim::plan::ThreadPlan| {
        let files = thread.files.iter();
        files.map(|file| file.disk.0).collect()
    };
    plan(&text).unwrap().threads.iter().map(of_thread).collect()
}

#[test]
fn each_thread_has_files_and_each_file_threads() {
    assert_eq!(all(1, 1), [[0]]);
    assert_eq!(all(4, 1), [[0], [0], [0], [0]]);
    assert_eq!(all(2, 2), [[0], [1]]);
    assert_eq!(all(5, 2), [[0], [0], [0], [1], [1]]);
    assert_eq!(all(1, 3), [[0, 1, 2]]);
    assert_eq!(all(2, 3), [vec![0, 2], vec![1]]);
}
