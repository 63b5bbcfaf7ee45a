------------------------------ MODULE MCRestart ------------------------------
(* What TLC needs besides the constants of variants/: which requests are alike. *)
EXTENDS Restart, TLC

Symmetry == Permutations(Requests)
=============================================================================
