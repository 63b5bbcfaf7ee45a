//! mq-deadline: deadlines per direction, batches in sector order, three priority levels.
//!
//! * [`policy`]: what happens under `dd->lock`
//! * [`settings`]: the attributes in queue/iosched
//!
//! Kernel: block/mq-deadline.c (v6.1, v6.12). Zoned devices are not modelled.

pub mod policy;
pub mod settings;

pub use policy::MqDeadline;
pub use settings::{MqDeadlineSettings, StoreError};
