//! Outputs: standard output, and files that appear whole or not at all.
//!
//! A file is written in its folder under a temporary name and renamed at the end; an older file
//! stays until then. Devices and pipes are written directly.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tempfile::{NamedTempFile, TempPath};

use crate::error::Error;
use crate::inside::Inside;

/// Temporary names begin with it.
pub(crate) const TEMPORARY: &str = ".blksim-";

pub(crate) fn print(text: &str) -> Result<(), Error> {
    print_bytes(text.as_bytes())
}

pub(crate) fn print_bytes(bytes: &[u8]) -> Result<(), Error> {
    if Inside::with(|inside| inside.out.extend_from_slice(bytes)).is_some() {
        return Ok(());
    }
    let mut out = std::io::stdout().lock();
    let written = out.write_all(bytes).and_then(|()| out.flush());
    written.map_err(|source| Error::output("standard output", source))
}

static QUIET: OnceLock<()> = OnceLock::new();

/// `--quiet`: no progress and no notes from now on.
pub(crate) fn be_quiet() {
    let _ = QUIET.set(());
}

/// No progress, as nobody watches.
pub(crate) fn is_quiet() -> bool {
    QUIET.get().is_some() || Inside::with(|_| ()).is_some()
}

/// Prints notes to standard error, unless they are not wanted.
pub(crate) fn print_note(text: &str) {
    if QUIET.get().is_none() {
        print_stderr(text);
    }
}

/// Prints to standard error. A failure to print is ignored.
pub(crate) fn print_stderr(text: &str) {
    if Inside::with(|inside| inside.err.push_str(text)).is_none() {
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
    }
}

/// A file to be written. Dropped without [`OutputFile::put`] it leaves nothing.
#[derive(Debug)]
pub(crate) struct OutputFile {
    name: String,
    place: Place,
}

#[derive(Debug)]
enum Place {
    /// `-`
    Stdout,
    /// A device, a pipe: there is nothing to rename.
    Direct(File),
    /// A regular file, and its name at the end.
    Replace(NamedTempFile, PathBuf),
}

impl OutputFile {
    /// Makes sure that the file can be written, before the work begins whose result it is for.
    pub(crate) fn open(path: &Path) -> Result<OutputFile, Error> {
        let name = path.display().to_string();
        let place = if name == "-" {
            Place::Stdout
        } else {
            place(path).map_err(|source| Error::output(&name, source))?
        };
        Ok(OutputFile { name, place })
    }

    pub(crate) fn is_stdout(&self) -> bool {
        matches!(self.place, Place::Stdout)
    }

    /// Writes all of it, to be kept by [`Written::keep`].
    pub(crate) fn put(self, text: &str) -> Result<Written, Error> {
        self.put_bytes(text.as_bytes())
    }

    /// Writes a part, which [`OutputFile::put_bytes`] ends.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let written = match &mut self.place {
            Place::Stdout => return print_bytes(bytes),
            Place::Direct(file) => file.write_all(bytes).and_then(|()| file.flush()),
            Place::Replace(file, _) => file.write_all(bytes),
        };
        written.map_err(|source| Error::output(&self.name, source))
    }

    /// As [`OutputFile::put`], for binary data.
    pub(crate) fn put_bytes(mut self, bytes: &[u8]) -> Result<Written, Error> {
        self.append(bytes)?;
        if let Place::Replace(file, _) = &self.place {
            let synced = file.as_file().sync_all();
            synced.map_err(|source| Error::output(&self.name, source))?;
        }
        let replaces = match self.place {
            Place::Stdout | Place::Direct(_) => None,
            Place::Replace(file, target) => Some((file.into_temp_path(), target)),
        };
        Ok(Written {
            name: self.name,
            replaces,
        })
    }
}

/// A file that is complete, and closed, but not yet in its place.
#[derive(Debug)]
pub(crate) struct Written {
    name: String,
    replaces: Option<(TempPath, PathBuf)>,
}

impl Written {
    /// Gives it its name, replacing an older file.
    pub(crate) fn keep(self) -> Result<(), Error> {
        let Some((file, target)) = self.replaces else {
            return Ok(());
        };
        let kept = file.persist(target);
        kept.map_err(|refused| Error::output(self.name, refused.error))
    }

    /// Gives it its name, unless a file that another process wrote has it already.
    pub(crate) fn keep_first(self) -> Result<(), Error> {
        let Some((file, target)) = self.replaces else {
            return Ok(());
        };
        match file.persist_noclobber(target) {
            Err(refused) if refused.error.kind() != ErrorKind::AlreadyExists => {
                Err(Error::output(self.name, refused.error))
            }
            _ => Ok(()),
        }
    }
}

fn place(path: &Path) -> std::io::Result<Place> {
    // A link stays, its target is replaced.
    let target = match path.canonicalize() {
        Ok(target) => target,
        Err(error) if error.kind() == ErrorKind::NotFound => path.to_path_buf(),
        Err(error) => return Err(error),
    };
    let mode = match target.metadata() {
        Ok(old) if old.is_dir() => return Err(ErrorKind::IsADirectory.into()),
        Ok(old) if !old.is_file() => {
            return Ok(Place::Direct(OpenOptions::new().write(true).open(target)?));
        }
        Ok(old) => Some(old.permissions()),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    if target.file_name().is_none() {
        return Err(ErrorKind::InvalidFilename.into());
    }
    let dir = match target.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let temporary = tempfile::Builder::new()
        .prefix(TEMPORARY)
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(dir)?;
    if let Some(mode) = mode {
        temporary.as_file().set_permissions(mode)?;
    }
    Ok(Place::Replace(temporary, target))
}
