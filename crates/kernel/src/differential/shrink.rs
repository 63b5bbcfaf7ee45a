//! The shortest script that still shows a difference: without commands, then with smaller numbers.

/// Leaves out parts of a script, halves first, while `differs` holds. The first command stays.
pub(super) fn shrink(mut script: Vec<String>, differs: impl Fn(&[String]) -> bool) -> Vec<String> {
    let mut part = script.len() / 2;
    while part > 0 {
        let mut at = 1;
        let mut left_out = false;
        while at < script.len() {
            let end = (at + part).min(script.len());
            let mut without = script.clone();
            without.drain(at..end);
            if without.len() > 1 && differs(&without) {
                script = without;
                left_out = true;
            } else {
                at = end;
            }
        }
        if part > 1 || !left_out {
            part /= 2;
        }
    }
    let script = words(script, &differs);
    numbers(script, &differs)
}

/// Leaves out single words: properties of requests, settings of the queue.
fn words(mut script: Vec<String>, differs: &impl Fn(&[String]) -> bool) -> Vec<String> {
    for at in 0..script.len() {
        let mut word = 1;
        while word < script[at].split(' ').count() {
            let mut without = script.clone();
            let left = script[at]
                .split(' ')
                .enumerate()
                .filter(|&(i, _)| i != word);
            without[at] = left.map(|(_, text)| text).collect::<Vec<_>>().join(" ");
            let needed = ["rules=", "hz=", "scheduler="];
            let text = script[at].split(' ').nth(word).unwrap_or_default();
            if needed.iter().all(|name| !text.starts_with(name)) && differs(&without) {
                script = without;
            } else {
                word += 1;
            }
        }
    }
    script
}

/// Makes numbers smaller that a word begins with, but for those of the first line.
fn numbers(mut script: Vec<String>, differs: &impl Fn(&[String]) -> bool) -> Vec<String> {
    for at in 1..script.len() {
        let mut word = 0;
        while word < script[at].split(' ').count() {
            match smaller(&script, (at, word), differs) {
                Some(with) => script = with,
                None => word += 1,
            }
        }
    }
    script
}

/// The script with a smaller number in this place, if it still shows a difference.
fn smaller(
    script: &[String],
    (line, word): (usize, usize),
    differs: &impl Fn(&[String]) -> bool,
) -> Option<Vec<String>> {
    let mut words: Vec<String> = script[line].split(' ').map(str::to_owned).collect();
    let text = words[word].clone();
    let end = text.find(|c: char| !c.is_ascii_digit());
    let (digits, rest) = text.split_at(end.unwrap_or(text.len()));
    let number: u64 = digits.parse().ok()?;
    // Never one by one from a large number.
    let tried = [0, 1, number / 2, number - number.div_ceil(8)];
    let mut tried = tried.into_iter().filter(|&other| other < number);
    tried.find_map(|other| {
        words[word] = format!("{other}{rest}");
        let mut with = script.to_vec();
        with[line] = words.join(" ");
        differs(&with).then_some(with)
    })
}
