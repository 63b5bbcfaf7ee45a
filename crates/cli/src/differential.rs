//! `blksim differential`: a scheduler in the C of a kernel beside the model's, or beside that of
//! another kernel, on the same random operations.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blkmq::elevator::{Custom, SchedulerKind, SchedulerSettings};
use kernel::differential::{Comparison, Difference, Outcome, Side};
use kernel::{Library, Policy, Tree};

use crate::args::DifferentialArgs;
use crate::error::Error;
use crate::{DIFFERENT, OK, output};

/// Compares and prints. Exit code 1: they differ.
pub(crate) fn differential(args: &DifferentialArgs) -> Result<u8, Error> {
    let parts: [(&str, Part); 2] = [
        ("sbitmap", kernel::differential::sbitmap),
        ("rbtree", kernel::differential::rbtree),
    ];
    if let Some(&(_, part)) = parts.iter().find(|(name, _)| *name == args.scheduler) {
        return compare_part(args, part);
    }
    let (comparison, libraries) = comparison(args)?;
    // An assertion of the model is reported with its script.
    std::panic::set_hook(Box::new(|_| ()));
    let (mut text, mut shapes) = (String::new(), BTreeSet::new());
    let (mut seed, mut last) = (args.seed, args.seed);
    let mut total = 0;
    while total < args.operations && shapes.len() < args.scripts {
        let outcome = comparison.run(seed, args.operations - total, |_| ());
        total += outcome.operations;
        last = seed;
        seed += 1;
        let Some(difference) = &outcome.difference else {
            let _ = write!(text, "{}", deviations(&outcome));
            break;
        };
        if shapes.insert(shape(difference)) {
            let _ = write!(text, "{}", shown(difference, &comparison));
        }
    }
    let _ = std::panic::take_hook();
    let [one, other] = &comparison.sides;
    output::print(&format!(
        "{}: {} and {}: {total} operations, seeds {} to {last}: {}\n{text}",
        comparison.scheduler,
        one.name,
        other.name,
        args.seed,
        match shapes.len() {
            0 => "no difference".to_owned(),
            1 => "a difference".to_owned(),
            more => format!("{more} differences"),
        }
    ))?;
    print_coverage(args, &libraries)?;
    Ok(if shapes.is_empty() { OK } else { DIFFERENT })
}

/// The comparison of a part of the kernel that schedulers use.
type Part = fn(&Arc<Library>, u64, u64) -> Outcome;

fn compare_part(args: &DifferentialArgs, part: Part) -> Result<u8, Error> {
    if args.against.is_some() {
        let what = "is compared with the model only";
        return Err(Error::usage(args.scheduler.as_str(), what));
    }
    let of_tree = DifferentialArgs {
        scheduler: SchedulerKind::default_for(true).name().to_owned(),
        linux: args.linux.clone(),
        against: None,
        ..*args
    };
    let (library, side) = side(&of_tree, &args.linux)?;
    std::panic::set_hook(Box::new(|_| ()));
    let outcome = part(&library, args.seed, args.operations);
    let _ = std::panic::take_hook();
    let name = &args.scheduler;
    let (verdict, code) = match &outcome.difference {
        None => ("no difference".to_owned(), OK),
        Some(found) => (format!("a difference\n\n{}", found.script), DIFFERENT),
    };
    output::print(&format!(
        "{name}: the model and {name}.c of {}: {} operations, seed {}: {verdict}\n",
        library.tree.release(),
        outcome.operations,
        args.seed,
    ))?;
    drop(side);
    print_coverage(args, &[library])?;
    Ok(code)
}

/// Which lines of the file in question were reached.
fn print_coverage(args: &DifferentialArgs, libraries: &[Arc<Library>]) -> Result<(), Error> {
    for library in libraries.iter().filter(|_| args.coverage) {
        let files = library.coverage().map_err(|error| failed(&error))?;
        let name = |file: &Path| Some(file.file_stem()?.to_str()?.to_owned());
        let of_it = files.iter().filter(|of| {
            let named = name(&of.file).is_some_and(|name| name.starts_with(&args.scheduler));
            named || crate::elevator::is_file(&args.scheduler) && of.file == library.file
        });
        let text: Vec<String> = of_it.map(ToString::to_string).collect();
        output::print(&text.concat())?;
    }
    Ok(())
}

