//! A path on the stack of a context, whichever it is, and the path of a call.
//!
//! Above all paths: a new one has its variant, its arm and its line here.

use super::{
    AllocateClone, BioEnd, BioWorkPath, CloneEnd, CompletePath, EndBatchPath, ExecutePath,
    FlushPath, GetToken, HookFrame, InsertPath, IssueClone, IssuePath, MapBio, MapEnd, MapPath,
    PlugPath, PutToken, RequeuePath, RequeueRequest, ResizeTokens, RunPath, RunQueuesPath,
    SingleEnd, SingleRun, SingleSubmit, SubmitPath, SuspendPath, SwitchPath, TargetPath,
    TimeoutPath, WaitPath, WakeUpPath,
};
use crate::call::{Call, Inserts};
use crate::elevator::insert_requests;
use crate::names::Label;
use crate::request::{QueueId, RequestId};
use crate::step::{Cx, Next, Steps};

impl Call {
    /// Passes the path to `take`. Each arm calls it by itself, so that it writes a path of its own
    /// size, not a frame of the largest.
    #[inline]
    pub(crate) fn begin(self, mut take: impl FnMut(Frame)) {
        match self {
            Call::Run {
                queue,
                hctx,
                in_background,
            } => take(Frame::Run(RunPath::new(queue, hctx, in_background))),
            Call::RunQueues { queue, how } => {
                take(Frame::RunQueues(RunQueuesPath::new(queue, how, 0)));
            }
            Call::End { queue, rq, status } => {
                take(Frame::Complete(CompletePath::end(queue, rq, status)));
            }
            Call::EndBatched { queue, rq } => {
                take(Frame::Complete(CompletePath::end_batched(queue, rq)));
            }
            Call::Free { queue, rq } => take(Frame::Complete(CompletePath::free(queue, rq))),
            Call::Flush { queue, rq } => take(Frame::Flush(FlushPath::new(queue, rq))),
            Call::Insert(Inserts {
                queue,
                rq,
                head,
                bypass,
                run,
            }) => take(Frame::Insert(InsertPath::new(queue, rq, head, bypass, run))),
            Call::Unplug { queue, why } => take(Frame::Plug(PlugPath::new(queue, why))),
            Call::Hook { queue, hook } => take(Frame::Hook(HookFrame::new(queue, hook))),
            Call::GetToken { queue, hctx, map } => {
                take(Frame::GetToken(GetToken::new(queue, hctx, map)));
            }
            Call::PutToken {
                queue,
                token,
                owner,
            } => take(Frame::PutToken(PutToken::new(queue, token, owner))),
            Call::ResizeTokens { queue, map, depth } => {
                take(Frame::ResizeTokens(ResizeTokens::new(queue, map, depth)));
            }
            Call::Wait { queue, event } => take(Frame::Wait(WaitPath::new(queue, event))),
            Call::WakeUp { queue, which } => {
                take(Frame::WakeUp(WakeUpPath::new(queue, which)));
            }
            Call::Target { queue, what } => take(Frame::Target(TargetPath::new(queue, what))),
            Call::Issue { queue, rq } => take(Frame::Issue(IssuePath::new(queue, rq))),
            Call::AllocateClone { queue, above } => {
                take(Frame::AllocateClone(AllocateClone::new(queue, above)));
            }
            Call::IssueClone { queue, rq, hctx } => {
                take(Frame::IssueClone(IssueClone::new(queue, rq, hctx)));
            }
            Call::GiveBack { queue, rq, after } => {
                take(Frame::RequeueRequest(RequeueRequest::later(
                    queue, rq, after,
                )));
            }
            Call::Submit { queue, bio, then } => match then {
                None => take(Frame::Submit(SubmitPath::new(queue, bio))),
                Some(then) => take(Frame::SingleSubmit(SingleSubmit::new(queue, bio, then))),
            },
            Call::MapBio { queue, bio, comes } => {
                take(Frame::MapBio(MapBio::new(queue, bio, comes)));
            }
            Call::BioEnd { queue, bio, of } => take(Frame::BioEnd(BioEnd::new(queue, bio, of))),
            Call::SingleRun { queue, by } => take(Frame::SingleRun(SingleRun::new(queue, by))),
            Call::SingleEnd { queue, rq, how } => {
                take(Frame::SingleEnd(SingleEnd::new(queue, rq, how)));
            }
        }
    }
}

impl From<Call> for Frame {
    fn from(call: Call) -> Frame {
        let mut begun = None;
        call.begin(|frame| begun = Some(frame));
        begun.expect("each call is of a path")
    }
}

