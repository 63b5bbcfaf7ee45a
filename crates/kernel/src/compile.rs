//! Compiling: a scheduler's files and those of the kernel that it calls, over the headers in
//! `shim/`.
//!
//! Each header that a file includes with `<...>` is an empty one, but for a few of the tree's own
//! ([`Kind`]): the shim has stated all before. A function that the shim does not have becomes one
//! that ends the call with its name.

use crate::tree::{Error, Tree};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const SHIM: [(&str, &str); 15] = [
    ("linux.h", include_str!("../shim/linux.h")),
    ("block.h", include_str!("../shim/block.h")),
    ("call.h", include_str!("../shim/call.h")),
    ("cgroup.h", include_str!("../shim/cgroup.h")),
    ("cgroup.c", include_str!("../shim/cgroup.c")),
    ("copy.c", include_str!("../shim/copy.c")),
    ("shim.c", include_str!("../shim/shim.c")),
    ("sq.h", include_str!("../shim/sq.h")),
    ("sq.c", include_str!("../shim/sq.c")),
    ("parts.c", include_str!("../shim/parts.c")),
    ("host.c", include_str!("../shim/host.c")),
    ("dm.h", include_str!("../shim/dm.h")),
    ("dm.c", include_str!("../shim/dm.c")),
    ("flush.h", include_str!("../shim/flush.h")),
    ("flush.c", include_str!("../shim/flush.c")),
];

/// What a file of a tree is compiled with.
struct Kind {
    /// Files in its directory that are part of the same.
    beside: &'static [&'static str],
    /// Files of the tree that it calls.
    called: &'static [&'static str],
    /// Those of them whose accesses are counted, as those of a scheduler are.
    traced: &'static [&'static str],
    /// The header of the shim that is included before each file.
    header: &'static str,
    /// Files of the shim besides host.c.
    shim: &'static [&'static str],
    /// Headers that are the tree's own.
    of_tree: &'static [&'static str],
    /// Where headers in quotes are looked for, too.
    dir: &'static str,
}

const SCHEDULER: Kind = Kind {
    beside: &[],
    called: &[
        "block/elevator.c",
        "block/blk-merge.c",
        "lib/rbtree.c",
        "lib/sbitmap.c",
    ],
    traced: &["block/elevator.c", "lib/rbtree.c"],
    header: "block.h",
    shim: &["shim.c", "parts.c"],
    of_tree: &[
        "linux/rbtree.h",
        "linux/rbtree_augmented.h",
        "linux/sbitmap.h",
    ],
    dir: "block",
};

/// dm-mpath.c with its selectors, in the order in which `shim/dm.c` starts them.
const MULTIPATH: Kind = Kind {
    beside: &[
        "dm-ps-round-robin.c",
        "dm-ps-queue-length.c",
        "dm-ps-service-time.c",
        "dm-ps-historical-service-time.c",
        "dm-ps-io-affinity.c",
    ],
    called: &[],
    traced: &[],
    header: "dm.h",
    shim: &["dm.c"],
    of_tree: &[],
    dir: "drivers/md",
};

const FLUSH: Kind = Kind {
    beside: &[],
    called: &[],
    traced: &[],
    header: "flush.h",
    shim: &["flush.c"],
    of_tree: &[],
    dir: "block",
};

impl Kind {
    /// The same of a kernel with the single-queue path; parts are compared with newer ones.
    fn of_single_queues(self) -> Kind {
        Kind {
            shim: &["shim.c"],
            of_tree: &[
                "linux/rbtree.h",
                "linux/rbtree_augmented.h",
                "linux/sbitmap.h",
                "linux/elevator.h",
            ],
            ..self
        }
    }
}

fn kind_of(file: &Path) -> Kind {
    match file.file_name().and_then(|name| name.to_str()) {
        Some("bfq-iosched.c") => Kind {
            beside: &["bfq-wf2q.c", "bfq-cgroup.c"],
            ..SCHEDULER
        },
        Some("dm-mpath.c") => MULTIPATH,
        Some("blk-flush.c") => FLUSH,
        _ => SCHEDULER,
    }
}

/// The file that a build ends in.
pub(crate) const LIBRARY: &str = "kernel.so";

