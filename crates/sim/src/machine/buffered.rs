//! One read(2) through the page cache: looks pages up, has missing ones read, waits, copies.
//!
//! A state machine for any reader; it knows no program. Which pages are read ahead: `readahead.rs`.
//! Pages and their waiters: `mappings.rs`. Kernel: do_generic_file_read() (2.6.32.2),
//! filemap_read() and filemap_get_pages() (6.1.192, 6.12.117) in mm/filemap.c; read_pages() in
//! mm/readahead.c.
//!
//! Deviation(D24): the pages of a window enter the cache bio by bio, not all before the first bio.

use core::ops::Range;

use blkmq::path::{Frame, Plug, PlugPath, ThenUnplug, Unplug};
use blkmq::request::{Bio, CpuId, IoContextId, IoPrio, Op, Status};
use blkmq::time::SimTime;

use super::cpu::Mode;
use super::cpus::Cpus;
use super::layer::Layer;
use super::mappings::{MappingId, Mappings, PAGES};
use super::task::{TaskId, Turn};
use crate::cost::Step;
use crate::page_cache::{PAGE_BYTES, PageState};
use crate::readahead::{ReadAhead, Window};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum At {
    /// Look the next pages up.
    Look,
    /// Read pages of a window, one bio a turn.
    Fill,
    /// The last page found was not up to date: is it now?
    Wait,
    /// Copy the pages found, one page a turn.
    Copy,
}

/// Pages to be read, and how far that has come.
#[derive(Clone, Copy, Debug)]
struct Filling {
    next: u64,
    end: u64,
    mark: Option<u64>,
    /// A single page whose read failed.
    again: bool,
    /// A single page without read-ahead.
    alone: bool,
}

pub(super) enum Goes {
    /// The read goes on with this turn.
    On(Turn),
    Over(Status),
}

pub(super) struct Reader<'a> {
    pub(super) id: CpuId,
    pub(super) task: TaskId,
    pub(super) io_context: IoContextId,
    pub(super) group: u16,
    pub(super) priority: IoPrio,
    pub(super) cpus: &'a mut Cpus,
    pub(super) layer: &'a Layer,
    pub(super) mappings: &'a mut Mappings,
}

#[derive(Clone, Debug)]
pub(super) struct BufferedRead {
    // Settings.
    mapping: MappingId,
    bio_pages: u64,
    /// Its reader has a plug already, so plugs of read-ahead have no effect.
    plugged: bool,
    /// Its end, bytes.
    upto: u64,
    /// The page after its last one.
    last: u64,

    // State.
    at: At,
    /// The next page to copy.
    index: u64,
    /// The page after the last one that was found.
    found: u64,
    filling: Option<Filling>,
    /// The page at `index` was missing, and a window was requested.
    missed: bool,
    /// It has flushed the queue's plug and goes to sleep next.
    unplugged: bool,
    /// It has waited for the last page found.
    waited: bool,
    /// The page that it has tried to read again.
    retried: Option<u64>,
}

impl BufferedRead {
    /// A read of these bytes of a mapping, at least one, with at most so many pages in a bio.
    pub(super) fn new(mapping: MappingId, bytes: Range<u64>, bio_pages: u64) -> BufferedRead {
        let Range {
            start: from,
            end: upto,
        } = bytes;
        assert!(from < upto, "a read of nothing");
        let index = from / PAGE_BYTES;
        BufferedRead {
            mapping,
            bio_pages,
            plugged: false,
            upto,
            last: upto.div_ceil(PAGE_BYTES),
            at: At::Look,
            index,
            found: index,
            filling: None,
            missed: false,
            unplugged: false,
            waited: false,
            retried: None,
        }
    }

    /// The same within the reader's own plug, if it has one.
    pub(super) fn within(self, plugged: bool) -> BufferedRead {
        BufferedRead { plugged, ..self }
    }

    /// One step, by the state of the open file.
    pub(super) fn turn(&mut self, on: &mut Reader<'_>, file: &mut ReadAhead) -> Goes {
        match self.at {
            At::Look => self.look(on, file),
            At::Fill => self.fill(on),
            At::Wait => self.wait(on, file),
            At::Copy => self.copy(on, file),
        }
    }

