//! The same with compressed files: the content decides the compression; damage in them.

use super::Verdict::{Error as Refused, Fine, Warning as Warned};
use super::*;

pub(super) fn all() -> Vec<Row> {
    fn compressed(dir: &Path, name: &str, pack: fn(&[u8]) -> Vec<u8>) -> PathBuf {
        let path = good(dir);
        let bytes = std::fs::read(&path).expect("written");
        std::fs::remove_file(&path).expect("it was there");
        let path = dir.join(name);
        std::fs::write(&path, pack(&bytes)).expect("written");
        path
    }
    vec![
        Row(
            "gzip under the name of a plain file",
            |dir| {
                compressed(dir, "sda.blktrace.0", gzip);
            },
            strict(),
            Fine(10),
        ),
        Row(
            "xz under the name of gzip",
            |dir| {
                compressed(dir, "sda.blktrace.0.gz", xz);
            },
            strict(),
            Fine(10),
        ),
        Row(
            "damaged gzip",
            |dir| {
                edit(&compressed(dir, "sda.blktrace.0.gz", gzip), |bytes| {
                    let length = bytes.len();
                    bytes[length - 6] ^= 0xff;
                });
            },
            plain(),
            Refused("damaged gzip data", None),
        ),
        Row(
            "truncated xz",
            |dir| {
                edit(&compressed(dir, "sda.blktrace.0.xz", xz), |bytes| {
                    bytes.truncate(bytes.len() - 20);
                });
            },
            plain(),
            Refused("damaged xz data", None),
        ),
        Row(
            "truncated xz, salvage",
            |dir| {
                edit(&compressed(dir, "sda.blktrace.0.xz", xz), |bytes| {
                    bytes.truncate(bytes.len() - 20);
                });
            },
            salvage(),
            Warned(10, Warning::Salvaged, 1, NOTE + 10 * RECORD),
        ),
    ]
}