/// What a build is made with.
pub(crate) struct Build<'a> {
    pub(crate) tree: &'a Tree,
    /// The scheduler's file, perhaps outside the tree.
    pub(crate) file: &'a Path,
    /// Ticks a second.
    pub(crate) hz: u32,
    /// Lines of the tree's files that are reached are counted.
    pub(crate) coverage: bool,
    pub(crate) into: &'a Path,
}

impl Build<'_> {
    /// Compiles and links; returns the path of the library.
    pub(crate) fn run(&self) -> Result<PathBuf, Error> {
        let mut kind = kind_of(self.file);
        if self.tree.has_single_queues() {
            let text = fs::read_to_string(self.file).map_err(Error::read(self.file))?;
            if text.contains("ops.mq") {
                return Err(Error::OfBlkMq {
                    file: self.file.to_owned(),
                    release: self.tree.release(),
                });
            }
            if kind.called.is_empty() {
                return Err(Error::TooOld(self.file.to_owned()));
            }
            kind = kind.of_single_queues();
        }
        let mut own = vec![self.file.to_owned()];
        own.extend(
            kind.beside
                .iter()
                .map(|name| self.file.with_file_name(name)),
        );
        let called: Vec<PathBuf> = kind
            .called
            .iter()
            .map(|name| self.tree.dir.join(name))
            .collect();
        let files: Vec<&PathBuf> = own.iter().chain(&called).collect();
        self.write_headers(&kind, &files)?;
        let mut running = Vec::new();
        let mut start = |mut command: Command, file: &Path, object: PathBuf| {
            command
                .args(["-O2", "-g", "-fPIC", "-ftls-model=initial-exec", "-c"])
                .arg(file);
            command.arg("-o").arg(&object);
            running.push((file.to_owned(), object, spawn(command)?));
            Ok::<(), Error>(())
        };
        for (number, file) in files.iter().enumerate() {
            let mut command = self.compiler_of_kernel(&kind, number);
            command.arg("-w");
            command.args(self.coverage.then_some("--coverage"));
            let counts = !kind.traced.is_empty();
            if counts && (number < own.len() || kind.traced.iter().any(|name| file.ends_with(name)))
            {
                command.arg("-fsanitize=thread");
            }
            start(command, file, self.into.join(format!("{number}.o")))?;
        }
        for (at, &name) in kind.shim.iter().chain(&["host.c"]).enumerate() {
            let mut command = match name {
                "host.c" => compiler(),
                _ => self.compiler_of_kernel(&kind, files.len() + at),
            };
            // A function without a declaration would return an int.
            command.arg("-Werror=implicit-function-declaration");
            let file = self.into.join(name);
            start(command, &file, file.with_extension("o"))?;
        }
        let mut objects = Vec::new();
        for (file, object, child) in running {
            output_of(child, &file)?;
            objects.push(object);
        }
        self.link(&objects)
    }

    /// The shim, the tree's headers, and an empty one for each other that a file names.
    fn write_headers(&self, kind: &Kind, files: &[&PathBuf]) -> Result<(), Error> {
        for (name, text) in SHIM {
            // Another shim, to see that a wrong one is found.
            let text = match std::env::var_os("BLKSIM_SHIM") {
                None => text.to_owned(),
                Some(dir) => {
                    let path = Path::new(&dir).join(name);
                    fs::read_to_string(&path).map_err(Error::read(&path))?
                }
            };
            write(&self.into.join(name), &text)?;
        }
        let headers = self.into.join("headers");
        let mut left: Vec<PathBuf> = files.iter().map(|&file| file.clone()).collect();
        for name in kind.of_tree {
            let path = self.tree.dir.join("include").join(name);
            let text = fs::read_to_string(&path).map_err(Error::read(&path))?;
            write(&headers.join(name), &text)?;
            left.push(path);
        }
        let mut seen = BTreeSet::new();
        while let Some(path) = left.pop() {
            if !seen.insert(path.clone()) {
                continue;
            }
            let read = fs::read_to_string(&path);
            // A header that is not there is the compiler's to report, if it is needed.
            let is_header = path.extension().is_some_and(|ext| ext == "h");
            let text = match read {
                Err(_) if is_header => continue,
                read => read.map_err(Error::read(&path))?,
            };
            for (name, quoted) in includes(&text) {
                if quoted {
                    left.push(path.with_file_name(name));
                    left.push(self.tree.dir.join("block").join(name));
                } else if !kind.of_tree.contains(&name) && !name.contains("..") {
                    write(&headers.join(name.trim_start_matches('/')), "")?;
                }
            }
        }
        Ok(())
    }

    fn compiler_of_kernel(&self, kind: &Kind, number: usize) -> Command {
        let [major, minor, patch] = self.tree.version;
        let code = (major << 16) + (minor << 8) + patch.min(255);
        let mut command = compiler();
        command.args([
            "-std=gnu11",
            "-nostdinc",
            "-fno-builtin",
            "-fno-strict-aliasing",
        ]);
        command.args(["-fwrapv", "-fno-delete-null-pointer-checks"]);
        command.arg(format!("-DHZ={}", self.hz));
        command.arg(format!("-DLINUX_VERSION_CODE={code}"));
        command.arg(format!("-DSHIM_FILE={number}"));
        command.arg("-include").arg(self.into.join(kind.header));
        command.arg("-I").arg(self.into.join("headers"));
        command.arg("-I").arg(self.into);
        command.arg("-idirafter").arg(self.tree.dir.join(kind.dir));
        // elevator.c keeps a list of schedulers; the shim keeps the one that this library has.
        if number == 0 {
            command.arg("-Delv_register=shim_register");
            command.arg("-Delv_unregister=shim_unregister");
        }
        command
    }

    fn link(&self, objects: &[PathBuf]) -> Result<PathBuf, Error> {
        let stubs = self.into.join("missing.c");
        let mut text = String::from("_Noreturn void shim_missing(const char *name);\n");
        for name in self.missing(objects)? {
            text += &format!("void {name}(void) {{ shim_missing(\"{name}\"); }}\n");
        }
        if self.coverage {
            text += "void __gcov_dump(void);\nvoid shim_counts(void) { __gcov_dump(); }\n";
        }
        write(&stubs, &text)?;
        let library = self.into.join(LIBRARY);
        let mut command = self.linker(objects, &library);
        command.args(["-w", "-fPIC"]).arg(&stubs);
        output_of(spawn(command)?, &library)?;
        Ok(library)
    }

    fn linker(&self, objects: &[PathBuf], into: &Path) -> Command {
        let mut command = compiler();
        command.args(["-shared", "-Wl,-Bsymbolic"]).args(objects);
        command.args(self.coverage.then_some("--coverage"));
        command.arg("-o").arg(into);
        command
    }

    /// Functions that neither an object nor the C library has.
    fn missing(&self, objects: &[PathBuf]) -> Result<BTreeSet<String>, Error> {
        let probe = self.into.join("probe.so");
        let mut command = self.linker(objects, &probe);
        command.args(["-Wl,-z,defs", "-Wl,--warn-unresolved-symbols"]);
        command.env("LC_ALL", "C");
        let text = output_of(spawn(command)?, &probe)?;
        let names = text.lines().filter_map(|line| {
            let (_, name) = line.split_once("undefined reference to `")?;
            Some(name.split('\'').next()?.to_owned())
        });
        Ok(names.collect())
    }
}

