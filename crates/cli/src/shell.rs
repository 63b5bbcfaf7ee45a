//! `blksim completions` and `blksim man`: clap's description of the command line in the forms that
//! a shell and man(1) read.

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::args::Args;
use crate::error::Error;
use crate::{OK, output};

pub(crate) fn completions(shell: Shell) -> Result<u8, Error> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "blksim", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(OK)
}

/// The page of the program, or that of a command.
pub(crate) fn man(command: Option<&str>) -> Result<u8, Error> {
    let mut root = Args::command();
    root.build();
    let page = match command {
        None => root,
        Some(name) => {
            let names: Vec<&str> = root
                .get_subcommands()
                .map(clap::Command::get_name)
                .collect();
            let found = root.find_subcommand(name);
            let found = found.ok_or_else(|| {
                let what = format!("no such command; there are {}", names.join(", "));
                Error::usage(name, what)
            })?;
            let full = format!("blksim-{name}");
            found.clone().display_name(full)
        }
    };
    let mut text = Vec::new();
    let drawn = clap_mangen::Man::new(page).render(&mut text);
    drawn.map_err(|source| Error::output("manual page", source))?;
    output::print(&String::from_utf8_lossy(&text))?;
    Ok(OK)
}
