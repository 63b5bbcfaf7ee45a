//! Tokens of a scheduler: bitmaps of its own; a request needs a bit to be dispatched.
//!
//! The scheduler decides which requests need one, and when it is put; the maps and their wait
//! queues are in `queue/tokens.rs`, get and put in `path/token.rs`. Kernel: domain_tokens of
//! block/kyber-iosched.c (6.1.192, 6.12.117).

#[derive(PartialEq, Eq, Hash, Debug)]
pub struct ElevatorTokens {
    /// Name in reports: "read token".
    pub name: &'static str,
    /// Name in trace events.
    pub group: &'static str,
    /// The number of tokens at first, and at most.
    pub depth: u32,
    /// A request that its driver gives back returns its token, and once more at its end if it has
    /// got no other one until then.
    pub given_twice: bool,
}

/// Limit of maps per scheduler.
pub const TOKEN_MAPS_MAX: usize = 8;
