//! Values as TLC prints them, of the kinds that steps contain.

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Value {
    /// `3`, and a model value `r3`: a request that TLC may permute.
    Number(u32),
    /// `"Issue"`
    Text(String),
    /// `<<1, 2>>`
    Tuple(Vec<Value>),
    /// `[name |-> value, ...]`
    Record(Vec<(String, Value)>),
}

impl Value {
    /// Parses the whole text; none if it is another kind of value.
    pub(super) fn parse(text: &str) -> Option<Value> {
        let mut rest = text;
        let value = value(&mut rest)?;
        rest.trim().is_empty().then_some(value)
    }
}

fn value(rest: &mut &str) -> Option<Value> {
    if eat(rest, "<<") {
        return Some(Value::Tuple(list(rest, ">>", value)?));
    }
    if eat(rest, "[") {
        return Some(Value::Record(list(rest, "]", field)?));
    }
    if eat(rest, "\"") {
        let (text, behind) = rest.split_once('"')?;
        *rest = behind;
        return Some(Value::Text(text.to_owned()));
    }
    let word = word(rest)?;
    let digits = word.strip_prefix('r').unwrap_or(word);
    digits.parse().ok().map(Value::Number)
}

fn field(rest: &mut &str) -> Option<(String, Value)> {
    let name = word(rest)?.to_owned();
    if !eat(rest, "|->") {
        return None;
    }
    Some((name, value(rest)?))
}

/// Comma-separated, up to `end`.
fn list<T>(rest: &mut &str, end: &str, item: fn(&mut &str) -> Option<T>) -> Option<Vec<T>> {
    let mut items = Vec::new();
    if eat(rest, end) {
        return Some(items);
    }
    loop {
        items.push(item(rest)?);
        if eat(rest, end) {
            return Some(items);
        }
        if !eat(rest, ",") {
            return None;
        }
    }
}

fn eat(rest: &mut &str, token: &str) -> bool {
    match rest.trim_start().strip_prefix(token) {
        Some(behind) => {
            *rest = behind;
            true
        }
        None => false,
    }
}

fn word<'a>(rest: &mut &'a str) -> Option<&'a str> {
    let text = rest.trim_start();
    let end = text.find(|c: char| !is_word(c)).unwrap_or(text.len());
    let (word, behind) = text.split_at(end);
    *rest = behind;
    (!word.is_empty()).then_some(word)
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The text with model values `r1`, `r2` as the numbers that traces have.
pub(super) fn with_numbers(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let plain = rest.find(is_word).unwrap_or(rest.len());
        out.push_str(&rest[..plain]);
        rest = &rest[plain..];
        let end = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        let digits = word.strip_prefix('r').filter(|digits| is_number(digits));
        out.push_str(digits.unwrap_or(word));
        rest = behind;
    }
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
