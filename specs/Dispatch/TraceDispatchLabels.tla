------------------------- MODULE TraceDispatchLabels -------------------------
(* Accepts exactly the behaviours of DispatchLabels in TraceData: runs of the simulator, recorded *)
(* by `blksim run --schedule`. What a step does not show has not changed.                         *)
EXTENDS DispatchLabels, TraceData, TLC

VARIABLES
  trace,   \* which of them
  steps    \* how many of its steps were accepted

TraceInit ==
  /\ LabelsInit
  /\ trace \in 1..Len(Traces)
  /\ steps = 0

Before(name, p) ==
  CASE name = "MergeAsk" -> MergeAsk(p)
    [] name = "MergeLock" -> MergeLock(p)
    [] name = "Merge" -> Merge(p)
    [] name = "AppendSide" -> LAppendSide(p)
    [] name = "Note" -> LNote(p)
    [] name = "TryLock" -> LTryLock(p)
    [] name = "TryLate" -> TryLate(p)
    [] name = "Busy" -> LBusy(p)
    [] name = "Count" -> LCount(p)
    [] name = "Marked" -> LMarked(p)
    [] name = "Mark" -> LMark(p)
    [] name = "Fill" -> LFill(p)
    [] name = "Recount" -> LRecount(p)
    [] name = "Still" -> LStill(p)
    [] name = "Lock" -> LLock(p)
InLock(name, p) ==
  CASE name = "Begin" -> LBegin(p)
    [] name = "Insert" -> LInsert(p)
    [] name = "Filled" -> LFilled(p)
    [] name = "Claim" -> LClaim(p)
    [] name = "Look" -> LLook(p)
    [] name = "Collect" -> LCollect(p)
    [] name = "End" -> LEnd(p)
    [] name = "Again" -> LAgain(p)
    [] name = "Unlock" -> LUnlock(p)
    [] name = "LateEnd" -> LLateEnd(p)
Running(name, p) ==
  CASE name = "Glance" -> Glance(p)
    [] name = "GlanceSide" -> GlanceSide(p)
    [] name = "Recheck" -> Recheck(p)
    [] name = "LeaveRun" -> LeaveRun(p)
    [] name = "HasWork" -> LHasWork(p)
    [] name = "HasSide" -> HasSide(p)
    [] name = "Gate" -> LGate(p)
    [] name = "ShutGate" -> LShutGate(p)
    [] name = "PickLock" -> LPickLock(p)
    [] name = "TakeSide" -> LTakeSide(p)
    [] name = "InsertSide" -> InsertSide(p)
    [] name = "Pick" -> LPick(p)
    [] name = "OpenGate" -> LOpenGate(p)
    [] name = "Offer" -> LOffer(p)
    [] name = "DelayRuns" -> LDelayRuns(p)

BeforeLock == {"MergeAsk", "MergeLock", "Merge", "AppendSide", "Note", "TryLock", "TryLate", "Busy",
               "Count", "Marked", "Mark", "Fill", "Recount", "Still", "Lock"}
UnderLock == {"Begin", "Insert", "Filled", "Claim", "Look", "Collect", "End", "Again", "Unlock",
              "LateEnd"}

(* The action that the trace names, and no other: enumerating all would take as long as there are *)
(* processes and requests.                                                                        *)
Taken(a) ==
  CASE a.action = "Submit" ->
         /\ a.process \in Process
         /\ a.request \in Request
         /\ LSubmit(a.process, a.request)
    [] a.action = "Complete" -> a.request \in Request /\ LComplete(a.request)
    [] a.action = "Fire" -> LFire
    [] OTHER ->
         /\ a.process \in Process
         /\ CASE a.action \in BeforeLock -> Before(a.action, a.process)
              [] a.action \in UnderLock -> InLock(a.action, a.process)
              [] OTHER -> Running(a.action, a.process)

Seen(shown) ==
  \A name \in DOMAIN LabelsObserved :
    LabelsObserved[name]' = IF name \in DOMAIN shown THEN shown[name] ELSE LabelsObserved[name]

(* Reports a property that the state after the step breaks; a stall is the end. *)
Tell(name, holds) == holds \/ PrintT(<<"broken", trace, steps + 1, name>>)

TraceNext ==
  /\ steps < Len(Traces[trace])
  /\ Taken(Traces[trace][steps + 1].last)
  /\ Seen(Traces[trace][steps + 1].observed)
  /\ steps' = steps + 1
  /\ UNCHANGED trace
  /\ Tell("NoStall", LabelsNoStall')
  /\ Tell("NothingLost", LabelsNothingLost')
  /\ Tell("LockExact", LabelsLockExact')
  /\ Tell("NeverAllDone", LabelsNeverAllDone')
  /\ PrintT(<<"accepted", trace, steps + 1>>)

TraceSpec == TraceInit /\ [][TraceNext]_<<labelVars, trace, steps>>
=============================================================================
