//! Where the reports of a command go: text, JSON, CSV and HTML.

use std::path::PathBuf;

use crate::args::{FioFormats, ReportArgs, TextTo};
use crate::error::Error;
use crate::output::OutputFile;

/// Results that can be reported, each in a form of its own.
pub(crate) trait Reported {
    fn text(&self) -> String;
    /// One JSON value and a line feed.
    fn json(&self) -> String;
    /// A header and rows.
    fn csv(&self) -> String;
    /// A page.
    fn html(&self) -> String;
    /// fio's formats `terse` and `normal`, if it has them.
    fn terse(&self) -> String {
        String::new()
    }
    fn normal(&self) -> String {
        String::new()
    }
}

/// The outputs that were asked for.
#[derive(Debug)]
pub(crate) struct Outputs {
    json: Option<OutputFile>,
    csv: Option<OutputFile>,
    html: Option<OutputFile>,
    text: Option<OutputFile>,
    fio: Option<(OutputFile, FioFormats)>,
}

impl Outputs {
    /// Makes sure that all of them can be written.
    pub(crate) fn open(args: &ReportArgs) -> Result<Outputs, Error> {
        let given = [
            ("--json", &args.json),
            ("--csv", &args.csv),
            ("--html", &args.html),
        ];
        let mut opened = [const { None }; 3];
        for (index, (option, file)) in given.into_iter().enumerate() {
            let same = |(_, other): &&(&str, &Option<PathBuf>)| file.is_some() && *other == file;
            if let Some((other, _)) = given[..index].iter().find(same) {
                let what = format!("{other} goes to the same place; expected another");
                return Err(Error::usage(option, what));
            }
            opened[index] = file.as_deref().map(OutputFile::open).transpose()?;
        }
        let taken = opened.iter().flatten().any(OutputFile::is_stdout);
        let [json, csv, html] = opened;
        let text = match &args.text {
            TextTo::Stdout if !taken => Some(OutputFile::open("-".as_ref())?),
            TextTo::File(file) => Some(OutputFile::open(file)?),
            TextTo::Stdout | TextTo::Nowhere => None,
        };
        let fio = args.fio.clone();
        let fio = fio.map(|formats| OutputFile::open(&formats.to).map(|file| (file, formats)));
        Ok(Outputs {
            json,
            csv,
            html,
            text,
            fio: fio.transpose()?,
        })
    }

    /// Some have more than the columns of CSV: the report must be whole.
    pub(crate) fn are_whole(&self) -> bool {
        let written = [&self.text, &self.json, &self.html];
        written.into_iter().any(Option::is_some) || self.fio.is_some()
    }

    /// One has the notes on options, or all that is written has figures only.
    pub(crate) fn have_notes(&self) -> bool {
        let of_fio = self.fio.as_ref().map(|(_, formats)| formats.json);
        [&self.text, &self.json, &self.html]
            .into_iter()
            .any(Option::is_some)
            || of_fio != Some(false)
    }

    /// One is a page, which has figures of distributions.
    pub(crate) fn are_drawn(&self) -> bool {
        self.html.is_some()
    }

    /// One has the members of fio's report.
    pub(crate) fn are_of_fio(&self) -> bool {
        self.json.is_some() || self.fio.is_some()
    }

    /// One is json+.
    pub(crate) fn have_bins(&self) -> bool {
        self.fio.as_ref().is_some_and(|(_, formats)| formats.bins)
    }

    /// Writes all of them, then `before` does its part, then they get their names.
    pub(crate) fn write(
        self,
        report: &impl Reported,
        before: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Error> {
        let json = self.json.map(|file| file.put(&report.json())).transpose()?;
        let csv = self.csv.map(|file| file.put(&report.csv())).transpose()?;
        let html = self.html.map(|file| file.put(&report.html())).transpose()?;
        let text = self.text.map(|file| file.put(&report.text())).transpose()?;
        let fio = self.fio.map(|(file, formats)| {
            let written = [
                (formats.terse, report.terse()),
                (formats.json, report.json()),
                (formats.normal, report.normal()),
            ];
            let wanted = written.into_iter().filter(|(wanted, _)| *wanted);
            file.put(&wanted.map(|(_, text)| text).collect::<String>())
        });
        let fio = fio.transpose()?;
        before()?;
        for file in [json, csv, html, text, fio].into_iter().flatten() {
            file.keep()?;
        }
        Ok(())
    }
}