/// A running path.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Frame {
    Submit(SubmitPath),
    /// A passthrough request.
    Execute(ExecutePath),
    Plug(PlugPath),
    /// Direct issue of one request.
    Issue(IssuePath),
    Insert(InsertPath),
    Run(RunPath),
    RunQueues(RunQueuesPath),
    Complete(CompletePath),
    EndBatch(EndBatchPath),
    Flush(FlushPath),
    Requeue(RequeuePath),
    RequeueRequest(RequeueRequest),
    Map(MapPath),
    /// A clone of a request of a mapped queue is allocated.
    AllocateClone(AllocateClone),
    IssueClone(IssueClone),
    CloneEnd(CloneEnd),
    MapEnd(MapEnd),
    MapBio(MapBio),
    BioEnd(BioEnd),
    BioWork(BioWorkPath),
    Target(TargetPath),
    Hook(HookFrame),
    /// A token of a scheduler is taken, freed, or their number changes.
    GetToken(GetToken),
    PutToken(PutToken),
    ResizeTokens(ResizeTokens),
    Wait(WaitPath),
    WakeUp(WakeUpPath),
    /// A suspension of a mapped device, or its resume.
    Suspend(SuspendPath),
    Switch(SwitchPath),
    Timeout(TimeoutPath),
    SingleSubmit(SingleSubmit),
    SingleRun(SingleRun),
    SingleEnd(SingleEnd),
}

/// Calls a function for the path of any frame.
macro_rules! of_path {
    ($frame:expr, $path:ident => $does:expr) => {
        match $frame {
            Frame::Submit($path) => $does,
            Frame::Execute($path) => $does,
            Frame::Plug($path) => $does,
            Frame::Issue($path) => $does,
            Frame::Insert($path) => $does,
            Frame::Run($path) => $does,
            Frame::RunQueues($path) => $does,
            Frame::Complete($path) => $does,
            Frame::EndBatch($path) => $does,
            Frame::Flush($path) => $does,
            Frame::Requeue($path) => $does,
            Frame::RequeueRequest($path) => $does,
            Frame::AllocateClone($path) => $does,
            Frame::IssueClone($path) => $does,
            Frame::Map($path) => $does,
            Frame::CloneEnd($path) => $does,
            Frame::MapEnd($path) => $does,
            Frame::MapBio($path) => $does,
            Frame::BioEnd($path) => $does,
            Frame::BioWork($path) => $does,
            Frame::Target($path) => $does,
            Frame::Hook($path) => $does,
            Frame::GetToken($path) => $does,
            Frame::PutToken($path) => $does,
            Frame::ResizeTokens($path) => $does,
            Frame::Wait($path) => $does,
            Frame::WakeUp($path) => $does,
            Frame::Suspend($path) => $does,
            Frame::Switch($path) => $does,
            Frame::Timeout($path) => $does,
            Frame::SingleSubmit($path) => $does,
            Frame::SingleRun($path) => $does,
            Frame::SingleEnd($path) => $does,
        }
    };
}
pub(crate) use of_path;

impl Frame {
    /// The label that the next step executes.
    pub fn label(&self) -> Label {
        of_path!(self, path => Path::label(path))
    }

    /// The request that it is about to end, until its first label has run.
    pub fn ends(&self) -> Option<RequestId> {
        match self {
            Frame::Complete(path) => path.about_to_end(),
            Frame::SingleEnd(path) => path.about_to_end(),
            Frame::CloneEnd(path) => path.about_to_end(),
            Frame::MapEnd(path) => path.about_to_end(),
            _ => None,
        }
    }

    /// It may access its queue's scheduler though the queue may have no user left: a run within an
    /// RCU section, a hook, the end of an insertion. The scheduler is not exchanged meanwhile.
    pub fn reads_scheduler(&self) -> bool {
        match self {
            Frame::Run(path) => path.in_section(),
            Frame::Insert(path) => path.find::<insert_requests::State>().is_some(),
            Frame::Hook(_) | Frame::GetToken(_) | Frame::PutToken(_) | Frame::ResizeTokens(_) => {
                true
            }
            _ => false,
        }
    }

    /// synchronize_rcu() waits for it: it may access its queue's scheduler, or offer the driver a
    /// request, after it has seen a queue that was not stopped; or map a bio, after it has seen a
    /// device that was not suspended (synchronize_srcu()).
    pub fn holds_up_grace(&self) -> bool {
        match self {
            Frame::Run(path) => path.in_stopped_section(),
            Frame::Plug(path) => path.in_section(),
            Frame::Issue(path) => path.in_section(),
            Frame::MapBio(path) => path.in_section(),
            Frame::BioWork(path) => path.in_section(),
            other => other.reads_scheduler(),
        }
    }

    /// Number of its queue.
    pub fn queue(&self) -> QueueId {
        of_path!(self, path => path.queue)
    }
}

/// Operations of every path: `#[steps(path)]` implements them.
pub(crate) trait Path {
    /// The label that the next step executes.
    fn label(&self) -> Label;
    /// Its queue. A path that turns to another one changes that of its `Cx`, too.
    fn queue(&self) -> QueueId;
    /// The name of its stage within that label: of the search for a tag, or of a tag's free; none
    /// if neither is in progress, or begins with the label.
    fn stage(&self) -> Option<&'static str>;
    fn step(&mut self, cx: &mut Cx<'_>) -> Next;
}

impl Path for Frame {
    fn label(&self) -> Label {
        self.label()
    }

    fn queue(&self) -> QueueId {
        self.queue()
    }

    fn stage(&self) -> Option<&'static str> {
        self.stage()
    }

    #[inline]
    fn step(&mut self, cx: &mut Cx<'_>) -> Next {
        of_path!(self, path => Path::step(path, cx))
    }
}
