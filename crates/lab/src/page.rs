//! Experiments with their results as one self-contained HTML page.

use std::fmt::Write;

use catraca_draw::dark_style;

use crate::claim::{Finding, Verdict};
use crate::experiment::Experiment;
use crate::reference::{REFERENCES, Reference};
use crate::results::{Drawn, Results};
use crate::table::{Column, Table};

const STYLE: &str = include_str!("page.css");

/// The experiments, their results and their pictures on one page that needs nothing else.
pub fn page(experiments: &[(Experiment, Results, Vec<Drawn>)]) -> String {
    let mut html = String::new();
    let mut pictures = 0;
    let mut sections = String::new();
    for (experiment, results, drawn) in experiments {
        section(&mut sections, experiment, results, drawn, &mut pictures);
    }
    let _ = write!(
        html,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Catraca: experiments</title>\n<style>\n{STYLE}{}</style>\n</head>\n<body>\n\
         <header>\n<h1>Catraca: experiments</h1>\n<p>Written by <code>catraca experiment all</code> \
         from runs of the simulator. The same runs give the same page on every machine.</p>\n{}\
         </header>\n{}<main>\n{sections}{}</main>\n</body>\n</html>\n",
        dark_style("figure"),
        summary(experiments),
        contents(experiments),
        references(experiments),
    ); // Writing to a String cannot fail.
    html
}

/// How many claims there are, and how many of them hold.
fn summary(experiments: &[(Experiment, Results, Vec<Drawn>)]) -> String {
    let findings: Vec<Finding<'_>> =
        experiments.iter().flat_map(|(one, results, _)| one.findings(results)).collect();
    let of_kind = |is_question| {
        findings.iter().filter(move |finding| finding.claim.is_question == is_question)
    };
    let count = |is_question, verdict| {
        of_kind(is_question).filter(|finding| finding.found == Some(verdict)).count()
    };
    let open = count(false, Verdict::Open) + count(true, Verdict::Open);
    let contradicted = findings.iter().filter(|finding| finding.contradicts()).count();
    let mut text = format!(
        "<p>{} experiments. Of {} claims of the papers, {} hold and {} are wrong.",
        experiments.len(),
        of_kind(false).count(),
        count(false, Verdict::Holds),
        count(false, Verdict::Wrong),
    );
    let questions = of_kind(true).count();
    if questions > 0 {
        let (yes, no) = (count(true, Verdict::Holds), count(true, Verdict::Wrong));
        let _ = write!(
            text,
            " Of {questions} questions of our own, runs answer {yes} with yes and {no} with no."
        );
    }
    if open > 0 {
        let verb = if open == 1 { "is" } else { "are" };
        let _ = write!(text, " {open} {verb} open: runs differ too much from seed to seed.");
    }
    if contradicted > 0 {
        let _ = write!(
            text,
            " <strong class=\"alarm\">{contradicted} of the verdicts on record are contradicted by \
             these runs.</strong>"
        );
    }
    text.push_str("</p>\n");
    text
}

/// Links to all experiments.
fn contents(experiments: &[(Experiment, Results, Vec<Drawn>)]) -> String {
    let mut html = String::from("<nav aria-label=\"Experiments\">\n<ul>\n");
    for (experiment, ..) in experiments {
        let paper = experiment.paper.as_ref().map_or(String::new(), |paper| {
            format!(" <span class=\"paper\">{}</span>", cited(paper))
        });
        let _ = writeln!(
            html,
            "<li><a href=\"#{0}\">{0}</a>{paper}: {1}</li>",
            escaped(&experiment.name),
            escaped(&experiment.title)
        );
    }
    html.push_str("</ul>\n</nav>\n");
    html
}

