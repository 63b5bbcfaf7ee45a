//! temporary
use sim::machine::Simulator; use sim::profile::MachineProfile; use sim::scenario::{Scenario, ProfileFacts};
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let text = std::fs::read_to_string(&a[1]).unwrap().replace("RUNTIME", &a[2]);
    let s = Scenario::from_toml(std::path::Path::new(&a[1]), &text).unwrap();
    let plan = s.plan(&[ProfileFacts{name:"ryzen-7950x",cpus:32}]).unwrap();
    let profile = MachineProfile::built_in("ryzen-7950x").unwrap();
    let mut sim = Simulator::new(&plan, &profile).unwrap();
    let t = std::time::Instant::now();
    let out = sim.run(|_| true);
    let el = t.elapsed();
    sim.settle();
    let ios: u64 = sim.recorder().jobs.iter().flat_map(|j| j.directions.iter()).map(|d| d.ios).sum();
    println!("{} ios {:?} ns/io {:.1} work {:?} ok {}", ios, el, el.as_nanos() as f64/ios as f64, sim.work_done(), matches!(out, sim::machine::Outcome::Finished));
    println!("iops {:.1}", ios as f64 / sim.now().0 as f64 * 1e6);
    for l in &sim.recorder().locks { println!("{:?}", l); }
}
