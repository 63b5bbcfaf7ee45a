//! lib/rbtree.c and elv_rb_add() beside `blkmq::sort`: the shape of a tree of requests after every
//! change.
//!
//! ```text
//! tree
//! add RQ SECTOR | del RQ | find SECTOR | beside RQ
//! ```

use super::dice::Dice;
use super::part::{Twins, numbers, opened};
use crate::call::PartOp;
use crate::library::{Library, Part};
use blkmq::list::NIL;
use blkmq::rbtree::{LEFT, RIGHT, RbNodes as _};
use blkmq::request::{RequestId, RequestPool, Sector};
use blkmq::sort::SortTree;
use std::sync::Arc;

const REQUESTS: u32 = 256;

pub(super) struct Tree {
    pool: RequestPool,
    ours: SortTree,
    theirs: Part,
    queued: [bool; REQUESTS as usize],
}

impl Tree {
    fn ours(&mut self, word: &str, n: &[u32]) -> String {
        let (tree, pool) = (&mut self.ours, &mut self.pool);
        let say = |found: Option<RequestId>| match found {
            Some(rq) => format!(" {}", rq.0),
            None => " -".to_owned(),
        };
        let mut text = String::new();
        match word {
            "add" => {
                pool[RequestId(n[0])].sector = Sector(n[1].into());
                tree.insert(pool, RequestId(n[0]), Sector(n[1].into()));
            }
            "del" => tree.remove(pool, RequestId(n[0])),
            "find" => {
                text += &say(tree.find(pool, Sector(n[0].into())));
                text += &say(tree.first(pool));
                text += &say(tree.last(pool));
            }
            _ => {
                text += &say(tree.prev(pool, RequestId(n[0])));
                text += &say(tree.next(pool, RequestId(n[0])));
            }
        }
        self.shape(self.ours.tree().root(), &mut text);
        text
    }

    /// As show_below() in `shim/parts.c` prints it.
    fn shape(&self, at: u32, text: &mut String) {
        if at == NIL {
            *text += " -";
            return;
        }
        let node = self.pool.node(at);
        let colour = if node.is_red() { 'r' } else { 'b' };
        *text += &format!(" ({at}{colour}");
        if node.child != [NIL; 2] {
            self.shape(node.child[LEFT], text);
            self.shape(node.child[RIGHT], text);
        }
        text.push(')');
    }
}

impl Twins for Tree {
    fn begin(libraries: &[Arc<Library>], line: &str) -> Option<Tree> {
        (line == "tree").then_some(())?;
        Some(Tree {
            pool: RequestPool::new(REQUESTS as usize, 0),
            ours: SortTree::new(),
            theirs: opened(&libraries[0], 1, [0; 4]),
            queued: [false; REQUESTS as usize],
        })
    }

    fn command(&mut self, line: &str) -> Option<[String; 2]> {
        let (word, n) = numbers(line)?;
        let is_queued = self.queued.get(*n.first()? as usize).copied();
        let op = match (word, n.as_slice(), is_queued) {
            ("add", &[_, _], Some(false)) => PartOp::Add,
            ("del", &[_], Some(true)) => PartOp::Del,
            ("find", &[_], _) => PartOp::Find,
            ("beside", &[_], Some(true)) => PartOp::Beside,
            _ => return None,
        };
        if matches!(op, PartOp::Add | PartOp::Del) {
            self.queued[n[0] as usize] = op == PartOp::Add;
        }
        let arg = [n[0], n.get(1).copied().unwrap_or(0), 0, 0];
        let theirs = self.theirs.call(op, 0, arg, &[]).unwrap_or_else(|e| e);
        Some([self.ours(word, &n), theirs])
    }

    fn first(_dice: &mut Dice) -> String {
        "tree".to_owned()
    }

    fn random(&self, dice: &mut Dice) -> String {
        let queued = self.queued.iter().filter(|&&queued| queued).count() as u64;
        let any = dice.below(u64::from(REQUESTS));
        // Few sectors, so that some are equal.
        let sector = dice.below(40);
        match dice.below(16) {
            0 => format!("find {sector}"),
            1 => format!("beside {any}"),
            // As many as in a queue under load, at times more.
            2.. if dice.below(160) < queued => format!("del {any}"),
            _ => format!("add {any} {sector}"),
        }
    }
}
