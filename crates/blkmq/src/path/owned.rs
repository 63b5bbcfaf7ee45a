//! The tags and requests that paths own between two labels, for oracles and checkers: tags that are
//! neither free in the map nor stored in a request, requests between two lists.

use super::list::{Stop, dispatch_rq_list};
use super::pass::do_dispatch_sched;
use super::run::{dispatch_as_one_list, dispatch_requests};
use super::sbitmap::put_tag;
use super::tag::try_get_tag;
use super::{Frame, Path, RequeuePath, RunPath, of_path};
use crate::elevator::{OwnedByInsert, dispatch_request, insert_requests};
use crate::list::QueueList;
use crate::queue::BlkMq;
use crate::request::{HctxId, QueueId, RequestId};
use crate::step::Steps;

/// Tags that are allocated but not yet stored in a request, or already removed from one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OwnedTags {
    pub hctx: HctxId,
    pub driver: Option<u32>,
    pub sched: Option<u32>,
}

impl Frame {
    /// The request that it inserts, until it is in a list that others see.
    pub fn inserts(&self) -> Option<RequestId> {
        match self {
            Frame::Insert(path) => Some(path.inserts()),
            _ => None,
        }
    }

    /// During the restart walk of a completion: the hctx being examined, as queue and number in it.
    pub fn walks_at(&self, mq: &BlkMq) -> Option<(QueueId, HctxId)> {
        match self {
            Frame::Complete(path) => path.walks_at(mq),
            _ => None,
        }
    }

    /// Position of its search for a tag, or of a tag's free, within the label; none if neither is
    /// in progress, or begins with this label.
    pub fn stage(&self) -> Option<&'static str> {
        of_path!(self, path => Path::stage(path))
    }

    /// Tags that this path holds and no request does; none for paths that hold none.
    pub fn owned_tags(&self) -> Option<OwnedTags> {
        match self {
            Frame::Complete(path) => Some(path.owned_tags()),
            Frame::Run(path) => put_tag::State::freed_by(path),
            Frame::RequeueRequest(path) => put_tag::State::freed_by(path),
            Frame::Submit(path) => found_tag(path),
            Frame::Execute(path) => found_tag(path),
            Frame::AllocateClone(path) => found_tag(path),
            // Requests of a batch keep their tags until these are freed.
            Frame::IssueClone(_)
            | Frame::EndBatch(_)
            | Frame::Plug(_)
            | Frame::Issue(_)
            | Frame::Insert(_)
            | Frame::Flush(_)
            | Frame::Requeue(_)
            | Frame::Hook(_)
            | Frame::Map(_)
            | Frame::CloneEnd(_)
            | Frame::MapEnd(_)
            | Frame::MapBio(_)
            | Frame::BioEnd(_)
            | Frame::BioWork(_)
            | Frame::Target(_)
            | Frame::GetToken(_)
            | Frame::PutToken(_)
            | Frame::ResizeTokens(_)
            | Frame::Wait(_)
            | Frame::WakeUp(_)
            | Frame::Suspend(_)
            | Frame::RunQueues(_)
            | Frame::Switch(_)
            | Frame::Timeout(_)
            | Frame::SingleSubmit(_)
            | Frame::SingleRun(_)
            | Frame::SingleEnd(_) => None,
        }
    }
}

/// Requests of a run that are in no list that others see.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OwnedByRun {
    /// The requests that will be offered to the driver, in order.
    pub list: QueueList,
    /// They come from the dispatch list, not from the scheduler.
    pub leftovers: bool,
    /// One of them was issued; only recorded where the rules need it.
    pub moved: bool,
    /// It stopped for lack of a driver tag.
    pub no_tag: bool,
}

impl Frame {
    /// The requests of an insertion into the scheduler at this label; none for other paths.
    pub fn owned_by_insert(&self) -> Option<OwnedByInsert> {
        match self {
            Frame::Insert(path) => Some(path.find::<insert_requests::State>()?.owned()),
            Frame::Plug(path) => Some(path.owned()),
            _ => None,
        }
    }
}

impl RequeuePath {
    /// Requests that the work item has taken off the lists of its queue and not inserted yet, and
    /// those of the flush machine.
    pub fn owned(&self) -> [QueueList; 2] {
        [self.requeue, self.flush]
    }
}

impl RunPath {
    /// The request that a pass picked last, until it is in the list that is offered.
    pub fn owned_pick(&self) -> Option<RequestId> {
        let pass = self.find::<do_dispatch_sched::State>()?;
        let call = self.find::<dispatch_request::State>();
        let picked = call.and_then(dispatch_request::State::picked);
        picked.or(pass.rq_list.last())
    }

    /// All requests that a pass has picked, until they are in the list that is offered.
    pub fn passed(&self) -> QueueList {
        let pass = self.find::<do_dispatch_sched::State>();
        pass.map_or(QueueList::new(), |pass| pass.rq_list)
    }

    /// The requests of the run at this label.
    pub fn owned(&self) -> OwnedByRun {
        let list = self.find::<dispatch_rq_list::State>();
        let run = self.find::<dispatch_requests::State>();
        let old = self.find::<dispatch_as_one_list::State>();
        let taken = run.map(|run| run.list).or(old.map(|run| run.list));
        OwnedByRun {
            list: list.map(|list| list.list).or(taken).unwrap_or_default(),
            leftovers: run.is_some_and(|run| run.leftovers),
            moved: list.is_some_and(|list| list.moved),
            no_tag: list.is_some_and(|list| list.stop == Stop::NoTag),
        }
    }
}

/// A driver tag that was found in a set that queues share, not yet stored in a request.
fn found_tag(path: &impl Steps) -> Option<OwnedTags> {
    let search = path.find::<try_get_tag::State>()?;
    Some(OwnedTags {
        hctx: search.hctx,
        driver: Some(search.bit?),
        sched: None,
    })
}
