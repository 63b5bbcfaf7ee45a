-------------------------- MODULE TraceBfqMergeRuns --------------------------
(* Accepts exactly the behaviours of BfqMerge in TraceData: runs of the simulator, recorded by   *)
(* `blksim run --schedule`. What a step does not show has not changed.                           *)
EXTENDS BfqMerge, Sequences, TraceData, TLC

VARIABLES
  trace,   \* which of them
  steps    \* how many of its steps were accepted

TraceInit ==
  /\ Init
  /\ trace \in 1..Len(Traces)
  /\ steps = 0

(* The action that the trace names, and no other: enumerating all would take as long as there are *)
(* pairs of queues.                                                                               *)
Taken(a) ==
  CASE a.action = "CreateLast" -> CreateLast(a.process)
    [] a.action = "Create" -> Create(a.process)
    [] a.action = "CreateLater" -> CreateLater(a.process)
    [] a.action = "CreateMerged" -> CreateMerged(a.process)
    [] a.action = "Submit" -> Submit(a.process)
    [] a.action = "Complete" -> Complete(a.queue)
    [] a.action = "Redirect" -> Redirect(a.process)
    [] a.action = "Carry" -> Carry(a.process, a.queue)
    [] a.action = "Merge" -> Merge(a.process, a.close)
    [] a.action = "MergeLater" -> MergeLater(a.process)
    [] a.action = "Abort" -> Abort(a.process)
    [] a.action = "Leave" -> Leave(a.process)
    [] a.action = "Keep" -> Keep(a.process)
    [] a.action = "Exit" -> Exit(a.process)
    [] a.action = "Move" -> Move(a.process, a.group)

(* What a step does not show has not changed. *)
Seen(shown) ==
  \A name \in DOMAIN Observed :
    Observed[name]' = IF name \in DOMAIN shown THEN shown[name] ELSE Observed[name]

(* Reports a property that the state after the step breaks. *)
Tell(name, holds) == holds \/ PrintT(<<"broken", trace, steps + 1, name>>)

TraceNext ==
  /\ steps < Len(Traces[trace])
  /\ Taken(Traces[trace][steps + 1].last)
  /\ Seen(Traces[trace][steps + 1].observed)
  /\ steps' = steps + 1
  /\ UNCHANGED trace
  /\ Tell("LiveDeref", LiveDeref')
  /\ Tell("RefExact", RefExact')
  /\ Tell("Acyclic", Acyclic')
  /\ Tell("NoNegative", NoNegative')
  /\ Tell("NoLeak", NoLeak')
  /\ Tell("OwnerValid", OwnerValid')
  /\ Tell("OwnedUnplanned", OwnedUnplanned')
  /\ Tell("PlannedShared", PlannedShared')
  /\ Tell("SameParent", SameParent')
  /\ Tell("CreatedLive", CreatedLive')
  /\ Tell("NeverAllDone", NeverAllDone')
  /\ PrintT(<<"accepted", trace, steps + 1>>)

TraceSpec == TraceInit /\ [][TraceNext]_<<vars, trace, steps>>
=============================================================================
