------------------------- MODULE TraceRestartLabels --------------------------
(* Accepts exactly the behaviours of RestartLabels in TraceData: runs of the simulator, recorded *)
(* by `blksim run --schedule`. What a step does not show has not changed.                        *)
EXTENDS RestartLabels, TraceData, TLC

VARIABLES
  trace,   \* which of them
  steps    \* how many of its steps were accepted

TraceInit ==
  /\ LabelsInit
  /\ trace \in 1..Len(Traces)
  /\ steps = 0

OnRequest == {"InsertSched", "InsertBypass"}
OnContext == {"Start", "StartOne", "Mark", "SetMark", "Count", "Issue", "Miss", "InLine", "Line", "Retry",
              "Stale", "Leave", "PutBack", "Recheck", "StillInLine", "Ask"}

Insertion(name, r, h) ==
  CASE name = "InsertSched" -> LInsertSched(r, h)
    [] name = "InsertBypass" -> LInsertBypass(r, h)
Running(name, h, c) ==
  CASE name = "Start" -> LStart(h, c)
    [] name = "StartOne" -> StartOne(h, c)
    [] name = "Mark" -> LMark(h, c)
    [] name = "SetMark" -> SetMark(h, c)
    [] name = "Count" -> LCount(h, c)
    [] name = "Issue" -> LIssue(h, c)
    [] name = "Miss" -> Miss(h, c)
    [] name = "InLine" -> InLine(h, c)
    [] name = "Line" -> Line(h, c)
    [] name = "Retry" -> LRetry(h, c)
    [] name = "Stale" -> Stale(h, c)
    [] name = "Leave" -> Leave(h, c)
    [] name = "PutBack" -> LPutBack(h, c)
    [] name = "Recheck" -> Recheck_(h, c)
    [] name = "StillInLine" -> StillInLine(h, c)
    [] name = "Ask" -> LAsk(h, c)
Completion(name, r) ==
  CASE name = "Free" -> LFree(r)
    [] name = "Waking" -> Waking(r)
    [] name = "Wake" -> Wake(r)
    [] name = "Gate" -> Gate(r)
    [] name = "Clear" -> Clear(r)
    [] name = "ClearFlag" -> ClearFlag(r)
    [] name = "Visit" -> Visit(r)
    [] name = "Unmark" -> Unmark(r)
    [] name = "Uncount" -> Uncount(r)
    [] name = "SeesDispatch" -> SeesDispatch(r)
    [] name = "SeesWork" -> SeesWork(r)

(* The action that the trace names, and no other: enumerating all would take as long as there are *)
(* requests.                                                                                      *)
Taken(a) ==
  IF a.action \in OnRequest THEN Insertion(a.action, a.request, a.hctx)
  ELSE IF a.action \in OnContext THEN Running(a.action, a.hctx, a.context)
  ELSE Completion(a.action, a.request)

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
  /\ Tell("NoStall", NoStall')
  /\ Tell("TagsExact", TagsExact')
  /\ Tell("CountersExact", LabelsCountersExact')
  /\ Tell("NothingLost", NothingLost')
  /\ Tell("NeverAllDone", LabelsNeverAllDone')
  /\ PrintT(<<"accepted", trace, steps + 1>>)

TraceSpec == TraceInit /\ [][TraceNext]_<<labelVars, trace, steps>>
=============================================================================
