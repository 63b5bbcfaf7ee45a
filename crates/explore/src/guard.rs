//! A panic of explored code becomes a result.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `act`; a panic becomes an error with its text.
pub(crate) fn guarded<R>(act: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(act)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|&text| text.to_owned());
        let owned = panic.downcast_ref::<String>().cloned();
        text.or(owned).unwrap_or_default()
    })
}
