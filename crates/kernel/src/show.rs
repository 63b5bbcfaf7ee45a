//! The state of a scheduler in C as text, in the words of blkmq's own (`Scheduler::show`), from its
//! files in debugfs: so that both can be compared.

use crate::library::Op as Entry;
use crate::policy::Policy;
use blkmq::request::{RequestId, RequestPool};
use std::ffi::CString;
use std::fmt::Write;

impl Policy {
    /// What mq-deadline's debugfs shows; nothing for schedulers without these files.
    pub(crate) fn shown_state(&self, pool: &RequestPool) -> String {
        let file = |name: &str| {
            let name = CString::new(name).expect("a constant");
            self.file(Entry::Debugfs, &name)
        };
        let number = |name: &str| Some(file(name)?.trim().to_owned());
        let (Some(batching), Some(starved)) = (number("batching"), number("starved")) else {
            return String::new();
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
        text
    }
}
