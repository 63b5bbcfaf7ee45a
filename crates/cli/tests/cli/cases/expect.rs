//! Lines that must hold after a command.

use std::collections::BTreeMap;

use serde_json::Value;

pub(super) struct Printed {
    pub(super) code: Option<i32>,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

type Answer<T> = Result<T, String>;

/// Whether a line holds: of a stream's text, or of the values of JSON.
pub(super) fn holds(line: &str, printed: &Printed, of: &BTreeMap<String, Value>) -> Answer<()> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let right = match word {
        "stdout" => text(rest, &printed.stdout)?,
        "stderr" => text(rest, &printed.stderr)?,
        _ => {
            let tokens = tokens(line);
            let mut reader = Reader {
                tokens: &tokens,
                at: 0,
                printed,
                of,
            };
            let (right, values) = reader.chain()?;
            if !right {
                return Err(values);
            }
            true
        }
    };
    right.then_some(()).ok_or("not so".to_owned())
}

fn text(rule: &str, is: &str) -> Answer<bool> {
    let end = rule.find([' ', '\n']).unwrap_or(rule.len());
    let (word, wanted) = (&rule[..end], rule[end..].trim_start_matches(' '));
    // Indented lines are whole lines.
    let wanted = match wanted.strip_prefix('\n') {
        Some(lines) => format!("{lines}\n"),
        None => wanted.replace("\\n", "\n"),
    };
    if wanted.is_empty() && word != "is" {
        return Err("no text is given".to_owned());
    }
    Ok(match word {
        "has" => in_order(is, &wanted),
        "lacks" => !is.contains(&wanted),
        "begins" => is.starts_with(&wanted),
        "ends" => is.ends_with(&wanted),
        "is" => is == wanted,
        "lines" => number_of(&wanted)? == is.lines().count(),
        "times" => {
            let (times, wanted) = wanted.split_once(' ').ok_or("times NUMBER TEXT")?;
            number_of(times)? == is.matches(wanted).count()
        }
        _ => return Err(format!("unknown word `{word}`")),
    })
}

/// Whether the parts of `a ... b` are there, one after another.
fn in_order(mut is: &str, wanted: &str) -> bool {
    wanted.split(" ... ").all(|part| {
        let at = is.find(part);
        is = &is[at.map_or(0, |at| at + part.len())..];
        at.is_some()
    })
}

fn number_of(text: &str) -> Answer<usize> {
    text.parse().map_err(|_| format!("`{text}` is no number"))
}

/// Words of a line; blanks within quotes or brackets do not part them.
fn tokens(line: &str) -> Vec<String> {
    let (mut all, mut word, mut quote, mut depth) = (Vec::new(), String::new(), None, 0);
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            ('\\', Some('"')) => word.extend([Some(c), chars.next()].into_iter().flatten()),
            (_, Some(open)) => {
                word.push(c);
                quote = (c != open).then_some(open);
            }
            (' ' | '\n', None) if depth == 0 => {
                all.extend((!word.is_empty()).then(|| core::mem::take(&mut word)));
            }
            (c, None) => {
                word.push(c);
                depth += i32::from("[{".contains(c)) - i32::from("]}".contains(c));
                quote = ['"', '\''].into_iter().find(|&q| q == c);
            }
        }
    }
    all.extend((!word.is_empty()).then_some(word));
    all
}

