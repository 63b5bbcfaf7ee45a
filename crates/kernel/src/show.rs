//! The state of a scheduler in C as text, in the words of blkmq's own (`Scheduler::show`), from its
//! files in debugfs: so that both can be compared.

use crate::call::Op as Entry;
use crate::policy::Policy;
use blkmq::request::{RequestId, RequestPool};
use std::ffi::CString;
use std::fmt::Write;

impl Policy {
    /// What mq-deadline's debugfs shows; nothing for schedulers without these files.
    pub(crate) fn shown_state(&self, pool: &RequestPool) -> String {
        if let Some(text) = self.shown_tokens(pool) {
            return text;
        }
        if self.has_single_queues() {
            return self.shown_lists(pool);
        }
        let file = |name: &str| {
            let name = CString::new(name).expect("a constant");
            self.file(Entry::Debugfs, &name)
        };
        let number = |name: &str| Some(file(name)?.trim().to_owned());
        let (Some(batching), Some(starved)) = (number("batching"), number("starved")) else {
            return String::new();
        };
        let numbers = |name: &str| {
            let numbers = number(name)?;
            let numbers = numbers.split(' ').map(|word| word.parse::<u32>().ok());
            numbers.collect::<Option<Vec<u32>>>()
        };
        let mut text = format!("batching={batching} starved={starved}");
        if let Some(Ok(id)) = number("last_merge").map(|id| id.parse().map(RequestId)) {
            let _ = write!(text, " last_merge={}", pool[id]);
        }
        text.push('\n');
        let mut list = |name: &str, file: Option<String>, deadlines: bool| {
            let ids = file.unwrap_or_default();
            let mut ids = ids.split_whitespace().peekable();
            if ids.peek().is_none() {
                return;
            }
            let _ = write!(text, "{name}:");
            for line in ids {
                let (id, deadline) = line.split_once('@').unwrap_or((line, ""));
                let rq = RequestId(id.parse().expect("the shim prints numbers"));
                let _ = write!(text, " {}", pool[rq]);
                if deadlines {
                    let _ = write!(text, "@{deadline}");
                }
            }
            text.push('\n');
        };
        list("at_head", file("dispatch"), false);
        for (level, name) in ["rt", "be", "idle"].into_iter().enumerate() {
            list(
                &format!("{name} at_head"),
                file(&format!("dispatch{level}")),
                false,
            );
            for dir in ["read", "write"] {
                let fifo = file(&format!("{dir}{level}_fifo_list"));
                list(&format!("{name} {dir} fifo"), fifo, true);
            }
        }
        if let (Some(queued), Some(gone)) = (numbers("queued"), numbers("owned_by_driver")) {
            // Both without those that have finished, which C has not counted yet.
            let here = queued
                .iter()
                .zip(gone)
                .map(|(queued, gone)| queued.wrapping_sub(gone));
            let here: Vec<String> = here.map(|count| count.to_string()).collect();
            let _ = writeln!(text, "counted: {}", here.join(" "));
        }
        if let Some(depth) = number("async_depth") {
            let _ = writeln!(text, "async_depth={depth}");
        }
        text
    }

    /// The lists of requests of a kernel without debugfs.
    fn shown_lists(&self, pool: &RequestPool) -> String {
        let lists = self.file(Entry::Debugfs, c"lists").unwrap_or_default();
        let lists = lists.lines().map(|line| {
            let ids = line.split_whitespace().map(str::parse);
            let rqs = ids.map(|id| format!(" {}", pool[RequestId(id.expect("a number"))]));
            format!("list:{}\n", rqs.collect::<Vec<_>>().join(","))
        });
        lists.collect()
    }

    /// What kyber's debugfs shows, the lists of its ctx queues, and its trace events since the last
    /// call of this; none for schedulers without these files.
    fn shown_tokens(&self, pool: &RequestPool) -> Option<String> {
        let named = |hctx: u32, name: String| {
            let name = CString::new(name).expect("a constant");
            self.file_of(hctx, Entry::Debugfs, &name)
        };
        named(0, "read_tokens".to_owned())?;
        let requests = |line: &str| {
            let ids = line.split_whitespace().map(|id| id.split('@').next());
            let ids = ids.map(|id| RequestId(id.and_then(|id| id.parse().ok()).expect("a number")));
            ids.map(|rq| format!(" {}", pool[rq])).collect::<String>()
        };
        let hctxs = 0..self.hctxs();
        let mut text = format!("async_depth {}", named(0, "async_depth".to_owned())?);
        for domain in ["read", "write", "discard", "other"] {
            let tokens = named(0, format!("{domain}_tokens"))?;
            let of_map = |line: &&str| {
                let beside = ["round_robin", "min_shallow_depth", "ws={", "\t", "}"];
                !beside.iter().any(|word| line.starts_with(word))
            };
            let values: Vec<&str> = tokens.lines().filter(of_map).collect();
            let waits = tokens.lines().filter(|line| line.starts_with('\t'));
            let waits = waits.map(|line| if line.contains("=active") { '1' } else { '0' });
            let waits: String = waits.collect();
            let name = domain.to_uppercase();
            let _ = writeln!(text, "{name} {} ws={waits}", values.join(" "));
            for hctx in hctxs.clone() {
                if named(hctx, format!("{domain}_waiting"))? != "0\n" {
                    let _ = writeln!(text, "hctx {hctx} waits for {name}");
                }
            }
        }
        for hctx in hctxs {
            let number = |name: &str| Some(named(hctx, name.to_owned())?.trim().to_owned());
            let (domain, batching) = (number("cur_domain")?, number("batching")?);
            let _ = writeln!(
                text,
                "hctx {hctx}: cur_domain {domain}, batching {batching}"
            );
            for domain in ["read", "write", "discard", "other"] {
                let flushed = requests(&named(hctx, format!("{domain}_rqs"))?);
                if !flushed.is_empty() {
                    let _ = writeln!(text, "hctx {hctx} {}:{flushed}", domain.to_uppercase());
                }
            }
        }
        for line in named(0, "lists".to_owned())?.lines() {
            let _ = writeln!(text, "list:{}", requests(line));
        }
        for line in self.take_events().lines() {
            let _ = writeln!(text, "event: {line}");
        }
        Some(text)
    }
}