fn section(
    html: &mut String,
    experiment: &Experiment,
    results: &Results,
    drawn: &[Drawn],
    pictures: &mut usize,
) {
    let _ = write!(
        html,
        "<section id=\"{0}\">\n<h2>{1}</h2>\n<p class=\"source\">{2}<code>{3}</code></p>\n<p>{4}</p>\n",
        escaped(&experiment.name),
        escaped(&experiment.title),
        source(experiment),
        escaped(&experiment.command()),
        escaped(&experiment.question)
    );
    let _ = writeln!(html, "<p>{}</p>", escaped(&experiment.about_seeds()));
    if let Some(unit) = &experiment.unit {
        let _ = writeln!(html, "<p>A unit of time is {}.</p>", escaped(unit));
    }
    for surprise in experiment.surprises(results) {
        let _ = writeln!(html, "<p class=\"alarm\">{}</p>", escaped(&surprise));
    }
    for one in drawn {
        *pictures += 1;
        let _ = writeln!(
            html,
            "<figure role=\"img\" aria-label=\"{}\" tabindex=\"0\">\n{}</figure>",
            escaped(&one.title),
            apart(one.picture.svg(), *pictures)
        );
    }
    table(html, &experiment.name, &experiment.table(results));
    findings(html, &experiment.findings(results));
    commands(html, experiment);
    html.push_str("</section>\n");
}

fn source(experiment: &Experiment) -> String {
    match (&experiment.paper, &experiment.section) {
        (Some(paper), Some(section)) => {
            format!("{}, section {} &middot; ", cited(paper), escaped(section))
        }
        (Some(paper), None) => format!("{} &middot; ", cited(paper)),
        _ => String::new(),
    }
}

/// The name of a paper, which leads to the paper itself where that is one of ours.
fn cited(paper: &str) -> String {
    match Reference::find(paper) {
        Some(reference) => format!(
            "<a href=\"#paper-{0}\" title=\"{1}\">{0}</a>",
            reference.name,
            escaped(&reference.full())
        ),
        None => escaped(paper),
    }
}

/// The papers that the page speaks of.
fn references(experiments: &[(Experiment, Results, Vec<Drawn>)]) -> String {
    let is_cited = |reference: &&Reference| {
        let texts = |experiment: &Experiment| {
            let claims = experiment.claims.iter().flat_map(|claim| [&claim.says, &claim.why]);
            let texts = [&experiment.title, &experiment.question].into_iter();
            let mut texts = texts.chain(&experiment.paper).chain(claims);
            texts.any(|text| text.contains(reference.name))
        };
        experiments.iter().any(|(experiment, ..)| texts(experiment))
    };
    let mut cited = REFERENCES.iter().filter(is_cited).peekable();
    if cited.peek().is_none() {
        return String::new();
    }
    let mut html = String::from("<section id=\"papers\">\n<h2>The papers</h2>\n<dl>\n");
    for reference in cited {
        let Reference { name, authors, title, about } = reference;
        let authors = authors.map_or(String::new(), |authors| format!("{}. ", escaped(authors)));
        let _ = writeln!(
            html,
            "<dt id=\"paper-{name}\">{name}</dt>\n<dd>{authors}<cite>{}</cite>. {}</dd>",
            escaped(title),
            escaped(about)
        );
    }
    html.push_str("</dl>\n</section>\n");
    html
}

/// The identifiers in pictures must differ on one page.
fn apart(svg: &str, picture: usize) -> String {
    svg.replace(" id=\"", &format!(" id=\"p{picture}-"))
        .replace("url(#", &format!("url(#p{picture}-"))
}

