//! Texts with figures in braces: the cells and the command lines of the tables.
//!
//! `{expression}` or `{expression:format}`. An expression has numbers, `+ - * /`, `<` and `<=`,
//! `abs()`, `sum()`, names and JSON pointers into the report of the run: `/jobs/0/read/iops`. A
//! blank after `/` divides. Steps of a pointer beside keys and numbers: `*` is every member,
//! `name=x` the element whose `name` is `x`, `name=max` the one whose `name` is largest and above
//! 0, `$name` the value of a name. `run/pointer` and `run.name` are of another run, `first.`,
//! `last.` of another row, `total.` is the sum over `across`. Formats: `.2`, `+.2`, `,` (12,345),
//! `-v` (without the `v` that it begins with).
//!
//! `{?expression}` prints nothing: the text applies only if the figure is there and not 0.
//! `[...]` is left out if all its figures are 0; with `*` it is repeated, separated by commas.

use super::markdown::grouped;

/// The meaning of the names in a template.
pub(super) trait Scope: Copy {
    /// The value of a name.
    fn name(self, name: &str) -> Result<Value>;
    /// The values at a pointer into the report of a run.
    fn pointer(self, run: &str, pointer: &str) -> Result<Vec<Value>>;
    /// The scopes of a selector: another row, another run or all columns. None if it is none.
    fn select(self, selector: &str) -> Option<Vec<Self>>;
}

/// Why a template has no text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Problem {
    /// It does not apply: a report has no such figure, or a condition is false. Another
    /// alternative may.
    Missing(String),
    /// The template is wrong.
    Wrong(String),
}

pub(super) type Result<T> = std::result::Result<T, Problem>;

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Problem::Missing(what) | Problem::Wrong(what)) = self;
        f.write_str(what)
    }
}

fn wrong<T>(what: String) -> Result<T> {
    Err(Problem::Wrong(what))
}

#[derive(Clone, PartialEq, Debug)]
pub(super) enum Value {
    Number(f64),
    Text(String),
}

impl Value {
    fn number(&self) -> Result<f64> {
        match self {
            Value::Number(number) => Ok(*number),
            Value::Text(text) => text
                .parse()
                .or_else(|_| wrong(format!("`{text}` is no number"))),
        }
    }

    pub(super) fn text(&self) -> String {
        match self {
            Value::Number(number) => number.to_string(),
            Value::Text(text) => text.clone(),
        }
    }

    fn formatted(&self, format: &str) -> Result<String> {
        if let Some(begin) = format.strip_prefix('-') {
            let text = self.text();
            return Ok(text.strip_prefix(begin).unwrap_or(&text).to_owned());
        }
        let unsigned = format.strip_prefix('+');
        let digits = unsigned.unwrap_or(format).strip_prefix('.');
        Ok(
            match (
                format,
                digits.and_then(|digits| digits.parse::<usize>().ok()),
            ) {
                ("", _) => self.text(),
                (",", _) => grouped(self.number()?),
                (_, Some(digits)) if unsigned.is_some() => format!("{:+.digits$}", self.number()?),
                (_, Some(digits)) => format!("{:.digits$}", self.number()?),
                _ => return wrong(format!("`{format}` is no format")),
            },
        )
    }
}

/// The text of the first of several templates that applies.
pub(super) fn first_that_applies(cell: &[String], scope: impl Scope) -> Result<String> {
    let mut missing = Problem::Missing("no alternative".to_owned());
    for template in cell {
        match text(template, scope) {
            Err(Problem::Missing(what)) => missing = Problem::Missing(what),
            other => return other,
        }
    }
    Err(missing)
}

pub(super) fn text(template: &str, scope: impl Scope) -> Result<String> {
    let mut made = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('[') {
        let Some((inside, after)) = after.split_once(']') else {
            return wrong(format!("`[{after}` has no end"));
        };
        made += &Piece::of(before, scope, 0)?.text;
        let mut pieces = vec![Piece::of(inside, scope, 0)?];
        for index in 1..pieces[0].members {
            pieces.push(Piece::of(inside, scope, index)?);
        }
        pieces.retain(|piece| piece.shown);
        made += &pieces
            .into_iter()
            .map(|piece| piece.text)
            .collect::<Vec<_>>()
            .join(", ");
        rest = after;
    }
    Ok(made + &Piece::of(rest, scope, 0)?.text)
}

/// A text without optional parts.
struct Piece {
    text: String,
    /// True if a figure is not 0.
    shown: bool,
    /// The most members that one of its pointers has.
    members: usize,
}