/// Names that a C file includes, and whether they are in quotes.
fn includes(text: &str) -> impl Iterator<Item = (&str, bool)> {
    text.lines().filter_map(|line| {
        let rest = line.trim_start().strip_prefix('#')?.trim_start();
        let rest = rest.strip_prefix("include")?.trim_start();
        let quoted = rest.starts_with('"');
        let end = if quoted { '"' } else { '>' };
        let name = rest.get(1..)?.split(end).next()?;
        (quoted || rest.starts_with('<')).then_some((name, quoted))
    })
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    let dir = path.parent().expect("a file in a directory");
    fs::create_dir_all(dir).map_err(Error::read(dir))?;
    fs::write(path, text).map_err(Error::read(path))
}

fn compiler() -> Command {
    Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()))
}

fn spawn(mut command: Command) -> Result<Child, Error> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command.spawn().map_err(|source| Error::NoCompiler {
        compiler: command.get_program().display().to_string(),
        source,
    })
}

/// The messages of a compiler that succeeded.
fn output_of(child: Child, file: &Path) -> Result<String, Error> {
    let output = child.wait_with_output().map_err(Error::read(file))?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    match output.status.success() {
        true => Ok(text),
        false => Err(Error::Compile {
            file: file.to_owned(),
            text: text.lines().take(20).collect::<Vec<_>>().join("\n"),
        }),
    }
}
