//! A machine beside the function that it was made of.

use blksim_steps::steps;
use std::cell::{RefCell, RefMut};

mod step {
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    pub(crate) enum Next {
        Step,
        Lock(u32),
        Ask(u32),
        Call(u32),
    }

    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    pub(crate) enum Sub<T> {
        Wait(Next),
        Done(T),
    }

    pub(crate) type Label = &'static str;

    pub(crate) trait Steps: Copy + 'static {
        type Done;
        fn step(&mut self, cx: &mut crate::Cx<'_>) -> Sub<Self::Done>;
        fn label(&self) -> Option<Label>;
        fn stage(&self) -> Option<&'static str> {
            None
        }
        fn find<S: 'static>(&self) -> Option<&S> {
            (self as &dyn core::any::Any).downcast_ref()
        }
    }

    pub(crate) fn may_end_here<T: Copy>(_: &T) {}

    macro_rules! labels {
        ($vis:vis enum $At:ident in $group:literal of $first:ident $($rest:ident)*) => {
            $first! { [$vis $At $group] [] $($rest)* }
        };
        (@ [$($head:tt)*] [$($done:tt)*] $first:ident $($rest:ident)*) => {
            $first! { [$($head)*] [$($done)*] $($rest)* }
        };
        (@ [$vis:vis $At:ident $group:literal] [$(#[doc = $doc:literal] $name:ident,)*]) => {
            #[derive(Clone, Copy, Debug)]
            $vis enum $At { $(#[doc = $doc] $name,)* }
            impl $At {
                $vis fn label(self) -> crate::step::Label {
                    [$(concat!($group, ".", stringify!($name))),*][self as usize]
                }
            }
        };
    }
    pub(crate) use labels;
}

#[derive(Default, Debug)]
struct Cpu {
    answer: u32,
}

#[derive(Debug)]
struct Cx<'a> {
    cpu: &'a mut Cpu,
    log: Vec<u32>,
    list: &'a RefCell<Vec<u32>>,
    /// Where the machine has stopped.
    label: step::Label,
}

impl<'a> Cx<'a> {
    fn list(&self) -> RefMut<'a, Vec<u32>> {
        self.list.borrow_mut()
    }

    fn say(&mut self, what: u32) {
        self.log.push(what);
    }

    fn stop_at(&mut self, label: step::Label) {
        self.label = label;
    }

    fn call(&mut self, what: u32) -> step::Next {
        self.log.push(100 + what);
        step::Next::Call(what)
    }
}

/// Takes up to `most` answers that are even.
#[steps]
fn take(cx: &mut Cx<'_>, most: u32) -> u32 {
    let mut taken: u32 = 0;
    /// Look at the head.
    at!(Head);
    while taken < most {
        /// What came?
        let got: u32 = ask!(Answer, step::Next::Ask(taken));
        if got == 9 && sub!(nine(taken)) {
            break;
        }
        match got {
            odd if odd % 2 == 1 => {
                let why: u32 = odd;
                /// Under the lock.
                lock!(Lock, step::Next::Lock(why));
                cx.say(why);
                continue;
            }
            _ => taken += 1,
        }
        cx.say(taken);
    }
    if taken == 0 {
        return 100;
    }
    /// Another path runs.
    call!(Over, taken);
    taken
}

#[steps]
fn nine(cx: &mut Cx<'_>, taken: u32) -> bool {
    cx.say(9);
    /// Nine came.
    at!(Nine);
    taken > 1
}

/// A variable that is set again after each label, and one that no label needs.
#[steps]
fn last(cx: &mut Cx<'_>, mut most: u32) -> u32 {
    most = 2;
    let mut got: u32;
    let mut taken: u32 = 0;
    while taken < most {
        /// The last answer.
        got = ask!(Last, step::Next::Ask(taken));
        cx.say(got);
        taken += 1;
    }
    taken
}

step::labels! { enum At in "take" of take nine last }

fn run(most: u32, answers: &[u32]) -> (u32, Vec<String>, Vec<u32>) {
    use step::Steps;
    let mut cpu = Cpu::default();
    let mut cx = Cx {
        cpu: &mut cpu,
        log: Vec::new(),
        list: &RefCell::default(),
        label: "",
    };
    let mut state = take::State::first(most);
    let mut seen = Vec::new();
    let mut answers = answers.iter();
    loop {
        seen.push(state.label().expect("between labels").to_owned());
        match state.step(&mut cx) {
            step::Sub::Wait(next) => {
                assert_eq!(state.label(), Some(cx.label), "the label is noted");
                if let step::Next::Ask(_) = next {
                    cx.cpu.answer = *answers.next().expect("an answer");
                }
            }
            step::Sub::Done(taken) => return (taken, seen, cx.log),
        }
    }
}

#[test]
fn labels_and_effects_are_those_of_the_function() {
    let (taken, seen, log) = run(3, &[1, 2, 4, 9]);
    assert_eq!(taken, 2);
    assert_eq!(
        seen,
        [
            "take.Head",
            "take.Answer",
            "take.Lock",
            "take.Answer",
            "take.Answer",
            "take.Answer",
            "take.Nine",
            "take.Over"
        ]
    );
    assert_eq!(log, [1, 1, 2, 9, 102]);
    assert_eq!(run(0, &[]).0, 100);
}

#[test]
fn what_is_read_no_more_is_reset() {
    use step::Steps;
    let mut cpu = Cpu::default();
    let mut cx = Cx {
        cpu: &mut cpu,
        log: Vec::new(),
        list: &RefCell::default(),
        label: "",
    };
    let mut state = take::State::first(1);
    cx.cpu.answer = 0;
    state.step(&mut cx);
    cx.cpu.answer = 3;
    state.step(&mut cx);
    assert_eq!((state.why, state.label()), (3, Some("take.Lock")));
    state.step(&mut cx);
    assert_eq!((state.why, state.label()), (0, Some("take.Answer")));
}

mod within {
    use super::{Cx, step, steps};

    #[derive(Clone, Copy)]
    enum At {
        Half,
        Rest,
    }

    impl At {
        fn name(self) -> &'static str {
            ["half", "rest"][self as usize]
        }
    }

    /// Labels within its caller's.
    #[steps(stages)]
    pub(super) fn steps_within(cx: &mut Cx<'_>, count: u32) -> u32 {
        cx.say(count);
        /// Half of them.
        lock!(Half, step::Next::Lock(count));
        let ended: bool = sub!(Rest, rest(count));
        u32::from(ended)
    }

    #[steps(stages)]
    fn rest(cx: &mut Cx<'_>, count: u32) -> bool {
        /// The other half.
        at!(Rest);
        at!(_);
        count == 2
    }
}
use within::steps_within;

