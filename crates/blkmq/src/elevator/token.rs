//! Tokens of a scheduler: bitmaps of its own, a bit of which a request needs to be dispatched.
//!
//! The scheduler decides which request needs one, and when it is put; the maps and their wait
//! queues are in `queue/tokens.rs`, the way to a token and back in `path/token.rs`. Kernel:
//! domain_tokens of block/kyber-iosched.c (6.1.192, 6.12.117).

#[derive(PartialEq, Eq, Hash, Debug)]
pub struct ElevatorTokens {
    /// What reports call one of them: "read token".
    pub name: &'static str,
    /// What trace events call what they are for.
    pub group: &'static str,
    /// How many there are at first, and at most.
    pub depth: u32,
    /// A request that its driver gives back returns its token, and returns it once more at its end
    /// if it has got no other one until then.
    pub given_twice: bool,
}

/// A token that was taken.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Token {
    pub map: u8,
    /// Bit of the map.
    pub number: u32,
}

/// Maps of one scheduler at most.
pub const TOKEN_MAPS_MAX: usize = 8;