/// Reads an expression; a value that is not there is `None`.
struct Reader<'a> {
    tokens: &'a [String],
    at: usize,
    printed: &'a Printed,
    of: &'a BTreeMap<String, Value>,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<&str> {
        self.at += 1;
        self.tokens.get(self.at - 1).map(String::as_str)
    }

    fn takes(&mut self, words: &[&str]) -> Option<String> {
        let found = self
            .tokens
            .get(self.at)
            .filter(|token| words.contains(&token.as_str()));
        let found = found.cloned();
        self.at += usize::from(found.is_some());
        found
    }

    /// Values with a comparison between each two; whether all hold, and the values.
    fn chain(&mut self) -> Answer<(bool, String)> {
        let may_be_absent = self.tokens.iter().any(|token| token == "absent");
        let mut left = self.sum()?;
        let shown =
            |value: &Option<Value>| value.as_ref().map_or("absent".to_owned(), Value::to_string);
        let (mut right, mut text) = (true, shown(&left));
        if self.at == self.tokens.len() {
            return Err(format!(
                "unknown line, no comparison: {}",
                self.tokens.join(" ")
            ));
        }
        while let Some(operator) = self.next().map(str::to_owned) {
            let next = self.sum()?;
            text += &format!(" {operator} {}", shown(&next));
            if !may_be_absent && (left.is_none() || next.is_none()) {
                return Err(format!("there is no such value: {text}"));
            }
            right &= compare(&operator, left.as_ref(), next.as_ref())
                .ok_or(format!("no comparison: {text}"))?;
            left = next;
        }
        Ok((right, text))
    }

    fn sum(&mut self) -> Answer<Option<Value>> {
        let mut left = self.product()?;
        while let Some(operator) = self.takes(&["+", "-"]) {
            let (a, b) = (number(left.as_ref())?, number(self.product()?.as_ref())?);
            left = Some(Value::from(if operator == "+" { a + b } else { a - b }));
        }
        Ok(left)
    }

    fn product(&mut self) -> Answer<Option<Value>> {
        let mut left = self.atom()?;
        while let Some(operator) = self.takes(&["*", "/"]) {
            let (a, b) = (number(left.as_ref())?, number(self.atom()?.as_ref())?);
            left = Some(Value::from(if operator == "*" { a * b } else { a / b }));
        }
        Ok(left)
    }

    fn atom(&mut self) -> Answer<Option<Value>> {
        let token = self.next().ok_or("the line is cut off")?.to_owned();
        match token.as_str() {
            "absent" => return Ok(None),
            "(" => {
                let inner = self.sum()?;
                return self.takes(&[")"]).map(|_| inner).ok_or("no `)`".to_owned());
            }
            "sum" | "max" | "min" | "len" => {
                let inner = self.atom()?;
                let all: Vec<&Value> = match &inner {
                    Some(Value::Array(all)) => all.iter().collect(),
                    Some(Value::Object(all)) => all.values().collect(),
                    other => return Err(format!("{token} of {other:?}")),
                };
                if token == "len" {
                    return Ok(Some(Value::from(all.len())));
                }
                let all = all.into_iter().map(|value| number(Some(value)));
                let all: Vec<f64> = all.collect::<Answer<_>>()?;
                let of = |with: fn(f64, f64) -> f64| all.iter().copied().reduce(with);
                let folded = match token.as_str() {
                    "sum" => Some(all.iter().sum()),
                    "max" => of(f64::max),
                    _ => of(f64::min),
                };
                return folded
                    .map(|value| Some(Value::from(value)))
                    .ok_or(format!("{token} of nothing"));
            }
            _ => {}
        }
        if let Some((name, steps)) = token
            .split_once('/')
            .filter(|(name, _)| !name.starts_with(['"', '[', '{']))
        {
            let root = match name.strip_suffix(':') {
                Some(name) => self
                    .of
                    .get(name)
                    .cloned()
                    .ok_or(format!("no JSON of `{name}`"))?,
                None if name.is_empty() => {
                    serde_json::from_str(&self.printed.stdout).map_err(|e| e.to_string())?
                }
                None => return Err(format!("unknown word `{token}`")),
            };
            return Ok(point(&root, steps));
        }
        serde_json::from_str(&token)
            .map(Some)
            .map_err(|_| format!("unknown word `{token}`"))
    }
}

fn number(value: Option<&Value>) -> Answer<f64> {
    let number = value.and_then(Value::as_f64);
    number.ok_or(format!("{value:?} is no number"))
}

