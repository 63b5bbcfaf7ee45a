//! Figures whose intervals end a run when they are narrow.

/// Percentiles that reports have, in hundredths of a percent: fio's default percentile_list.
pub const PERCENTILES: [u32; 17] = [
    100, 500, 1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000, 9500, 9900, 9950, 9990, 9995,
    9999,
];

/// How narrow the interval of a figure is to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wanted {
    pub figure: Figure,
    /// Half the interval's length, in millionths of the figure.
    pub ppm: u32,
}

/// A figure of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Figure {
    /// Of all jobs.
    Iops,
    /// The same.
    Bandwidth,
    /// Mean of all I/Os.
    Latency,
    /// Of each direction of each job, by its place among [`PERCENTILES`].
    Percentile(usize),
}

impl Figure {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Figure> {
        let percentiles = (0..PERCENTILES.len()).map(Figure::Percentile);
        [Figure::Iops, Figure::Bandwidth, Figure::Latency]
            .into_iter()
            .chain(percentiles)
    }

    /// Its name, as users write it: `p99.9`.
    pub fn name(self) -> String {
        match self {
            Figure::Iops => "iops".to_owned(),
            Figure::Bandwidth => "bw".to_owned(),
            Figure::Latency => "mean".to_owned(),
            Figure::Percentile(place) => {
                let of = PERCENTILES[place];
                let (whole, rest) = (of / 100, format!("{:02}", of % 100));
                let rest = rest.trim_end_matches('0');
                let point = if rest.is_empty() { "" } else { "." };
                format!("p{whole}{point}{rest}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Figure;

    #[test]
    fn figures_have_short_names() {
        let names: Vec<String> = Figure::all().map(Figure::name).collect();
        for name in ["iops", "bw", "mean", "p1", "p50", "p99.5", "p99.99"] {
            assert!(names.iter().any(|of| of == name), "{name}");
        }
    }
}
