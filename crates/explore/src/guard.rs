//! A panic of explored code becomes a result.

use blkmq::elevator::Fault;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `act`; a panic becomes an error with its text.
pub(crate) fn guarded<R>(act: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(act)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|&text| text.to_owned());
        let owned = panic.downcast_ref::<String>().cloned();
        let fault = panic
            .downcast_ref::<Fault>()
            .map(|fault| fault.text.clone());
        text.or(owned).or(fault).unwrap_or_default()
    })
}
