//! Pages of structs that serde reads or writes, from their source: a table for each struct, a row
//! for each field, with the comment of the field as its meaning.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use syn::{Attribute, Expr, ExprLit, Field, GenericArgument, Item, ItemStruct, Lit, Meta};
use syn::{PathArguments, Type};

use crate::paths;
use crate::step::{Failure, Result};

/// A page that begins with this struct.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page {
    /// Name of its file.
    pub(super) name: &'static str,
    /// Structs with the names that the reader sees: the root and all that is reached from it.
    pub(super) roots: &'static [(&'static str, &'static str)],
    /// A name within another: `[queue]` for TOML, `jobs[].read` for JSON.
    pub(super) within: fn(&str, &Member) -> String,
    /// Structs of which another page has the fields, and that page.
    pub(super) elsewhere: &'static [(&'static str, &'static str)],
}

/// A field as the reader sees it.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) name: String,
    /// There are several: a list, a TOML array of tables.
    pub(super) many: bool,
    /// Words for its type.
    kind: String,
    /// The struct that it is of.
    of: Option<String>,
    meaning: String,
}

/// Structs by name, from all sources below the folders of these crates.
pub(super) struct Structs(BTreeMap<String, Vec<(PathBuf, ItemStruct)>>);

impl Structs {
    pub(super) fn read(crates: &[&str]) -> Result<Structs> {
        let mut all: BTreeMap<String, Vec<(PathBuf, ItemStruct)>> = BTreeMap::new();
        for name in crates {
            for path in paths::rust_files(&paths::root().join("crates").join(name).join("src")) {
                let wrong = |e: &dyn std::fmt::Display| Failure(format!("{}: {e}", path.display()));
                let text = fs::read_to_string(&path).map_err(|e| wrong(&e))?;
                let file = syn::parse_file(&text).map_err(|e| wrong(&e))?;
                for item in file.items {
                    if let Item::Struct(item) = item
                        && derives(&item, &["Serialize", "Deserialize"])
                    {
                        let same = all.entry(item.ident.to_string()).or_default();
                        same.push((path.clone(), item));
                    }
                }
            }
        }
        Ok(Structs(all))
    }

    /// The page: the structs that are reached from the roots, each once, where it is met first.
    pub(super) fn page(&self, page: &Page) -> Result<String> {
        let mut text = String::new();
        let mut met: Vec<String> = Vec::new();
        for (of, name) in page.roots {
            let found = self.nearest(of, Path::new(""))?;
            self.walk(page, found, name, &mut met, &mut text)?;
        }
        Ok(text)
    }

    fn walk(
        &self,
        page: &Page,
        (path, item): &(PathBuf, ItemStruct),
        name: &str,
        met: &mut Vec<String>,
        text: &mut String,
    ) -> Result<()> {
        met.push(item.ident.to_string());
        let members = self.members(path, item)?;
        // Writing into a string cannot fail.
        let _ = write!(text, "\n## {name}\n\n{}\n\n", docs(&item.attrs));
        text.push_str("| Name | Type | Meaning |\n| --- | --- | --- |\n");
        for member in &members {
            let Member {
                name,
                kind,
                meaning,
                ..
            } = member;
            let _ = writeln!(text, "| `{name}` | {kind} | {meaning} |");
        }
        for member in &members {
            let Some(inner) = &member.of else { continue };
            if let Some((_, place)) = page.elsewhere.iter().find(|(name, _)| name == inner) {
                let _ = write!(
                    text,
                    "\n## {}\n\nSee {place}.\n",
                    (page.within)(name, member)
                );
            } else if self.0.contains_key(inner) && !met.contains(inner) {
                let found = self.nearest(inner, path)?;
                self.walk(page, found, &(page.within)(name, member), met, text)?;
            }
        }
        Ok(())
    }

    /// The fields of a struct; of one that serde flattens, its own in its place.
    fn members(&self, path: &Path, item: &ItemStruct) -> Result<Vec<Member>> {
        let writes = derives(item, &["Serialize"]);
        let mut all = Vec::new();
        for field in &item.fields {
            let Some(member) = member(field, writes) else {
                continue;
            };
            match member
                .of
                .as_deref()
                .filter(|_| Serde::of(&field.attrs).flatten)
            {
                Some(inner) => {
                    let (path, item) = self.nearest(inner, path)?;
                    all.extend(self.members(path, item)?);
                }
                None => all.push(member),
            }
        }
        Ok(all)
    }

    /// The struct of this name whose file is nearest to that of the struct with the field.
    fn nearest(&self, name: &str, near: &Path) -> Result<&(PathBuf, ItemStruct)> {
        let common = |path: &Path| {
            let both = path.components().zip(near.components());
            both.take_while(|(one, other)| one == other).count()
        };
        let all = self.0.get(name).map_or(&[][..], Vec::as_slice);
        let most = all.iter().map(|(path, _)| common(path)).max();
        let mut nearest = all.iter().filter(|(path, _)| Some(common(path)) == most);
        match (nearest.next(), nearest.next()) {
            (Some(only), None) => Ok(only),
            (Some((one, _)), Some((other, _))) => {
                let (one, other) = (one.display(), other.display());
                Err(Failure(format!("struct {name} is in {one} and in {other}")))
            }
            (None, _) => Err(Failure(format!("there is no struct {name} of serde"))),
        }
    }
}