impl Piece {
    /// With the member of this number where a pointer has several.
    fn of(template: &str, scope: impl Scope, index: usize) -> Result<Piece> {
        let mut piece = Piece {
            text: String::new(),
            shown: false,
            members: 0,
        };
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('{') {
            let Some((inside, after)) = after.split_once('}') else {
                return wrong(format!("`{{{after}` has no end"));
            };
            piece.text += before;
            rest = after;
            if let Some(condition) = inside.strip_prefix('?') {
                if value(condition, scope)? == Value::Number(0.0) {
                    return Err(Problem::Missing("no alternative applies".to_owned()));
                }
                continue;
            }
            let (figure, format) = inside.rsplit_once(':').unwrap_or((inside, ""));
            let values = Expression::values(figure, scope)?;
            if let Some(value) = values.get(index).or(values.last()) {
                piece.text += &value.formatted(format)?;
                piece.shown |= matches!(value, Value::Number(number) if *number != 0.0);
            }
            piece.members = piece.members.max(values.len());
        }
        piece.text += rest;
        Ok(piece)
    }
}

/// The value of an expression.
pub(super) fn value(expression: &str, scope: impl Scope) -> Result<Value> {
    only(Expression::values(expression, scope)?)
}

fn only(values: Vec<Value>) -> Result<Value> {
    match <[Value; 1]>::try_from(values) {
        Ok([value]) => Ok(value),
        Err(values) => Err(Problem::Missing(format!("{} members", values.len()))),
    }
}

/// An expression that is read from left to right, and calculated on the way.
struct Expression<'a, S> {
    rest: &'a str,
    scope: S,
}

impl<'a, S: Scope> Expression<'a, S> {
    /// Its value; several if it is a pointer with `*`.
    fn values(text: &'a str, scope: S) -> Result<Vec<Value>> {
        let mut expression = Expression { rest: text, scope };
        let values = expression.level(0)?;
        match expression.rest.trim() {
            "" => Ok(values),
            rest => wrong(format!("`{text}`: `{rest}` is too much")),
        }
    }

    /// Operators of this level and of those that bind more tightly.
    fn level(&mut self, level: usize) -> Result<Vec<Value>> {
        const LEVELS: [&[&str]; 3] = [&["<= ", "< "], &["+ ", "- "], &["* ", "/ "]];
        let Some(operators) = LEVELS.get(level) else {
            return self.operand();
        };
        let mut values = self.level(level + 1)?;
        loop {
            let rest = self.rest.trim_start();
            let Some(operator) = operators
                .iter()
                .find(|operator| rest.starts_with(**operator))
            else {
                return Ok(values);
            };
            self.rest = &rest[operator.len()..];
            let left = only(values)?.number()?;
            let right = only(self.level(level + 1)?)?.number()?;
            values = vec![Value::Number(match *operator {
                "+ " => left + right,
                "- " => left - right,
                "* " => left * right,
                "/ " => left / right,
                "< " => f64::from(left < right),
                _ => f64::from(left <= right),
            })];
        }
    }

    fn operand(&mut self) -> Result<Vec<Value>> {
        self.rest = self.rest.trim_start();
        let word = self.take(|c| !c.is_ascii_alphanumeric() && !"_.".contains(c));
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            let number = Value::Text(word.to_owned()).number()?;
            return Ok(vec![Value::Number(number)]);
        }
        if self.rest.starts_with('/') && !self.rest.starts_with("/ ") {
            return self.scope.pointer(word, self.take(|c| " )".contains(c)));
        }
        if let Some(inside) = self.rest.strip_prefix('(') {
            self.rest = inside;
            let values = self.level(0)?;
            let Some(after) = self.rest.trim_start().strip_prefix(')') else {
                return wrong(format!("no `)` at `{}`", self.rest));
            };
            self.rest = after;
            let sum = || {
                values
                    .iter()
                    .try_fold(0.0, |sum, one| Ok(sum + one.number()?))
            };
            return match word {
                "" => Ok(values),
                "sum" => Ok(vec![Value::Number(sum()?)]),
                "abs" => Ok(vec![Value::Number(sum()?.abs())]),
                _ => wrong(format!("`{word}` is no function")),
            };
        }
        let mut scopes = vec![self.scope];
        let (selectors, name) = word.rsplit_once('.').unwrap_or(("", word));
        for selector in selectors.split('.').filter(|selector| !selector.is_empty()) {
            let selected: Option<Vec<_>> =
                scopes.iter().map(|scope| scope.select(selector)).collect();
            let unknown = || format!("`{selector}` is no run, `first`, `last` or `total`");
            scopes = selected.ok_or_else(|| Problem::Wrong(unknown()))?.concat();
        }
        match scopes[..] {
            [scope] => Ok(vec![scope.name(name)?]),
            _ => {
                let sum = scopes
                    .iter()
                    .try_fold(0.0, |sum, scope| Ok(sum + scope.name(name)?.number()?));
                Ok(vec![Value::Number(sum?)])
            }
        }
    }

    fn take(&mut self, ends: fn(char) -> bool) -> &'a str {
        let (taken, rest) = self
            .rest
            .split_at(self.rest.find(ends).unwrap_or(self.rest.len()));
        self.rest = rest;
        taken
    }
}
