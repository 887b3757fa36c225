//! Checks a document against a JSON Schema of `docs/schema/`, for the keywords that those use.
//!
//! A keyword that is not known here is an error: a schema cannot say more than is checked.

use std::collections::BTreeSet;

use serde_json::Value;

/// Said of values that are not looked at.
const COMMENTS: [&str; 5] = ["$schema", "$id", "title", "description", "$defs"];

/// What is wrong with `value` according to the schema in that file; nothing if it is right.
pub(crate) fn wrong(schema: &str, value: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    check((&read(schema), schema), value, "$", &mut wrong);
    wrong
}

fn read(name: &str) -> Value {
    let path = format!("{}/../../docs/schema/{name}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap()
}

/// The schema that a reference in `file` means, and the file that it is in.
fn resolved(reference: &str, file: &str) -> (Value, String) {
    let (other, pointer) = reference.split_once('#').unwrap();
    let file = if other.is_empty() { file } else { other };
    let found = read(file).pointer(pointer).cloned();
    (found.unwrap_or_else(|| panic!("{reference} of {file} leads nowhere")), file.to_string())
}

/// `schema` is a schema and the file that it is in.
fn check(schema: (&Value, &str), value: &Value, place: &str, wrong: &mut Vec<String>) {
    let (rules, file) = schema;
    let mut expect = |holds: bool, what: &str| {
        if !holds {
            wrong.push(format!("{place}: {what}, but it is {value}"));
        }
    };
    for (keyword, rule) in rules.as_object().unwrap() {
        match keyword.as_str() {
            comment if COMMENTS.contains(&comment) => {}
            "type" => expect(has_type(rule, value), &format!("must be of type {rule}")),
            "const" => expect(rule == value, &format!("must be {rule}")),
            "enum" => {
                expect(rule.as_array().unwrap().contains(value), &format!("must be one of {rule}"));
            }
            "minimum" => {
                let is_less = value.as_f64().is_some_and(|value| value < rule.as_f64().unwrap());
                expect(!is_less, &format!("must be at least {rule}"));
            }
            "required" => {
                for name in rule.as_array().unwrap() {
                    expect(
                        value.get(name.as_str().unwrap()).is_some(),
                        &format!("must have {name}"),
                    );
                }
            }
            "additionalProperties" | "unevaluatedProperties" if rule == &Value::Bool(false) => {
                let known = known(rules, file);
                for name in value.as_object().into_iter().flat_map(|object| object.keys()) {
                    expect(known.contains(name), &format!("must not have '{name}'"));
                }
            }
            "properties" | "additionalProperties" | "items" | "anyOf" | "allOf" | "$ref" => {}
            unknown => panic!("the check knows no keyword '{unknown}'"),
        }
    }
    check_parts(schema, value, place, wrong);
}

/// What the schema says of parts of the value, and what other schemas say of all of it.
fn check_parts((rules, file): (&Value, &str), value: &Value, place: &str, wrong: &mut Vec<String>) {
    let properties = rules.get("properties").and_then(Value::as_object);
    for (name, part) in value.as_object().into_iter().flatten() {
        let place = format!("{place}.{name}");
        let of_others = || rules.get("additionalProperties").filter(|rule| rule.is_object());
        let of_it = properties.and_then(|properties| properties.get(name));
        if let Some(rule) = of_it.or_else(of_others) {
            check((rule, file), part, &place, wrong);
        }
    }
    if let (Some(rule), Some(items)) = (rules.get("items"), value.as_array()) {
        for (at, item) in items.iter().enumerate() {
            check((rule, file), item, &format!("{place}[{at}]"), wrong);
        }
    }
    for rule in rules.get("allOf").and_then(Value::as_array).into_iter().flatten() {
        check((rule, file), value, place, wrong);
    }
    if let Some(choices) = rules.get("anyOf").and_then(Value::as_array) {
        let fits = |rule: &Value| {
            let mut wrong = Vec::new();
            check((rule, file), value, place, &mut wrong);
            wrong.is_empty()
        };
        if !choices.iter().any(fits) {
            wrong.push(format!("{place}: fits none of {choices:?}, it is {value}"));
        }
    }
    if let Some(reference) = rules.get("$ref").and_then(Value::as_str) {
        let (rules, file) = resolved(reference, file);
        check((&rules, &file), value, place, wrong);
    }
}

/// The properties that a schema and those that it refers to have something to say of.
fn known(rules: &Value, file: &str) -> BTreeSet<String> {
    let properties = rules.get("properties").and_then(Value::as_object);
    let mut names: BTreeSet<String> =
        properties.into_iter().flat_map(|all| all.keys().cloned()).collect();
    for rule in rules.get("allOf").and_then(Value::as_array).into_iter().flatten() {
        names.extend(known(rule, file));
    }
    if let Some(reference) = rules.get("$ref").and_then(Value::as_str) {
        let (rules, file) = resolved(reference, file);
        names.extend(known(&rules, &file));
    }
    names
}

fn has_type(rule: &Value, value: &Value) -> bool {
    match rule {
        Value::Array(types) => types.iter().any(|one| has_type(one, value)),
        one => match one.as_str().unwrap() {
            "null" => value.is_null(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_u64() || value.is_i64(),
            "number" => value.is_number(),
            "string" => value.is_string(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            unknown => panic!("there is no type '{unknown}'"),
        },
    }
}
