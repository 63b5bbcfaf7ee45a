//! A path on the stack of a context, whichever it is, and the path of a call.
//!
//! Above all paths: a new one is a line of the list here.

use super::complete::EndHow;
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
use crate::request::{QueueId, RequestId, Status};
use crate::step::{Cx, Next, Steps};

/// Declares the frames of all paths, and which call starts which.
macro_rules! paths {
    (($d:tt) $(
        $(#[$doc:meta])*
        $Frame:ident($Path:ty) $($call:pat => $begins:expr),*;
    )+) => {
        /// A running path.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Frame {
            $($(#[$doc])* $Frame($Path),)+
        }

        /// Calls a function for the path of any frame.
        macro_rules! of_path {
            ($d frame:expr, $d path:ident => $d does:expr) => {
                match $d frame {
                    $(Frame::$Frame($d path) => $d does,)+
                }
            };
        }

        impl Call {
            /// Passes the path to `take`. Each arm calls it by itself, so that it writes a path of
            /// its own size, not a frame of the largest.
            #[inline]
            pub(crate) fn begin(self, mut take: impl FnMut(Frame)) {
                match self {
                    $($($call => take(Frame::$Frame($begins)),)*)+
                }
            }
        }
    };
}

paths! { ($)
    Submit(SubmitPath)
        Call::Submit { queue, bio, then: None } => SubmitPath::new(queue, bio);
    /// A passthrough request.
    Execute(ExecutePath);
    Plug(PlugPath)
        Call::Unplug { queue, why } => PlugPath::new(queue, why);
    /// Direct issue of one request.
    Issue(IssuePath)
        Call::Issue { queue, rq } => IssuePath::new(queue, rq);
    Insert(InsertPath)
        Call::Insert(Inserts { queue, rq, head, bypass, run })
            => InsertPath::new(queue, rq, head, bypass, run);
    Run(RunPath)
        Call::Run { queue, hctx, in_background } => RunPath::new(queue, hctx, in_background);
    RunQueues(RunQueuesPath)
        Call::RunQueues { queue, how } => RunQueuesPath::new(queue, how, 0);
    Complete(CompletePath)
        Call::End { queue, rq, status } => CompletePath::new(queue, rq, status, EndHow::Whole),
        Call::EndBatched { queue, rq }
            => CompletePath::new(queue, rq, Status::Ok, EndHow::Batched),
        Call::Free { queue, rq } => CompletePath::new(queue, rq, Status::Ok, EndHow::Free);
    EndBatch(EndBatchPath);
    Flush(FlushPath)
        Call::Flush { queue, rq } => FlushPath::new(queue, rq);
    Requeue(RequeuePath);
    RequeueRequest(RequeueRequest)
        Call::GiveBack { queue, rq, after } => RequeueRequest::later(queue, rq, after);
    Map(MapPath);
    /// A clone of a request of a mapped queue is allocated.
    AllocateClone(AllocateClone)
        Call::AllocateClone { queue, above } => AllocateClone::new(queue, above);
    IssueClone(IssueClone)
        Call::IssueClone { queue, rq, hctx } => IssueClone::new(queue, rq, hctx);
    CloneEnd(CloneEnd);
    MapEnd(MapEnd);
    MapBio(MapBio)
        Call::MapBio { queue, bio, comes } => MapBio::new(queue, bio, comes);
    BioEnd(BioEnd)
        Call::BioEnd { queue, bio, of } => BioEnd::new(queue, bio, of);
    BioWork(BioWorkPath);
    Target(TargetPath)
        Call::Target { queue, what } => TargetPath::new(queue, what);
    Hook(HookFrame)
        Call::Hook { queue, hook } => HookFrame::new(queue, hook);
    /// A token of a scheduler is taken, freed, or their number changes.
    GetToken(GetToken)
        Call::GetToken { queue, hctx, map } => GetToken::new(queue, hctx, map);
    PutToken(PutToken)
        Call::PutToken { queue, token, owner } => PutToken::new(queue, token, owner);
    ResizeTokens(ResizeTokens)
        Call::ResizeTokens { queue, map, depth } => ResizeTokens::new(queue, map, depth);
    Wait(WaitPath)
        Call::Wait { queue, event } => WaitPath::new(queue, event);
    WakeUp(WakeUpPath)
        Call::WakeUp { queue, which } => WakeUpPath::new(queue, which);
    /// A suspension of a mapped device, or its resume.
    Suspend(SuspendPath);
    Switch(SwitchPath);
    Timeout(TimeoutPath);
    SingleSubmit(SingleSubmit)
        Call::Submit { queue, bio, then: Some(then) } => SingleSubmit::new(queue, bio, then);
    SingleRun(SingleRun)
        Call::SingleRun { queue, by } => SingleRun::new(queue, by);
    SingleEnd(SingleEnd)
        Call::SingleEnd { queue, rq, how } => SingleEnd::new(queue, rq, how);
}
pub(crate) use of_path;

impl From<Call> for Frame {
    fn from(call: Call) -> Frame {
        let mut begun = None;
        call.begin(|frame| begun = Some(frame));
        begun.expect("each call is of a path")
    }
}

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
