//! `catraca experiment`: the experiments of the papers, or one of the user's own.

mod folder;
mod record;
mod words;

use std::io::Write;
use std::path::{Path, PathBuf};

use catraca_draw::Format as PictureFormat;
use catraca_lab::{
    Drawn, Experiment, LabError, MOST_SEEDS, Results, all, find, names, page, read_file,
};
use catraca_sim::read_text;

use crate::document::{self, Format};
use crate::failure::Failure;
use crate::output::Stdout;
use crate::suggest::unknown;
use crate::{Outcome, interrupt, progress};
use folder::Folder;

const EXAMPLES: &str = "\
Examples:
  catraca experiment list
  catraca experiment schedule
  catraca experiment clusters --out figures --pdf

An experiment is a scenario file with one more table, [experiment]: what is varied, which figures
and charts to show, and what a paper claims of them.";

/// Runs an experiment: tables, charts, and what runs say of a paper's claims.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// 'list', 'all', the name of an experiment, or a file of your own, as in ./mine.toml.
    #[arg(value_name = "list|all|NAME|FILE.toml")]
    what: String,
    /// Writes tables and all runs (.csv), both with all verdicts (.json), and pictures (.svg) into this
    /// folder; for 'all' a page (report.html) too.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Writes every picture as .pdf too, for papers.
    #[arg(long, requires = "out")]
    pdf: bool,
    /// Makes every run with so many seeds, from its own on, instead of as many as its file says.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_SEEDS)))]
    seeds: Option<u32>,
}

/// What came of an experiment.
type Finished = (Experiment, Results, Vec<Drawn>);

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        if self.what == "list" {
            return match self.out {
                None => words::list(&mut Stdout::lock()),
                Some(_) => Err(Failure::input("'list' writes no files; leave out --out")),
            };
        }
        if self.pdf {
            PictureFormat::Pdf.check().map_err(|error| Failure::input(format!("--pdf {error}")))?;
        }
        let mut experiments = self.experiments()?;
        if let Some(seeds) = self.seeds {
            experiments.iter_mut().for_each(|experiment| experiment.seeds = seeds);
        }
        let mut folder = match &self.out {
            None => None,
            Some(path) => {
                let is_all = self.what == "all";
                let files = experiments.iter().flat_map(|one| files(one, self.pdf));
                let files = files.chain(is_all.then(|| folder::PAGE.to_string()));
                Some(Folder::create(path, files)?)
            }
        };
        let mut out = Stdout::lock();
        let mut finished: Vec<Finished> = Vec::new();
        for experiment in experiments {
            let results = measure(&experiment)?;
            let pictures = experiment
                .pictures(&results)
                .map_err(|error| Failure::input(format!("{}: the run {error}", experiment.name)))?;
            if !finished.is_empty() {
                writeln!(out, "\n")?;
            }
            words::print(&experiment, &results, folder.is_none(), &mut out)?;
            finished.push((experiment, results, pictures));
        }
        if let Some(folder) = &mut folder {
            write(folder, &finished, self.pdf)?;
            writeln!(
                out,
                "\nwritten to {}: {}",
                folder.path().display(),
                folder.names().join(", ")
            )?;
        }
        let is_as_on_record = |(experiment, results, _): &Finished| {
            experiment.surprises(results).is_empty()
                && !experiment.findings(results).iter().any(|finding| finding.contradicts())
        };
        if finished.iter().all(is_as_on_record) { Ok(()) } else { Err(Failure::Violation) }
    }

    fn experiments(&self) -> Result<Vec<Experiment>, Failure> {
        let path = Path::new(&self.what);
        if self.what == "all" {
            return all().map_err(|error| wrong(error, None));
        }
        if path.extension().is_some_and(|end| end == "toml") || self.what.contains('/') {
            let text = read_text(path).map_err(|why| {
                Failure::input(format!("cannot read the experiment '{}': {why}", path.display()))
            })?;
            return Ok(vec![read_file(path, &text).map_err(|error| wrong(error, Some(path)))?]);
        }
        match find(&self.what) {
            Some(Ok(experiment)) => Ok(vec![experiment]),
            Some(Err(error)) => Err(wrong(error, Some(path))),
            None => {
                let valid = [&["list", "all"], names().as_slice()].concat();
                let what = unknown("experiment", &self.what, &valid);
                Err(Failure::Input(format!("{what}; a file of your own ends in .toml")))
            }
        }
    }
}

fn wrong(error: LabError, file: Option<&Path>) -> Failure {
    match error {
        LabError::Scenario(error) => Failure::of_scenario(error, file, |_| false),
        error => match file {
            Some(file) => Failure::Input(format!("{}: {error}", file.display())),
            None => Failure::input(error),
        },
    }
}

fn measure(experiment: &Experiment) -> Result<Results, Failure> {
    let bar = progress::bar(experiment.runs.len() as u64 * u64::from(experiment.seeds), "runs");
    bar.set_message(experiment.name.clone());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let results = experiment
        .measure(threads, &interrupt::flag(), |_| bar.inc(1))
        .map_err(|error| Failure::of_scenario(error, None, |_| false))?;
    bar.finish_and_clear();
    results.ok_or(Failure::Interrupted)
}

/// The names of the files of an experiment that are no pictures: table, runs, and everything.
fn data_files(experiment: &Experiment) -> [String; 3] {
    [".csv", "-runs.csv", ".json"].map(|ending| format!("{}{ending}", experiment.name))
}

/// The name of the same picture as PDF.
fn as_pdf(file: &str) -> String {
    format!("{}.pdf", file.strip_suffix(".svg").unwrap_or(file))
}

/// The names of the files of an experiment.
fn files(experiment: &Experiment, has_pdf: bool) -> Vec<String> {
    let pictures = experiment.picture_files();
    let as_pdf = pictures.iter().map(|file| as_pdf(file)).filter(|_| has_pdf).collect();
    [data_files(experiment).to_vec(), pictures, as_pdf].concat()
}

/// Writes all files.
fn write(folder: &mut Folder, finished: &[Finished], has_pdf: bool) -> Outcome {
    for (experiment, results, pictures) in finished {
        let [table, runs, whole] = data_files(experiment);
        folder.finish(&table, experiment.table(results).csv().as_bytes())?;
        folder.finish(&runs, experiment.runs_csv(results).as_bytes())?;
        let record = record::record(experiment, results);
        let command = experiment.command_with_seeds();
        folder.finish(&whole, &document::json(Format::Experiment, &command, record)?)?;
        for drawn in pictures {
            folder.finish(&drawn.file, drawn.picture.svg().as_bytes())?;
            if has_pdf {
                let pdf = drawn.picture.pdf().map_err(|error| {
                    Failure::input(format!("the picture '{}' {error}", drawn.file))
                })?;
                folder.finish(&as_pdf(&drawn.file), &pdf)?;
            }
        }
    }
    if folder.names().iter().any(|name| name == folder::PAGE) {
        folder.finish(folder::PAGE, page(finished).as_bytes())?;
    }
    Ok(())
}
