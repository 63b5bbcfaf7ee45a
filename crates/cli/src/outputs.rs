//! Where the reports of a command go: text, JSON and CSV.

use crate::args::{ReportArgs, TextTo};
use crate::error::Error;
use crate::output::OutputFile;

/// Results that can be reported, each in a form of its own.
pub(crate) trait Reported {
    fn text(&self) -> String;
    /// One JSON value and a line feed.
    fn json(&self) -> String;
    /// A header and rows.
    fn csv(&self) -> String;
}

/// The outputs that were asked for.
#[derive(Debug)]
pub(crate) struct Outputs {
    json: Option<OutputFile>,
    csv: Option<OutputFile>,
    text: Option<OutputFile>,
}

impl Outputs {
    /// Makes sure that all of them can be written.
    pub(crate) fn open(args: &ReportArgs) -> Result<Outputs, Error> {
        let (json, csv) = (args.json.as_deref(), args.csv.as_deref());
        if json.is_some() && json == csv {
            return Err(Error::usage(
                "--csv",
                "--json goes to the same place; expected another",
            ));
        }
        let json = json.map(OutputFile::open).transpose()?;
        let csv = csv.map(OutputFile::open).transpose()?;
        let taken = [&json, &csv]
            .into_iter()
            .flatten()
            .any(OutputFile::is_stdout);
        let text = match &args.text {
            TextTo::Stdout if !taken => Some(OutputFile::open("-".as_ref())?),
            TextTo::File(file) => Some(OutputFile::open(file)?),
            TextTo::Stdout | TextTo::Nowhere => None,
        };
        Ok(Outputs { json, csv, text })
    }

    /// Some have more than the columns of CSV: the report must be whole.
    pub(crate) fn are_whole(&self) -> bool {
        self.text.is_some() || self.json.is_some()
    }

    /// Writes all of them, then `before` does its part, then they get their names.
    pub(crate) fn write(
        self,
        report: &impl Reported,
        before: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Error> {
        let json = self.json.map(|file| file.put(&report.json())).transpose()?;
        let csv = self.csv.map(|file| file.put(&report.csv())).transpose()?;
        let text = self.text.map(|file| file.put(&report.text())).transpose()?;
        before()?;
        for file in [json, csv, text].into_iter().flatten() {
            file.keep()?;
        }
        Ok(())
    }
}