    /// Looks up the next pages, as many as one lookup returns.
    fn look(&mut self, on: &mut Reader<'_>, file: &mut ReadAhead) -> Goes {
        on.cpus.charge_as(on.id, Step::PageFind, Mode::System);
        let now = on.cpus.at(on.id);
        let cache = &mut on.mappings[self.mapping].cache;
        let batch = self.last.min(self.index + file.rules().batch_pages);
        self.found = self.index;
        let mut marked = false;
        while self.found < batch
            && let Some(page) = cache.find(self.found)
        {
            self.found += 1;
            marked = page.marked;
            if marked || !is_there(page.state, now) {
                break;
            }
        }
        if self.found == self.index {
            if core::mem::replace(&mut self.missed, true) {
                self.have_read(Some(Window::of_page(self.index)), true);
            } else {
                let window = file.miss(cache, self.index, self.last - self.index);
                self.have_read(window, false);
            }
            return Goes::On(Turn::Again);
        }
        self.missed = false;
        self.at = At::Wait;
        if marked {
            let page = self.found - 1;
            cache.clear_mark(page);
            let window = file.mark(cache, page, self.last - page);
            self.have_read(window, false);
        }
        Goes::On(Turn::Again)
    }

    fn have_read(&mut self, window: Option<Window>, alone: bool) {
        self.filling = window.map(|window| Filling {
            next: window.start,
            end: window.start + window.pages,
            mark: window.mark,
            again: false,
            alone,
        });
        self.at = At::Fill;
    }

    /// The next bio of a window. Pages that are in the cache are left out: each run of pages
    /// between them is submitted by itself, with a plug of its own.
    fn fill(&mut self, on: &mut Reader<'_>) -> Goes {
        let Some(mut filling) = self.filling else {
            return self.after_window(on);
        };
        let cache = &mut on.mappings[self.mapping].cache;
        if filling.again {
            cache.read_again(filling.next);
            self.filling = None;
            self.submit(on, filling.next, 1);
            return Goes::On(Turn::Again);
        }
        let start = cache.first_missing(filling.next, filling.end);
        if start > filling.next && self.unplugs(on) {
            return Goes::On(Turn::Again);
        }
        let cache = &mut on.mappings[self.mapping].cache;
        let mut end = start;
        while end < filling.end.min(start + self.bio_pages)
            && cache.find(end).is_none()
            && cache.add(end, filling.mark == Some(end))
        {
            end += 1;
        }
        filling.next = end;
        // Else there is no memory: read-ahead ends, and a reader that needs the page fails.
        let over = end == filling.end || end == start;
        self.filling = (!over).then_some(filling);
        if end > start {
            self.submit(on, start, end - start);
        } else if start < filling.end && filling.alone {
            return Goes::Over(Status::IoError);
        }
        Goes::On(Turn::Again)
    }

    /// A bio for pages that were just added. Charges the kernel's work for it.
    fn submit(&self, on: &mut Reader<'_>, first: u64, pages: u64) {
        let id = on.id;
        for _ in 0..pages {
            on.cpus.charge_as(id, Step::PageAdd, Mode::System);
        }
        let steps = [
            Step::Bio,
            Step::IoLocks,
            Step::ClockRead,
            Step::PreemptRcu,
            Step::KernelRest,
        ];
        on.cpus.charge_all(id, &steps, Mode::System);
        let mapping = &on.mappings[self.mapping];
        let queue = on.layer.numbers.queue_of(mapping.disk);
        let q = on.layer.mq.queue(queue);
        let plug = &mut on.cpus[id].env.plug;
        if q.single.is_none() && !plug.active {
            plug.start(1);
        }
        let (sector, sectors) = mapping.place(first, pages);
        let bio = q.pool.held(id).fill_bio(|bio| {
            *bio = Bio::default();
            bio.op = Op::Read;
            bio.sector = sector;
            bio.sectors = sectors;
            bio.scatter();
            bio.ioprio = on.priority;
            bio.io_context = on.io_context;
            bio.group = on.group;
            bio.owner = on.task.0 << 16 | PAGES;
        });
        let bio = bio.expect("the plan counts every page that can be under read");
        let path = on.layer.mq.submits(queue, bio, ThenUnplug::Nobody);
        on.cpus.submit(id, path);
    }

