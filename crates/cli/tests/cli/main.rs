//! The program from outside: arguments, exit codes, files.
#![forbid(unsafe_code)]

mod blktrace;
mod calibrate;
mod captures;
mod cases;
mod check;
mod conform_round_trip;
mod defect;
mod devices;
mod explore;
mod fio_jobs;
mod followed;
mod jobs;
mod like_captures;
mod mapped;
mod mapped_many;
mod mapped_report;
mod mapped_silent;
mod merged;
mod place;
mod plot;
mod record;
mod run;
mod schedulers;
mod single_queue;
mod taken;
mod tokens;