/// True if it derives one of these traits.
fn derives(item: &ItemStruct, traits: &[&str]) -> bool {
    let mut found = false;
    for attribute in item.attrs.iter().filter(|a| a.path().is_ident("derive")) {
        // The closure fails at nothing.
        let _ = attribute.parse_nested_meta(|meta| {
            let last = meta.path.segments.last();
            found |= last.is_some_and(|s| traits.iter().any(|name| s.ident == name));
            Ok(())
        });
    }
    found
}

/// None of a field that serde skips.
fn member(field: &Field, writes: bool) -> Option<Member> {
    let serde = Serde::of(&field.attrs);
    if serde.skip {
        return None;
    }
    let name = field.ident.as_ref()?.to_string();
    let name = serde
        .rename
        .unwrap_or_else(|| name.trim_start_matches("r#").to_owned());
    let shape = Shape::of(&field.ty);
    let mut meaning = docs(&field.attrs).replace('|', "\\|").replace('\n', " ");
    let has = |word| meaning.to_lowercase().contains(word);
    if has("left out") || has("null if") {
        // The comment has the condition.
    } else if let Some(condition) = serde.skip_if {
        let condition = match condition.as_str() {
            "Vec::is_empty" | "BTreeMap::is_empty" => "empty",
            "is_zero" => "0",
            _ => "there is none",
        };
        let _ = write!(meaning, " Left out if {condition}.");
    } else if shape.optional && writes {
        meaning.push_str(" Null if there is none.");
    }
    let kind = match (serde.as_map, writes) {
        (true, _) => "object".to_owned(),
        (false, true) => shape.kind.replace("table", "object"),
        (false, false) => shape.kind,
    };
    Some(Member {
        name,
        many: shape.many,
        kind,
        of: shape.of,
        meaning,
    })
}

/// The serde attributes of a field.
#[derive(Default)]
struct Serde {
    rename: Option<String>,
    skip: bool,
    skip_if: Option<String>,
    as_map: bool,
    flatten: bool,
}

impl Serde {
    fn of(attributes: &[Attribute]) -> Serde {
        let mut serde = Serde::default();
        for attribute in attributes.iter().filter(|a| a.path().is_ident("serde")) {
            // Values are texts; an attribute without a value is a word.
            let _ = attribute.parse_nested_meta(|meta| {
                let text = match meta.value() {
                    Ok(value) => Some(value.parse::<syn::LitStr>()?.value()),
                    Err(_) => None,
                };
                if meta.path.is_ident("rename") {
                    serde.rename = text;
                } else if meta.path.is_ident("skip") {
                    serde.skip = true;
                } else if meta.path.is_ident("flatten") {
                    serde.flatten = true;
                } else if meta.path.is_ident("skip_serializing_if") {
                    serde.skip_if = text;
                } else if meta.path.is_ident("serialize_with") {
                    serde.as_map = text.is_some_and(|with| with.ends_with("map"));
                }
                Ok(())
            });
        }
        serde
    }
}

/// The kind of a type, for the reader of the page.
#[derive(Default)]
struct Shape {
    kind: String,
    of: Option<String>,
    many: bool,
    optional: bool,
}

impl Shape {
    fn of(ty: &Type) -> Shape {
        let leaf = |kind: &str| Shape {
            kind: kind.to_owned(),
            ..Shape::default()
        };
        let path = match ty {
            Type::Path(path) => path,
            Type::Reference(reference) => return Shape::of(&reference.elem),
            Type::Array(array) => return Shape::of(&array.elem).list(),
            _ => return leaf("value"),
        };
        let Some(last) = path.path.segments.last() else {
            return leaf("value");
        };
        let inner = || {
            match &last.arguments {
                PathArguments::AngleBracketed(of) => of
                    .args
                    .iter()
                    .filter_map(|arg| match arg {
                        GenericArgument::Type(ty) => Some(Shape::of(ty)),
                        _ => None,
                    })
                    .next_back(),
                _ => None,
            }
            .unwrap_or_default()
        };
        match last.ident.to_string().as_str() {
            "Option" => Shape {
                optional: true,
                ..inner()
            },
            "Box" => inner(),
            "Vec" => inner().list(),
            "BTreeMap" => Shape {
                kind: format!("names with {}", inner().kind),
                ..inner()
            },
            "String" | "str" => leaf("text"),
            "bool" => leaf("true, false"),
            "f32" | "f64" => leaf("number"),
            "Switch" => leaf("switch"),
            "Chance" => leaf("chance"),
            "Value" => leaf("value"),
            "u8" | "u16" | "u32" | "u64" | "usize" | "i8" | "i16" | "i32" | "i64" => {
                leaf("integer")
            }
            name => Shape {
                of: Some(name.to_owned()),
                ..leaf("table")
            },
        }
    }

    fn list(self) -> Shape {
        Shape {
            kind: format!("list of {}", self.kind),
            many: true,
            ..self
        }
    }
}

/// The comment, as paragraphs.
fn docs(attributes: &[Attribute]) -> String {
    let lines = attributes
        .iter()
        .filter_map(|attribute| match &attribute.meta {
            Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
                Expr::Lit(ExprLit {
                    lit: Lit::Str(text),
                    ..
                }) => Some(text.value()),
                _ => None,
            },
            _ => None,
        });
    let lines: Vec<String> = lines.map(|line| line.trim().to_owned()).collect();
    // Links of rustdoc lead nowhere on a page.
    lines.join("\n").replace("[`", "`").replace("`]", "`")
}