fn failed(error: &kernel::Error) -> Error {
    Error::usage("differential", error.to_string())
}

/// What is compared, and what was compiled for it.
fn comparison(args: &DifferentialArgs) -> Result<(Comparison, Vec<Arc<Library>>), Error> {
    let (library, side) = side(args, &args.linux)?;
    let scheduler = library.name.clone();
    let mut libraries = vec![library];
    let sides = match &args.against {
        None => {
            let model = Side {
                name: format!("the model with rules {}", side.rules),
                rules: side.rules,
                scheduler: None,
            };
            [model, side]
        }
        Some(dir) => {
            let (library, newer) = self::side(args, dir)?;
            libraries.push(library);
            [side, newer]
        }
    };
    let hz = args.hz;
    let comparison = Comparison {
        scheduler,
        hz,
        decisions: args.against.is_some(),
        sides,
    };
    Ok((comparison, libraries))
}

/// The scheduler of a tree.
fn side(args: &DifferentialArgs, dir: &Path) -> Result<(Arc<Library>, Side), Error> {
    let tree = Tree::open(dir).map_err(|error| failed(&error))?;
    let file = file_of(&tree, &args.scheduler)?;
    let library =
        Library::build(&tree, &file, args.hz, args.coverage).map_err(|error| failed(&error))?;
    let policy = Policy::new(&library);
    let policy = policy.map_err(|fault| Error::usage("differential", fault.text))?;
    let policy = policy.with_events();
    let side = Side {
        name: format!("{} of {}", args.scheduler, tree.release()),
        rules: tree.rules().name,
        scheduler: Some(SchedulerSettings::Custom(Custom::new(policy))),
    };
    Ok((library, side))
}

/// `block/NAME.c`, `block/NAME-iosched.c`, or a file that is named.
fn file_of(tree: &Tree, name: &str) -> Result<PathBuf, Error> {
    if crate::elevator::is_file(name) {
        return Ok(PathBuf::from(name));
    }
    let names = [format!("{name}.c"), format!("{name}-iosched.c")];
    let files = names.map(|name| tree.dir.join("block").join(name));
    let found = files.iter().find(|file| file.is_file()).cloned();
    found.ok_or_else(|| {
        let tried = files.map(|file| file.display().to_string()).join(" nor ");
        Error::usage(name, format!("neither {tried} is there"))
    })
}

fn deviations(outcome: &Outcome) -> String {
    match outcome.deviations {
        0 => String::new(),
        count => format!("{count} scripts ended at deviation D5 of docs/explanation/model.md\n"),
    }
}

/// Words of the commands that show a difference, and what is printed otherwise.
fn shape(difference: &Difference) -> String {
    let commands = difference.script.lines().take_while(|&line| line != "----");
    let word = |line: &str| match line.starts_with("insert head") {
        true => "insert head".to_owned(),
        false => line.split(' ').next().unwrap_or_default().to_owned(),
    };
    let words: BTreeSet<String> = commands.skip(2).map(word).collect();
    let [one, other] = &difference.printed;
    let first = one.iter().zip(other).find(|(one, other)| one != other);
    let kind = first.map_or("", |(one, _)| {
        one.split(['=', ':', '@']).next().unwrap_or("")
    });
    let letters = kind.chars().filter(|c| c.is_alphabetic());
    format!("{words:?} {}", letters.collect::<String>())
}

fn shown(difference: &Difference, comparison: &Comparison) -> String {
    let mut text = format!("\n{}", difference.script);
    for (side, printed) in comparison.sides.iter().zip(&difference.printed) {
        let _ = writeln!(text, "\n# {}, at the last command:", side.name);
        for line in printed {
            let _ = writeln!(text, "#   {line}");
        }
    }
    text
}
