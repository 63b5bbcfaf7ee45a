//! mq-deadline: deadlines per direction, batches in sector order, three priority levels.
//!
//! * [`policy`]: what happens under `dd->lock`
//! * [`settings`]: the attributes in queue/iosched
//! * [`shared`]: words and lists beside that lock, which only the January 2024 series has
//!
//! Kernel: block/mq-deadline.c (v6.1, v6.12). Zoned devices are not modelled.

pub mod policy;
pub mod settings;
pub mod shared;

pub use policy::MqDeadline;
pub use settings::{MqDeadlineSettings, StoreError};
pub use shared::DeadlineShared;