mod around {
    use super::{Cx, steps, steps_within};

    #[steps]
    pub(super) fn whole(cx: &mut Cx<'_>, count: u32) -> u32 {
        /// All of them.
        at!(Whole);
        sub!(Whole, steps_within(count))
    }

    super::step::labels! { enum At in "around" of whole }
}

#[test]
fn stages_are_within_a_label() {
    use step::Steps;
    let mut cpu = Cpu::default();
    let mut cx = Cx {
        cpu: &mut cpu,
        log: Vec::new(),
        list: &RefCell::default(),
        label: "",
    };
    let mut state = around::whole::State::first(2);
    let mut stages = vec![state.stage()];
    while let step::Sub::Wait(_) = state.step(&mut cx) {
        assert_eq!(
            (state.label(), cx.label),
            (Some("around.Whole"), "around.Whole")
        );
        stages.push(state.stage());
    }
    let at_rest = Some("rest");
    assert_eq!(stages, [None, Some("half"), at_rest, at_rest]);
}

mod draining {
    use super::{Cx, steps};

    /// Both conditions read through a guard, which the code that follows takes, too.
    #[steps]
    pub(super) fn drain(cx: &mut Cx<'_>) {
        while let Some(one) = cx.list().pop() {
            let one: u32 = one;
            match cx.list().len() {
                0 => cx.list().extend([7, 8]),
                _ => {
                    /// More are left.
                    at!(More);
                    cx.list().clear();
                }
            }
            cx.say(one);
            if one == 7 {
                break;
            }
        }
    }

    super::step::labels! { enum At in "draining" of drain }
}

#[test]
fn a_guard_of_a_condition_ends_before_what_follows() {
    use step::Steps;
    let list = RefCell::new(vec![1]);
    let mut cx = Cx {
        cpu: &mut Cpu::default(),
        log: Vec::new(),
        list: &list,
        label: "",
    };
    let mut state = draining::drain::State::new();
    while let step::Sub::Wait(_) = state.step(&mut cx) {}
    assert_eq!(cx.log, [1, 8]);
}
