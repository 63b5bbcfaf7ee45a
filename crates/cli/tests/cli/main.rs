//! The program from outside: arguments, exit codes, files.
#![forbid(unsafe_code)]

mod blktrace;
mod cases;
mod conform_round_trip;
mod defect;
mod followed;
mod html;
mod mapped;
mod merged;
mod perfetto;
mod place;
mod plot;
mod record;
mod schedulers;
mod signals;
mod single_queue;
