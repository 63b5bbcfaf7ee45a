//! One random order of a configuration, drained at its end.

use crate::config::Config;
use crate::guard::guarded;
use crate::oracle;
use crate::report::{Report, Verdict, schedule};
use crate::world::{Choice, Fixed, Ran, World};

/// The most steps of a drain per bio; more is a loop.
const DRAIN_STEPS: u64 = 100_000;

/// The steps before a violation that the report has.
const TOLD: usize = 200;

/// A stream of random numbers: xorshift64*.
#[derive(Debug)]
pub(crate) struct Stream(u64);

impl Stream {
    pub(crate) fn new(seed: u64) -> Stream {
        // Splits neighbouring seeds; zero would stay zero.
        let mixed = (seed ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        Stream((mixed ^ (mixed >> 29)).max(1))
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let draw = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        ((draw * n as u64) >> 32) as usize
    }
}

/// Takes `steps` random choices, then submits no more: everything must end.
pub fn walk(config: &Config, seed: u64, steps: u64) -> Report {
    let mut walker = Walker {
        fixed: Fixed::new(config),
        stream: Stream::new(seed),
        path: Vec::new(),
        steps: 0,
    };
    let verdict = walker.run(steps);
    let schedule = match verdict {
        Verdict::Clean => Vec::new(),
        _ => {
            let all = schedule(&mut walker.fixed, &walker.path, steps);
            all[all.len().saturating_sub(TOLD)..].to_vec()
        }
    };
    Report {
        name: config.name.clone(),
        seed: Some(seed),
        verdict,
        generated: walker.steps + 1,
        distinct: 0,
        depth: walker.steps as u32,
        schedule,
    }
}

#[derive(Debug)]
struct Walker {
    fixed: Fixed,
    stream: Stream,
    path: Vec<Choice>,
    steps: u64,
}

impl Walker {
    fn run(&mut self, steps: u64) -> Verdict {
        let mut world = self.fixed.first();
        let limit = steps + DRAIN_STEPS * (1 + u64::from(self.fixed.config.bios()));
        let (mut choices, mut log) = (Vec::new(), Vec::new());
        loop {
            self.fixed.draining = self.steps >= steps;
            world.choices(&self.fixed, &mut choices);
            if let Err(verdict) = oracle::rest(&world, &self.fixed, &choices) {
                return verdict;
            }
            if choices.is_empty() {
                return Verdict::Clean;
            }
            if self.steps >= limit {
                return Verdict::Broken("a drain that never ends".to_owned());
            }
            if let Err(verdict) = self.step(&mut world, &choices, &mut log) {
                return verdict;
            }
        }
    }

    fn step(
        &mut self,
        world: &mut World,
        choices: &[Choice],
        log: &mut Vec<Ran>,
    ) -> Result<(), Verdict> {
        let choice = choices[self.stream.below(choices.len())];
        self.steps += 1;
        self.path.push(choice);
        guarded(|| world.apply(&self.fixed, choice, log)).map_err(Verdict::Panic)?;
        guarded(|| oracle::check(world)).map_err(Verdict::Broken)?
    }
}

/// Walks through a varied set of configurations with seeds from `seed` on, one walk each.
pub fn soak(configs: &[Config], seed: u64, steps: u64) -> Vec<Report> {
    let mut reports = Vec::with_capacity(configs.len());
    for (offset, config) in configs.iter().enumerate() {
        reports.push(walk(config, seed.wrapping_add(offset as u64), steps));
    }
    reports
}
