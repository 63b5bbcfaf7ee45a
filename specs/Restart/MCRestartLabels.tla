--------------------------- MODULE MCRestartLabels ---------------------------
(* What TLC needs besides the constants of variants/-labels: each request comes once, in order. *)
EXTENDS RestartLabels, TLC

Lowest(r) == state[r] = "new" /\ \A s \in Requests : state[s] = "new" => r <= s

labelView == <<view, asked, ending>>
=============================================================================
