//! Machines of random functions beside the functions themselves.

mod live;
mod run;
mod write;

use std::collections::BTreeMap;

use proptest::prelude::*;

use live::Lives;
use run::{Code, Event, State, Value, World};
use write::Writer;

use super::expanded;

struct Program {
    sources: BTreeMap<String, syn::ItemFn>,
    codes: BTreeMap<String, Code>,
    lives: BTreeMap<String, Lives>,
    is_exact: bool,
}

/// Functions as text, each of which runs only later ones.
struct Sources {
    texts: Vec<String>,
    is_exact: bool,
}

impl core::fmt::Debug for Sources {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.texts
            .iter()
            .try_for_each(|text| writeln!(f, "\n{text}"))
    }
}

fn sources() -> impl Strategy<Value = Sources> {
    proptest::collection::vec(any::<u8>(), 0..180).prop_map(|bytes| {
        let mut writer = Writer::new(&bytes);
        Sources {
            texts: writer.functions(),
            is_exact: writer.is_exact,
        }
    })
}

fn program(given: &Sources) -> Program {
    let mut program = Program {
        sources: BTreeMap::new(),
        codes: BTreeMap::new(),
        lives: BTreeMap::new(),
        is_exact: given.is_exact,
    };
    for text in &given.texts {
        let source: syn::ItemFn =
            syn::parse_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
        let name = source.sig.ident.to_string();
        let code = expanded("", text)
            .unwrap_or_else(|error| panic!("line {}: {error}\n{text}", error.span().start().line));
        let code = Code::parse(
            &syn::parse2(code.clone()).unwrap_or_else(|error| panic!("{error}: {code}")),
        );
        let step = code.function("step").expect("a step");
        program.lives.insert(name.clone(), Lives::of(step));
        program.codes.insert(name.clone(), code);
        program.sources.insert(name, source);
    }
    program
}

impl Program {
    fn world<'a>(&'a self, answers: &'a [i64]) -> World<'a> {
        World::new(&self.sources, &self.codes, answers)
    }

    fn by_function(&self, answers: &[i64]) -> (Value, Vec<Event>) {
        let mut world = self.world(answers);
        let value = world.call("f0", vec![Value::Int(1), Value::Int(2)]);
        (value, world.log)
    }

    fn by_machine(&self, answers: &[i64]) -> (Value, Vec<Event>) {
        let mut world = self.world(answers);
        let args = vec![Value::Int(1), Value::Int(2)];
        let Value::State(mut state) = world.make("f0", "new", args.clone()) else {
            panic!("a state");
        };
        let mut first = self.codes["f0"]
            .function("first")
            .map(|_| world.make("f0", "first", args));
        loop {
            let next = match world.on(&mut state, "step") {
                Value::Wait(next) => *next,
                Value::Done(value) => return (*value, world.log),
                other => panic!("{other:?}"),
            };
            if let Some(first) = first.take() {
                assert_eq!(first, Value::State(state.clone()), "at the first label");
                assert_eq!(world.log, []);
            }
            let Value::Label(label) = world.on(&mut state, "label") else {
                panic!("a label or none");
            };
            if self.is_exact {
                self.assert_reset(&state);
            }
            if let Value::Int(_) = next {
                let answer = world.next_answer();
                world.set_answer(answer);
            }
            world.log.push(Event::Stop(label, next));
        }
    }

    /// The state of a machine at a label: what no later code reads is at its default.
    fn assert_reset(&self, state: &State) {
        let pc = &state.fields["pc"];
        let lives = &self.lives[&state.function];
        for (name, value) in &state.fields {
            match value {
                Value::Callee(None) => {}
                Value::Callee(Some((_, callee))) => {
                    assert!(lives.runs(pc), "{name} is left in {state:?}");
                    self.assert_reset(callee);
                }
                _ if name == "pc" => {}
                value => {
                    let is_kept = *value == Value::Int(0) || lives.is_read(pc, name);
                    assert!(is_kept, "{name} is left in {state:?}");
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 500,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// The same labels, questions, effects and value; nothing that no code reads is left.
    #[test]
    fn a_machine_does_what_its_function_does(
        sources in sources(),
        answers in proptest::collection::vec(proptest::collection::vec(0_i64..5, 0..20), 3),
    ) {
        let program = program(&sources);
        for answers in &answers {
            prop_assert_eq!(program.by_machine(answers), program.by_function(answers));
        }
    }
}
