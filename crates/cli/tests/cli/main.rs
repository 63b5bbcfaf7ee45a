//! The program from outside: arguments, exit codes, files.
#![forbid(unsafe_code)]

mod bad_input;
mod blktrace;
mod captures;
mod place;
mod run;
