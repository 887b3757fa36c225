//! Reads the tables of a file strictly: what nobody asked for is an error.

use crate::error::{LabError, one_of, wrong};

/// A table that is being read.
pub(crate) struct Fields<'a> {
    /// Where it is in the file.
    place: String,
    table: &'a toml::Table,
    /// What was asked for.
    known: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(place: &str, table: &'a toml::Table) -> Self {
        Fields { place: place.to_string(), table, known: Vec::new() }
    }

    /// The place of a key.
    pub(crate) fn place(&self, key: &str) -> String {
        format!("{}.{key}", self.place)
    }

    pub(crate) fn value(&mut self, key: &'static str) -> Option<&'a toml::Value> {
        self.known.push(key);
        self.table.get(key)
    }

    pub(crate) fn text(&mut self, key: &'static str) -> Result<Option<String>, LabError> {
        match self.value(key) {
            None => Ok(None),
            Some(toml::Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(wrong(self.place(key), "must be a text")),
        }
    }

    pub(crate) fn needed(&mut self, key: &'static str) -> Result<String, LabError> {
        self.text(key)?.ok_or_else(|| wrong(self.place(key), "is missing; say it in a text"))
    }

    /// One text, or a list of them.
    pub(crate) fn texts(&mut self, key: &'static str) -> Result<Vec<String>, LabError> {
        match self.value(key) {
            None => Ok(Vec::new()),
            Some(value) => texts(&self.place(key), value),
        }
    }

    pub(crate) fn truth(&mut self, key: &'static str) -> Result<bool, LabError> {
        match self.value(key) {
            None => Ok(false),
            Some(toml::Value::Boolean(truth)) => Ok(*truth),
            Some(_) => Err(wrong(self.place(key), "must be true or false")),
        }
    }

    pub(crate) fn number(&mut self, key: &'static str) -> Result<Option<f64>, LabError> {
        match self.value(key) {
            None => Ok(None),
            Some(toml::Value::Integer(number)) => Ok(Some(*number as f64)),
            Some(toml::Value::Float(number)) if number.is_finite() => Ok(Some(*number)),
            Some(_) => Err(wrong(self.place(key), "must be a number")),
        }
    }

    pub(crate) fn table(&mut self, key: &'static str) -> Result<Option<&'a toml::Table>, LabError> {
        match self.value(key) {
            None => Ok(None),
            Some(toml::Value::Table(table)) => Ok(Some(table)),
            Some(_) => Err(wrong(self.place(key), "must be a table")),
        }
    }

    pub(crate) fn tables(&mut self, key: &'static str) -> Result<Vec<&'a toml::Table>, LabError> {
        let place = self.place(key);
        let many = || wrong(&place, format!("must be written as [[{place}]]"));
        match self.value(key) {
            None => Ok(Vec::new()),
            Some(toml::Value::Array(items)) => {
                items.iter().map(|item| item.as_table().ok_or_else(many)).collect()
            }
            Some(_) => Err(many()),
        }
    }

    /// One of a few words.
    pub(crate) fn choice<T: Copy>(
        &mut self,
        key: &'static str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>, LabError> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        match choices.iter().find(|(word, _)| *word == text) {
            Some((_, choice)) => Ok(Some(*choice)),
            None => {
                let words = choices.iter().map(|(word, _)| *word);
                Err(one_of(&self.place(key), "choice", &text, words))
            }
        }
    }

    /// Refuses whatever was not asked for.
    pub(crate) fn finish(self) -> Result<(), LabError> {
        match self.table.keys().find(|key| !self.known.contains(&key.as_str())) {
            None => Ok(()),
            Some(key) => Err(one_of(&self.place, "key", key, self.known)),
        }
    }
}

/// One text or number, or a list of them.
pub(crate) fn texts(place: &str, value: &toml::Value) -> Result<Vec<String>, LabError> {
    let plain = |value: &toml::Value| match value {
        toml::Value::String(text) => Ok(text.clone()),
        toml::Value::Integer(number) => Ok(number.to_string()),
        toml::Value::Float(number) => Ok(number.to_string()),
        _ => Err(wrong(place, "must be a text, a number or a list of them")),
    };
    match value {
        toml::Value::Array(items) => items.iter().map(plain).collect(),
        one => Ok(vec![plain(one)?]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_asked_for_is_refused_with_what_there_is() {
        let table: toml::Table = "title = 'a'\ntilte = 'b'".parse().unwrap();
        let mut fields = Fields::new("experiment", &table);
        assert_eq!(fields.needed("title"), Ok("a".to_string()));
        assert_eq!(fields.text("paper"), Ok(None));
        let error = fields.finish().unwrap_err().to_string();
        assert_eq!(
            error,
            "experiment: there is no key 'tilte'. Did you mean 'title'? There are: title, paper"
        );
    }

    #[test]
    fn what_is_missing_or_of_another_kind_is_named() {
        let table: toml::Table = "title = 3\nchart = 1\nx = inf".parse().unwrap();
        let mut fields = Fields::new("experiment", &table);
        let says = |error: LabError| error.to_string();
        assert_eq!(says(fields.needed("title").unwrap_err()), "experiment.title: must be a text");
        assert!(says(fields.needed("paper").unwrap_err()).contains("is missing"));
        assert!(says(fields.tables("chart").unwrap_err()).contains("[[experiment.chart]]"));
        assert!(says(fields.number("x").unwrap_err()).contains("must be a number"));
    }
}
