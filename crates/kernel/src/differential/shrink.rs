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
    words(script, differs)
}

/// Leaves out single words: properties of requests, settings of the queue.
fn words(mut script: Vec<String>, differs: impl Fn(&[String]) -> bool) -> Vec<String> {
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