/// Steps down: a key or a number, `-1` from the end, `key=value` or `key=value&key=value` of the
/// first element with these, `*` for all.
fn point(root: &Value, steps: &str) -> Option<Value> {
    let (mut all, mut many, mut quoted) = (vec![root], false, false);
    let parted = steps.split(|c| {
        quoted ^= c == '\'';
        c == '/' && !quoted
    });
    for step in parted.filter(|step| !step.is_empty()) {
        let step = step.replace('\'', "");
        many |= step == "*";
        let mut below = Vec::new();
        for value in all {
            match value {
                Value::Array(list) if step == "*" => below.extend(list),
                Value::Object(map) if step == "*" => below.extend(map.values()),
                Value::Array(list) if step.contains('=') => {
                    let is = |value: &&Value| step.split('&').all(|of| has_value(value, of));
                    below.push(list.iter().find(is)?);
                }
                Value::Array(list) => {
                    let at: isize = step.parse().ok()?;
                    let at = if at < 0 {
                        list.len().checked_add_signed(at)?
                    } else {
                        at as usize
                    };
                    below.push(list.get(at)?);
                }
                _ => below.push(value.get(&step)?),
            }
        }
        all = below;
    }
    Some(if many {
        Value::Array(all.into_iter().cloned().collect())
    } else {
        all[0].clone()
    })
}

/// Whether an element has this `key=value`.
fn has_value(element: &Value, of: &str) -> bool {
    let (key, wanted) = of.split_once('=').unwrap_or((of, ""));
    match &element[key] {
        Value::String(text) => text == wanted,
        other => *other.to_string() == *wanted,
    }
}

fn same(a: &Value, b: &Value) -> bool {
    let number = |value: &Value| value.as_f64().map(f64::to_bits);
    a == b || number(a).is_some() && number(a) == number(b)
}

fn contains(whole: &Value, part: &Value) -> Option<bool> {
    let within = |whole: &Value| match (whole.as_str(), part.as_str()) {
        (Some(whole), Some(part)) => whole.contains(part),
        _ => same(whole, part),
    };
    match whole {
        Value::Array(all) => Some(all.iter().any(within)),
        Value::Object(all) => Some(all.contains_key(part.as_str()?)),
        Value::String(_) => Some(within(whole)),
        _ => None,
    }
}

/// `None`: these values cannot be compared so. A list against one value: each of its elements.
fn compare(operator: &str, left: Option<&Value>, right: Option<&Value>) -> Option<bool> {
    let (Some(a), Some(b)) = (left, right) else {
        return match operator {
            "=" => Some(left.is_none() && right.is_none()),
            "!=" => Some(left.is_none() != right.is_none()),
            _ => None,
        };
    };
    let each = |all: &[Value], is: &dyn Fn(&Value) -> Option<bool>| {
        let all: Option<Vec<bool>> = all.iter().map(is).collect();
        all.filter(|all| !all.is_empty())
            .map(|all| all.iter().all(|&right| right))
    };
    let order = f64::total_cmp;
    match (operator, a, b) {
        ("has", ..) => contains(a, b),
        ("lacks", ..) => contains(a, b).map(|has| !has),
        ("=", Value::Array(a), Value::Array(b)) => Some(a == b),
        ("!=", Value::Array(a), Value::Array(b)) => Some(a != b),
        (_, Value::Array(all), one) => {
            each(all, &|value| compare(operator, Some(value), Some(one)))
        }
        (_, one, Value::Array(all)) => {
            each(all, &|value| compare(operator, Some(one), Some(value)))
        }
        ("=", ..) => Some(same(a, b)),
        ("!=", ..) => Some(!same(a, b)),
        _ => {
            let (a, b) = (a.as_f64()?, b.as_f64()?);
            let off = (a / b - 1.0).abs() * 100.0;
            let percent = || {
                operator
                    .strip_prefix('~')?
                    .strip_suffix('%')?
                    .parse::<f64>()
                    .ok()
            };
            match operator {
                "<" => Some(order(&a, &b).is_lt()),
                "<=" => Some(order(&a, &b).is_le()),
                ">" => Some(order(&a, &b).is_gt()),
                ">=" => Some(order(&a, &b).is_ge()),
                _ => percent().map(|percent| off <= percent),
            }
        }
    }
}