fn table(html: &mut String, name: &str, table: &Table) {
    let name = escaped(name);
    let _ = write!(
        html,
        "<div class=\"scroll\" role=\"region\" aria-label=\"Table of {name}\" tabindex=\"0\"><table>\n<thead><tr>"
    );
    let words = table.varied.len();
    let class = |at: usize, rows: &[Vec<String>]| {
        let is_number = |row: &Vec<String>| row[at].parse::<f64>().is_ok() || row[at] == "-";
        if at >= words || rows.iter().all(is_number) { " class=\"number\"" } else { "" }
    };
    let rows = table.words();
    for (at, head) in table.heads().iter().enumerate() {
        let _ = write!(html, "<th scope=\"col\"{}>{}</th>", class(at, &rows), escaped(head));
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for (index, row) in rows.iter().enumerate() {
        html.push_str(if table.begins_group(index) { "<tr class=\"group\">" } else { "<tr>" });
        for (at, cell) in row.iter().enumerate() {
            let _ = write!(html, "<td{}>{}</td>", class(at, &rows), escaped(cell));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody>\n</table></div>\n");
    let legends: Vec<String> = table.columns.iter().filter_map(Column::legend).collect();
    if !legends.is_empty() {
        let _ = writeln!(html, "<p class=\"legend\">{}.</p>", escaped(&legends.join("; ")));
    }
}

fn findings(html: &mut String, findings: &[Finding<'_>]) {
    if findings.is_empty() {
        return;
    }
    html.push_str("<ul class=\"claims\">\n");
    for finding in findings {
        let claim = finding.claim;
        let class = finding.found.map_or("undecided".to_string(), |found| found.to_string());
        let _ = write!(
            html,
            "<li><span class=\"verdict {class}\">{0}</span> <strong>{1}</strong> ({2}). {3} \
             <span class=\"measured\">{4}</span>",
            finding.verdict(),
            escaped(&claim.says),
            escaped(&claim.section),
            escaped(&claim.why),
            escaped(&finding.measured)
        );
        if finding.contradicts() {
            let _ =
                write!(html, " <strong class=\"alarm\">On record is: {}.</strong>", claim.verdict);
        } else if let Some(words) = finding.beside_record() {
            let _ = write!(html, " ({words})");
        }
        html.push_str("</li>\n");
    }
    html.push_str("</ul>\n");
}

fn commands(html: &mut String, experiment: &Experiment) {
    let runs = experiment.runs.len();
    let runs = if runs == 1 { "The run".to_string() } else { format!("The {runs} runs") };
    let summary = match experiment.seeds {
        1 => format!("{runs}, with one seed each"),
        seeds => format!("{runs}, each with {seeds} seeds from its own on; with the first of them"),
    };
    let _ = write!(
        html,
        "<details><summary>{summary}, as commands</summary>\n<div class=\"scroll\" role=\"region\" \
         aria-label=\"Commands of {}\" tabindex=\"0\"><pre>",
        escaped(&experiment.name)
    );
    for run in &experiment.runs {
        let _ = writeln!(html, "{}", escaped(&run.scenario.command()));
    }
    html.push_str("</pre></div></details>\n");
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn the_page_shows_tables_pictures_claims_and_commands_and_needs_nothing_else() {
        let text = "algorithm = 'lamport'\nnodes = 2\n[workload]\nrounds = 1\n[experiment]\n\
                    title = 'a <b> & c'\npaper = 'S2'\nquestion = 'how?'\n\
                    columns = ['messages_per_entry']\ndiagram = true\n\
                    vary.workload.hold = [1, 2]\n[[experiment.claim]]\nsection = '8'\n\
                    says = 'many'\nfigure = 'messages_per_entry'\nat_least = 100\n\
                    verdict = 'holds'\nwhy = 'Not at all.'\n[[experiment.claim]]\nsection = '8'\n\
                    says = 'asked here: few?'\nquestion = true\nfigure = 'messages_per_entry'\n\
                    at_most = 100\nverdict = 'holds'\nwhy = 'Few.'\n";
        let experiment = crate::read_file("x.toml".as_ref(), text).unwrap();
        let results = experiment.measure(1, &AtomicBool::new(false), |_| {}).unwrap().unwrap();
        let drawn = experiment.pictures(&results).unwrap();
        let html = page(&[(experiment, results, drawn)]);
        assert!(html.contains("a &lt;b&gt; &amp; c") && !html.contains("a <b>"));
        assert_eq!(html.matches("<svg").count(), 2);
        for id in ["p1-plot", "p2-plot"] {
            assert_eq!(html.matches(&format!(" id=\"{id}\"")).count(), 1);
            assert!(html.contains(&format!("url(#{id})")));
        }
        assert!(html.contains("Of 1 claims of the papers, 0 hold and 1 are wrong."));
        assert!(html.contains("Of 1 questions of our own, runs answer 1 with yes and 0 with no."));
        assert!(html.contains("1 of the verdicts on record are contradicted"));
        assert!(html.contains("catraca sim --algorithm lamport --nodes 2 --rounds 1 --hold 2"));
        assert!(html.contains("<a href=\"#paper-S2\" title=\"Capítulo 8: Exclusão Mútua\">S2</a>"));
        assert_eq!(html.matches("<dt id=\"paper-").count(), 1, "only the paper that is spoken of");
        for outside in ["<script", "<link", "src=", "@import", "url(http"] {
            assert!(!html.contains(outside), "{outside}");
        }
    }
}
