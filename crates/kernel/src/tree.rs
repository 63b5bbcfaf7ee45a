//! A directory with the source of a kernel, and what can be wrong with it.

use blkmq::rules::Rules;
use std::fs;
use std::path::{Path, PathBuf};

/// Why a scheduler of a tree cannot be used.
#[derive(thiserror::Error, Debug)]
#[allow(missing_docs, reason = "the texts say it")]
pub enum Error {
    #[error("{}: {source}", path.display())]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error(
        "{}: no kernel tree: expected a Makefile with VERSION, PATCHLEVEL, SUBLEVEL", .0.display()
    )]
    NoTree(PathBuf),
    #[error("{}: in no kernel tree: name the tree with --linux DIR", .0.display())]
    OutsideTree(PathBuf),
    #[error("{compiler}: cannot be started: {source}; a C compiler is needed, its name in CC")]
    NoCompiler {
        compiler: String,
        source: std::io::Error,
    },
    #[error("{}: does not compile:\n{text}", file.display())]
    Compile { file: PathBuf, text: String },
    #[error(
        "{}: a scheduler of blk-mq; of Linux {release} those of the single-queue path can be \
         compiled, of blk-mq those of Linux 6.1 and later",
        file.display()
    )]
    OfBlkMq { file: PathBuf, release: String },
    #[error("gcov fails: {0}")]
    Gcov(String),
    #[error("{}: is compared from Linux 6.1 on", .0.display())]
    TooOld(PathBuf),
    #[error("{}: cannot be loaded: {text}", file.display())]
    Load { file: PathBuf, text: String },
}

impl Error {
    pub(crate) fn read(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::Read { path, source }
    }
}

/// A kernel's source.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tree {
    /// The directory with Makefile, block and lib.
    pub dir: PathBuf,
    /// VERSION, PATCHLEVEL, SUBLEVEL.
    pub version: [u32; 3],
}

impl Tree {
    /// The tree in this directory.
    pub fn open(dir: &Path) -> Result<Tree, Error> {
        let makefile = dir.join("Makefile");
        let text = fs::read_to_string(&makefile).map_err(Error::read(&makefile))?;
        let number = |name: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once('='));
            let (_, value) = lines.find(|(key, _)| key.trim() == name)?;
            value.trim().parse::<u32>().ok()
        };
        let version = ["VERSION", "PATCHLEVEL", "SUBLEVEL"].map(number);
        let [Some(major), Some(minor), Some(patch)] = version else {
            return Err(Error::NoTree(dir.to_owned()));
        };
        let dir = dir.canonicalize().map_err(Error::read(dir))?;
        Ok(Tree {
            dir,
            version: [major, minor, patch],
        })
    }

    /// The tree that a C file is part of.
    pub fn around(file: &Path) -> Result<Tree, Error> {
        let file = file.canonicalize().map_err(Error::read(file))?;
        let mut above = file.ancestors().skip(1);
        let found = above.find_map(|dir| Tree::open(dir).ok());
        found.ok_or(Error::OutsideTree(file))
    }

    /// The rules of the newest kernel that is not newer.
    pub fn rules(&self) -> &'static Rules {
        let [major, minor, _] = self.version;
        let number = |rules: &Rules| {
            let (major, minor) = rules.name.strip_prefix('v')?.split_once('.')?;
            Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?))
        };
        let known = Rules::ALL
            .iter()
            .filter_map(|rules| Some((number(rules)?, rules)));
        let older = known.filter(|&(number, _)| number <= (major, minor));
        let newest = older.max_by_key(|&(number, _)| number);
        newest.map_or(&Rules::ALL[0], |(_, rules)| rules)
    }

    /// A scheduler of this kernel may be of the single-queue path, and the shim has that path for
    /// it.
    pub(crate) fn has_single_queues(&self) -> bool {
        self.version[0] < 5
    }

    /// `6.12.117`.
    pub fn release(&self) -> String {
        let [major, minor, patch] = self.version;
        format!("{major}.{minor}.{patch}")
    }
}