/// Each kind of line holds, and its mutant beside it does not.
#[test]
fn each_kind_of_line_has_a_mutant_that_fails() {
    let stdout = r#"{"n": 3, "s": "one two", "list": [1, 2], "nul": null, "job options": {"k": "v"},
        "of": [{"name": "a", "n": 10}, {"name": "b", "n": 11}]}"#;
    let printed = Printed {
        code: Some(0),
        stdout: stdout.to_owned(),
        stderr: "a\nb\n".to_owned(),
    };
    let of = BTreeMap::from([("first".to_owned(), serde_json::json!({"n": 4}))]);
    for (right, wrong) in [
        ("stderr has a\\nb", "stderr has c"),
        ("stdout has one ... two", "stdout has two ... one"),
        ("stderr lacks c", "stderr lacks b"),
        ("stderr begins a", "stderr begins b"),
        ("stderr ends b\\n", "stderr ends a\\n"),
        ("stderr is\na\nb", "stderr is\na"),
        ("stderr is a\\nb\\n", "stderr is"),
        ("stderr lines 2", "stderr lines 3"),
        ("stderr times 1 b", "stderr times 2 b"),
        ("stdout has two", "stdout has a\\nb"),
        ("/n = 3", "/n = 4"),
        ("/n != 4", "/n != 3"),
        ("2 < /n <= 3", "3 < /n <= 3"),
        ("/n >= 3 > 2", "/n >= 3.5"),
        ("/n ~5% 3.1", "/n ~3% 3.1"),
        ("/n = 3.0", "/n = \"3\""),
        ("first:/n = /n + 1", "first:/n = /n - 1"),
        ("/n * 2 / 3 = 2", "/n * ( 2 + 1 ) = 7"),
        ("/s = \"one two\"", "/s = \"one\""),
        ("/s has \"two\"", "/s lacks \"two\""),
        ("/list has 2", "/list has 3"),
        ("/list = [1, 2]", "/list = [2, 1]"),
        ("/list > 0", "/list > 1"),
        ("/of/name=b/n = 11", "/of/name=b/n = 10"),
        ("/of/name=b&n=11/n = 11", "/of/name=a&n=11/n = 11"),
        ("/of/*/n < 12", "/of/*/n < 11"),
        ("/of/-1/n = 11", "/of/-1/n = 10"),
        ("/of/*/name = [\"a\", \"b\"]", "/of/*/name = [\"b\", \"a\"]"),
        ("/of/*/name has \"b\"", "/of/*/name has \"c\""),
        ("/'job options'/k = \"v\"", "/'job options'/k = \"w\""),
        ("/'job options' has \"k\"", "/'job options' lacks \"k\""),
        ("sum /list = 3", "sum /list = 4"),
        ("max /of/*/n = 11", "max /of/*/n = 10"),
        ("min /of/*/n = 10", "min /of/*/n = 11"),
        ("len /of = 2", "len / = 2"),
        ("/absent = absent", "/n = absent"),
        ("/nul = null", "/nul = absent"),
        ("/n != absent", "/absent != absent"),
    ] {
        assert_eq!(holds(right, &printed, &of), Ok(()), "{right}");
        assert!(holds(wrong, &printed, &of).is_err(), "{wrong}");
    }
}

#[test]
fn lines_that_say_nothing_are_errors() {
    let printed = Printed {
        code: Some(0),
        stdout: r#"{"n": 3, "list": [], "of": [{"name": "a"}]}"#.to_owned(),
        stderr: String::new(),
    };
    let of = BTreeMap::new();
    for (line, what) in [
        ("stdout says x", "unknown word `says`"),
        ("stdout has", "no text is given"),
        ("/n", "no comparison"),
        ("/n ~ 5", "no comparison"),
        ("/n is 5", "no comparison"),
        ("/m = 5", "there is no such value"),
        ("/m != 5", "there is no such value"),
        ("/m = /o", "there is no such value"),
        ("/n = five", "unknown word `five`"),
        ("other:/n = 5", "no JSON of `other`"),
        ("/n + = 5", "unknown word `=`"),
        ("max /of/0 = 1", "is no number"),
        ("/list has", "the line is cut off"),
        ("exit one", "unknown word `exit`"),
    ] {
        let why = holds(line, &printed, &of).expect_err(line);
        assert!(why.contains(what), "{line}: {why}");
    }
}
