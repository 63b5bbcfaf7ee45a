//! The table from functions of the kernel to components of the cost model.
//!
//! Text in `crates/study/symbols.toml`; files of `--symbols` have the same form.

use std::collections::BTreeMap;

use sim::cost::Component;

/// The meaning of a function's time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Work that the model has a price for.
    Work(Component),
    /// Waiting for a lock, which the model predicts.
    Waiting,
    /// The idle loop.
    Idle,
}

/// Symbols and beginnings of symbols, each with its class.
#[derive(Clone, Debug)]
pub struct Symbols {
    whole: BTreeMap<String, Class>,
    beginnings: BTreeMap<String, Class>,
}

impl Symbols {
    /// The built-in table.
    pub fn built_in() -> Result<Symbols, String> {
        let mut symbols = Symbols {
            whole: BTreeMap::new(),
            beginnings: BTreeMap::new(),
        };
        symbols.add(include_str!("../../symbols.toml"))?;
        Ok(symbols)
    }

    /// Adds a file's text; its entries replace those of the same spelling.
    pub fn add(&mut self, text: &str) -> Result<(), String> {
        let table: BTreeMap<String, Vec<String>> =
            toml::from_str(text).map_err(|error| error.to_string())?;
        let mut seen = BTreeMap::new();
        for (name, symbols) in &table {
            let class = class(name)?;
            for symbol in symbols {
                let beginning = symbol.strip_suffix('*');
                let plain = beginning.unwrap_or(symbol);
                if plain.is_empty() || plain.contains(|c: char| c == '*' || c.is_whitespace()) {
                    return Err(format!(
                        "{name}: \"{symbol}\": must be a symbol, or its beginning and one `*`"
                    ));
                }
                if let Some(other) = seen.insert(symbol, name) {
                    return Err(format!("{name}: \"{symbol}\" is also in {other}"));
                }
                match beginning {
                    Some(beginning) => self.beginnings.insert(beginning.to_owned(), class),
                    None => self.whole.insert(symbol.clone(), class),
                };
            }
        }
        Ok(())
    }

    /// The class of a symbol: its own entry's, else that of the longest beginning.
    pub fn class(&self, symbol: &str) -> Option<Class> {
        let beginnings = (1..=symbol.len()).rev().filter_map(|end| symbol.get(..end));
        let mut found = beginnings.filter_map(|beginning| self.beginnings.get(beginning));
        let whole = self.whole.get(symbol);
        whole.or_else(|| found.next()).copied()
    }
}

fn class(name: &str) -> Result<Class, String> {
    match name {
        "waiting" => return Ok(Class::Waiting),
        "idle" => return Ok(Class::Idle),
        _ => {}
    }
    let known = Component::ALL.into_iter().find(|c| c.name() == name);
    known.map(Class::Work).ok_or_else(|| {
        let names = Component::ALL.map(Component::name).join(", ");
        format!("{name}: no such component; there are: {names}, and waiting and idle")
    })
}
