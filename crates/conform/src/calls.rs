//! The return of a call: the scheduler decides, now or as planned.

mod decision;
