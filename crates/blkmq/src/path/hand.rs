//! Tags that a path holds between taking them from a request and giving them back: for oracles
//! that count every bit of a tag map.

use super::Frame;
use crate::request::HctxId;

/// Bits on their way back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TagsInHand {
    /// From whose maps.
    pub hctx: HctxId,
    /// A driver tag.
    pub driver: Option<u32>,
    /// A scheduler tag.
    pub sched: Option<u32>,
}

impl Frame {
    /// Bits that this path holds and no request does; none for paths that give no tags back.
    pub fn tags_in_hand(&self) -> Option<TagsInHand> {
        match self {
            Frame::Complete(path) => Some(path.tags_in_hand()),
            Frame::Run(path) => path.tags_in_hand(),
            Frame::RequeueRequest(path) => {
                let (hctx, driver) = path.tag_in_hand();
                Some(TagsInHand {
                    hctx,
                    driver,
                    sched: None,
                })
            }
            Frame::Submit(_)
            | Frame::Plug(_)
            | Frame::Insert(_)
            | Frame::Flush(_)
            | Frame::DdInsert(_)
            | Frame::Requeue(_) => None,
        }
    }
}
