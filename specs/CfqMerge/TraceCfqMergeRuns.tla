-------------------------- MODULE TraceCfqMergeRuns --------------------------
(* Accepts exactly the behaviours of CfqMerge in TraceData: runs of the simulator, recorded by   *)
(* `blksim run --schedule`. What a step does not show has not changed.                           *)
EXTENDS CfqMerge, Sequences, TraceData, TLC

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
  CASE a.action = "Create" -> Create(a.process)
    [] a.action = "Submit" -> Submit(a.process)
    [] a.action = "Redirect" -> Redirect(a.process)
    [] a.action = "Leave" -> Leave(a.process)
    [] a.action = "SubmitAsync" -> SubmitAsync(a.process)
    [] a.action = "RedirectAsync" -> RedirectAsync(a.process)
    [] a.action = "Complete" -> Complete(a.queue)
    [] a.action = "Exit" -> Exit(a.process)
    [] a.action = "Move" -> Move(a.process)
    [] a.action = "Merge" -> Merge(a.current, a.close)

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
  /\ Tell("NoNegative", NoNegative')
  /\ Tell("Acyclic", Acyclic')
  /\ Tell("NoLeak", NoLeak')
  /\ Tell("NeverAllDone", NeverAllDone')
  /\ PrintT(<<"accepted", trace, steps + 1>>)

TraceSpec == TraceInit /\ [][TraceNext]_<<vars, trace, steps>>
=============================================================================
