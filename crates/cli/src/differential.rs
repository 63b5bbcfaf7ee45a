//! `blksim differential`: a scheduler in the C of a kernel beside the model's, or beside that of
//! another kernel, on the same random operations.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blkmq::elevator::{Custom, SchedulerKind, SchedulerSettings};
use kernel::differential::{Comparison, Difference, OfPart, Outcome, Side};
use kernel::{Library, Policy, Tree};

use crate::args::DifferentialArgs;
use crate::error::Error;
use crate::{DIFFERENT, OK, output};

/// Compares and prints. Exit code 1: they differ.
pub(crate) fn differential(args: &DifferentialArgs) -> Result<u8, Error> {
    // The file of a part that is compiled by itself, the others are in each library; the beginning
    // of the names of its files.
    let parts: [(&str, Option<&str>, &str, OfPart); 4] = [
        ("sbitmap", None, "sbitmap", kernel::differential::sbitmap),
        ("rbtree", None, "rbtree", kernel::differential::rbtree),
        (
            "flush",
            Some("block/blk-flush.c"),
            "blk-flush",
            kernel::differential::flush,
        ),
        (
            "multipath",
            Some("drivers/md/dm-mpath.c"),
            "dm-",
            kernel::differential::multipath,
        ),
    ];
    let named = parts.iter().find(|(name, ..)| *name == args.scheduler);
    if let Some(&(_, file, names, part)) = named {
        let (code, libraries) = compare_part(args, file, part)?;
        print_coverage(args, &libraries, names)?;
        return Ok(code);
    }
    let (comparison, libraries) = comparison(args)?;
    let names = comparison.sides.each_ref().map(|side| side.name.as_str());
    let code = report(args, &comparison.scheduler, names, |seed, operations| {
        comparison.run(seed, operations)
    })?;
    let stem = Path::new(&args.scheduler).file_stem().unwrap_or_default();
    print_coverage(args, &libraries, &stem.to_string_lossy())?;
    Ok(code)
}

/// Compares with one seed after the other until enough differences or operations were seen, and
/// prints. `sides`: their names.
fn report(
    args: &DifferentialArgs,
    name: &str,
    sides: [&str; 2],
    run: impl Fn(u64, u64) -> Outcome,
) -> Result<u8, Error> {
    // An assertion of the model is reported with its script.
    std::panic::set_hook(Box::new(|_| ()));
    let (mut text, mut shapes) = (String::new(), BTreeSet::new());
    let (mut seed, mut last) = (args.seed, args.seed);
    let mut total = 0;
    while total < args.operations && shapes.len() < args.scripts {
        let outcome = run(seed, args.operations - total);
        total += outcome.operations;
        last = seed;
        seed += 1;
        let Some(difference) = &outcome.difference else {
            let _ = write!(text, "{}", ended(&outcome));
            break;
        };
        if shapes.insert(shape(difference)) {
            let _ = write!(text, "{}", shown(difference, sides));
        }
    }
    let _ = std::panic::take_hook();
    let [one, other] = sides;
    output::print(&format!(
        "{name}: {one} and {other}: {total} operations, seeds {} to {last}: {}\n{text}",
        args.seed,
        match shapes.len() {
            0 => "no difference".to_owned(),
            1 => "a difference".to_owned(),
            more => format!("{more} differences"),
        }
    ))?;
    Ok(if shapes.is_empty() { OK } else { DIFFERENT })
}

fn compare_part(
    args: &DifferentialArgs,
    file: Option<&str>,
    part: OfPart,
) -> Result<(u8, Vec<Arc<Library>>), Error> {
    let name = args.scheduler.as_str();
    if args.against.is_some() && file.is_none() {
        let what = "is compared with the model only";
        return Err(Error::usage(name, what));
    }
    // As many ticks a second as the model's parts have.
    let of_part = DifferentialArgs {
        scheduler: name.to_owned(),
        linux: args.linux.clone(),
        against: None,
        hz: 250,
        ..*args
    };
    let library = |dir: &PathBuf| match file {
        Some(file) => library(&of_part, dir, |tree| Ok(tree.dir.join(file))),
        None => {
            let scheduler = SchedulerKind::default_for(true).name();
            library(&of_part, dir, |tree| file_of(tree, scheduler))
        }
    };
    let trees = [Some(&args.linux), args.against.as_ref()];
    let libraries = trees.into_iter().flatten().map(library);
    let libraries = libraries.collect::<Result<Vec<_>, Error>>()?;
    let of = |library: &Arc<Library>| format!("{name}.c of {}", library.tree.release());
    let [one, other] = match libraries.as_slice() {
        [one, other] => [of(one), of(other)],
        _ => ["the model".to_owned(), of(&libraries[0])],
    };
    let code = report(args, name, [&one, &other], |seed, operations| {
        part(&libraries, seed, operations)
    })?;
    Ok((code, libraries))
}

/// Which lines of the files whose names begin so were reached.
fn print_coverage(
    args: &DifferentialArgs,
    libraries: &[Arc<Library>],
    names: &str,
) -> Result<(), Error> {
    for library in libraries.iter().filter(|_| args.coverage) {
        let files = library.coverage().map_err(|error| failed(&error))?;
        let text = files.iter().filter(|of| {
            let name = of.file.file_name().unwrap_or_default();
            name.to_string_lossy().starts_with(names)
        });
        let text: Vec<String> = text.map(ToString::to_string).collect();
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
    if SchedulerKind::by_name(&scheduler).is_none() {
        let what =
            format!("registers {scheduler}: there are no scripts for a scheduler of that name");
        return Err(Error::usage(args.scheduler.as_str(), what));
    }
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
    let library = library(args, dir, |tree| file_of(tree, &args.scheduler))?;
    let tree = &library.tree;
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

fn library(
    args: &DifferentialArgs,
    dir: &Path,
    file: impl Fn(&Tree) -> Result<PathBuf, Error>,
) -> Result<Arc<Library>, Error> {
    let tree = Tree::open(dir).map_err(|error| failed(&error))?;
    let library = Library::build(&tree, &file(&tree)?, args.hz, args.coverage);
    library.map_err(|error| failed(&error))
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

/// Why scripts ended before their last command.
fn ended(outcome: &Outcome) -> String {
    let lines = outcome.ended.iter();
    lines
        .map(|(why, count)| format!("{count} scripts ended at {why}\n"))
        .collect()
}

/// Words of the commands that show a difference, and what is printed otherwise.
fn shape(difference: &Difference) -> String {
    let commands = difference.script.lines().take_while(|&line| line != "----");
    let word = |line: &str| match line.starts_with("insert head") {
        true => "insert head".to_owned(),
        false => line.split(' ').next().unwrap_or_default().to_owned(),
    };
    let words: BTreeSet<String> = commands.skip(2).map(word).collect();
    if words.contains("table") {
        // Every table is another text.
        return format!("{words:?}");
    }
    let [one, other] = &difference.printed;
    let first = one.iter().zip(other).find(|(one, other)| one != other);
    let kind = first.map_or("", |(one, _)| {
        one.split(['=', ':', '@']).next().unwrap_or("")
    });
    let letters = kind.chars().filter(|c| c.is_alphabetic());
    format!("{words:?} {}", letters.collect::<String>())
}

fn shown(difference: &Difference, sides: [&str; 2]) -> String {
    let mut text = format!("\n{}", difference.script);
    for (side, printed) in sides.iter().zip(&difference.printed) {
        let _ = writeln!(text, "\n# {side}, at the last command:");
        for line in printed {
            let _ = writeln!(text, "#   {line}");
        }
    }
    text
}