    /// After a window: the pages found are checked, or the missing page is looked up again.
    fn after_window(&mut self, on: &mut Reader<'_>) -> Goes {
        if !self.unplugs(on) {
            self.at = match self.found == self.index {
                true => At::Look,
                false => At::Wait,
            };
        }
        Goes::On(Turn::Again)
    }

    /// The last page found: is it up to date?
    fn wait(&mut self, on: &mut Reader<'_>, file: &mut ReadAhead) -> Goes {
        let now = on.cpus.at(on.id);
        let mapping = &mut on.mappings[self.mapping];
        let page = self.found - 1;
        let Some(there) = mapping.cache.find(page) else {
            // The page has left the cache: the pages before it are copied, and it is looked up
            // again.
            self.found = page;
            return self.copy_found();
        };
        match there.state {
            PageState::UpToDate(at) if at <= now => {
                // A reader that has waited looks the page up again, after the others
                // (AOP_TRUNCATED_PAGE).
                let several = page > self.index;
                if core::mem::take(&mut self.waited) && several {
                    self.found = page;
                }
                self.copy_found()
            }
            PageState::UpToDate(at) => Goes::On(Turn::Pause(at)),
            PageState::Failed(at) if at > now => Goes::On(Turn::Pause(at)),
            PageState::Failed(_) if self.retried == Some(page) => {
                file.shrink();
                Goes::Over(Status::IoError)
            }
            PageState::Failed(_) => {
                self.retried = Some(page);
                self.have_read(Some(Window::of_page(page)), true);
                if let Some(filling) = &mut self.filling {
                    filling.again = true;
                }
                Goes::On(Turn::Again)
            }
            PageState::UnderRead if !self.unplugged => {
                let queue = on.layer.numbers.queue_of(mapping.disk);
                if self.flushes(on) {
                    return Goes::On(Turn::Again);
                }
                self.unplugged = true;
                if let Some(path) = on.layer.mq.unplugs(queue) {
                    on.cpus.push(on.id, path);
                }
                Goes::On(Turn::Again)
            }
            PageState::UnderRead => {
                self.unplugged = false;
                self.waited = true;
                mapping.wait(page, on.task);
                Goes::On(Turn::Sleep)
            }
        }
    }

    /// blk_finish_plug(). True if that began with a flush: call again afterwards.
    fn unplugs(&self, on: &mut Reader<'_>) -> bool {
        let plug = on.cpus[on.id].env.plug;
        if !plug.active || self.plugged {
            return false;
        }
        if plug.is_empty() {
            on.cpus[on.id].env.plug = Plug::default();
            return false;
        }
        let path = PlugPath::new(plug.queue(), Unplug::Finish);
        on.cpus.push(on.id, Frame::Plug(path));
        true
    }

    /// schedule() flushes the reader's plug. True if that began with a flush.
    fn flushes(&self, on: &mut Reader<'_>) -> bool {
        let plug = on.cpus[on.id].env.plug;
        if !self.plugged || !plug.active || plug.is_empty() {
            return false;
        }
        let path = PlugPath::new(plug.queue(), Unplug::Schedule);
        on.cpus.push(on.id, Frame::Plug(path));
        true
    }

    fn copy_found(&mut self) -> Goes {
        self.unplugged = false;
        self.at = match self.found == self.index {
            true => At::Look,
            false => At::Copy,
        };
        Goes::On(Turn::Again)
    }

    fn copy(&mut self, on: &mut Reader<'_>, file: &mut ReadAhead) -> Goes {
        on.cpus.charge_as(on.id, Step::PageCopy, Mode::System);
        on.mappings[self.mapping].cache.use_if_there(self.index);
        self.index += 1;
        file.copied(self.upto.min(self.index * PAGE_BYTES));
        if self.index == self.last {
            file.read_ends(self.upto);
            return Goes::Over(Status::Ok);
        }
        if self.index == self.found {
            self.at = At::Look;
        }
        Goes::On(Turn::Again)
    }
}

/// The data of a page are valid at `now`.
fn is_there(state: PageState, now: SimTime) -> bool {
    matches!(state, PageState::UpToDate(at) if at <= now)
}
