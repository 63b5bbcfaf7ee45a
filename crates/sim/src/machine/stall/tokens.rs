//! Hctxs that wait for a token of their scheduler: the kind of token, and whether any is free.

use blkmq::queue::{RequestQueue, TokenMap};
use blkmq::request::HctxId;

/// Of a queue's hctxs, each of which has a name.
pub(super) fn token_waits(queue: &RequestQueue, name: impl Fn(HctxId) -> String) -> Vec<String> {
    let scheduler = queue.settings.scheduler.name();
    let of_map = |tokens: &TokenMap| {
        let (what, depth) = (tokens.info.name, tokens.map.depth());
        let taken = tokens.map.busy_count();
        let hctxs = (0..).map(HctxId).zip(&tokens.waits);
        let waiting = hctxs.filter(|(_, wait)| wait.queued.peek());
        let line = |(hctx, _)| {
            let hctx = name(hctx);
            format!("{hctx} waits for a {what} of {scheduler}, {taken} of {depth} are taken")
        };
        waiting.map(line).collect::<Vec<_>>()
    };
    queue.tokens.iter().flat_map(of_map).collect()
}
